// A backend that says how it sampled is believed: another value than was asked for is a breach that names the parameter.
import { expect, test } from 'vitest'
import type { Expectation } from './dialect.ts'
import { JSON_HEADERS, jsonBytes, withValue } from './reply.testkit.ts'
import { sglang } from './sglang.ts'
import { vllm } from './vllm.ts'
import { vllmGenerate } from './vllm-generate.ts'

const expectation: Expectation = {
  tokens: true,
  promptIds: Int32Array.of(1, 2),
  maxTokens: 64,
  knowsId: null,
  sampling: { temperature: 0.7, top_p: 0.9, max_tokens: 64, seed: 12 },
}
const native = {
  text: 'a',
  meta_info: {
    finish_reason: { type: 'stop' },
    prompt_tokens: 2,
    completion_tokens: 1,
    output_token_logprobs: [[-1, 5, null]],
  },
}
const chosen = {
  choices: [
    { text: 'a', token_ids: [5], logprobs: { token_logprobs: [-1] }, finish_reason: 'stop' },
  ],
  usage: { prompt_tokens: 2, completion_tokens: 1 },
}
const ids = {
  choices: [{ token_ids: [5], logprobs: { content: [{ logprob: -1 }] }, finish_reason: 'stop' }],
}

test.each([
  ['sglang', sglang, native, 'meta_info.sampling_params', 'temperature', 1],
  ['sglang', sglang, native, 'meta_info', 'sampling_seed', 0],
  ['sglang', sglang, native, 'sampling_params', 'max_new_tokens', 128],
  ['vllm', vllm, chosen, '', 'top_p', 1],
  ['vllm', vllm, chosen, 'sampling_params', 'seed', null],
  ['vllm', vllm, chosen, 'sampling_params', 'temperature', '0.7'],
  ['vllm-generate', vllmGenerate, ids, 'sampling_params', 'max_tokens', 16],
])('%s echoes %s%s.%s = %j', (_dialect, dialect, reply, place, name, value) => {
  const path = place === '' ? name : place
  const current = place === 'meta_info' ? native.meta_info : {}
  const echo = (echoed: unknown) =>
    withValue(reply, path, place === '' ? echoed : { ...current, [name]: echoed })
  const read = (body: unknown) => dialect.read(200, JSON_HEADERS, jsonBytes(body), expectation)
  if (value === null) expect(read(echo(value)).kind).toBe('completion')
  else {
    expect(read(echo(value))).toMatchObject({ kind: 'contract_violation', field: name })
    const known = { ...expectation.sampling, sampling_seed: 12, max_new_tokens: 64 }
    const asked = known[name as keyof typeof known]
    // Engines keep parameters as float32.
    expect(read(echo(Math.fround(asked as number))).kind).toBe('completion')
  }
})
