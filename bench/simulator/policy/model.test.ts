import { readFileSync } from 'node:fs'
import { Tokenizer } from '@huggingface/tokenizers'
import fc from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'
import { type ChatMessage, defaultModelDir, loadModel, type Model } from './model.ts'

interface GoldenCase {
  id: string
  input: { messages: ChatMessage[]; tools?: unknown[]; add_generation_prompt: boolean }
  rendered?: string
  huggingface_jinja: unknown
}

/** Rendered by Python's jinja2 in the environment of transformers. */
const golden: GoldenCase[] = JSON.parse(
  readFileSync(new URL('../testdata/qwen3-initial.json', import.meta.url), 'utf8'),
).cases
// vLLM parses arguments that are a JSON string before it renders, so this case renders otherwise there.
const comparable = golden.filter(
  (one) => one.huggingface_jinja === 'equal' && one.id !== 'arguments-as-string',
)

let model: Model
let reference: Tokenizer

beforeAll(async () => {
  model = await loadModel(defaultModelDir())
  const read = (name: string) => JSON.parse(readFileSync(`${defaultModelDir()}/${name}`, 'utf8'))
  reference = new Tokenizer(read('tokenizer.json'), read('tokenizer_config.json'))
}, 30_000)

test.each(comparable)('$id renders as Python renders it', ({ input, rendered }) => {
  const { messages, tools = null, add_generation_prompt: addGenerationPrompt, ...kwargs } = input
  const chat = { messages, tools, addGenerationPrompt, continueFinalMessage: false, kwargs }
  expect(model.render(chat)).toBe(rendered)
})

test('arguments given as JSON text render as the object they hold, as in vLLM', () => {
  const call = { name: 'f', arguments: '{"a":1,"b":[true,"x"]}' }
  const message = { role: 'assistant', content: null, tool_calls: [{ function: call }] }
  const text = model.render({
    messages: [{ role: 'user', content: 'Hi' }, message],
    tools: null,
    addGenerationPrompt: false,
    continueFinalMessage: false,
    kwargs: {},
  })
  expect(text).toContain('{"name": "f", "arguments": {"a": 1, "b": [true, "x"]}}')
})

test('a final assistant message that is to be continued is left open', () => {
  const text = model.render({
    messages: [
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: 'Half a' },
    ],
    tools: null,
    addGenerationPrompt: false,
    continueFinalMessage: true,
    kwargs: {},
  })
  expect(text.endsWith('Half a')).toBe(true)
})

// Ids of the Qwen3 vocabulary, checked with the Rust tokenizers library.
test.each([
  ['<tool_call>', [151_657]],
  ['</tool_call>', [151_658]],
  ['<|im_end|>', [151_645]],
  ['<function=', [27, 1688, 28]],
  ['</parameter>', [522, 16_181, 29]],
  ['<think>\n\n</think>\n\nhi', [151_667, 271, 151_668, 271, 6023]],
  ['Looking.\n<tool_call>', [22_464, 624, 151_657]],
])('%j has the ids %j', (text, ids) => {
  expect(model.encode(text)).toEqual(ids)
  expect(model.decode(ids)).toBe(text)
})

describe('against the tokenizers library', () => {
  const chunk = fc.oneof(
    fc.string({ unit: 'grapheme' }),
    fc.constantFrom('<|im_start|>', '<|im_end|>', '\n', 'assistant', '<tool_call>', 'é', '数据'),
  )
  const texts = fc.array(chunk, { maxLength: 12 }).map((chunks) => chunks.join(''))

  test('ids made segment by segment are those of the whole text', () => {
    fc.assert(
      fc.property(texts, (text) => {
        const { ids } = reference.encode(text, { add_special_tokens: false })
        expect(model.encode(text)).toEqual(ids)
      }),
    )
  })

  test('decoding gives the NFC form of the text; special tokens can be left out', () => {
    fc.assert(
      fc.property(texts, (text) => {
        const ids = model.encode(text)
        const normal = text.normalize('NFC')
        expect(model.decode(ids)).toBe(normal)
        const spoken = normal.replaceAll(/<\|im_(start|end)\|>/g, '')
        expect(model.decode(ids, { skipSpecial: true })).toBe(spoken)
      }),
    )
  })
})
