// Limits of ours that a foreign trainer's own server does not have: what is longer is cut there, and refused in our own form.
import { expect, test } from 'vitest'
import { batchRequestSchema } from '../../protocol/batch.ts'
import { loadConfig } from '../config.ts'
import { foreignBatch } from './foreign-batch.ts'
import { startRequestSchema } from './slime-start.ts'

const { dialects, backends } = loadConfig({
  file: null,
  flags: { backends: { main: { dialect: 'vllm', url: 'http://127.0.0.1:1', model: 'm' } } },
})

test.each(['slime', 'polar'] as const)('tokens of a turn are cut at a million: %s', (dialect) => {
  const tasks = [{ task: 'arithmetic/sum-0', metadata: {} }]
  const ask = { id: 'a', tasks, group_size: 1, url: null, sampling: { max_tokens: 2_000_000 } }
  const { policy } = foreignBatch(ask, dialects[dialect].batch, backends)
  expect(policy.sampling.max_tokens).toBe(1_000_000)
})

test('a native batch with more is refused', () => {
  const policy = { sampling: { max_tokens: 1_000_001 } }
  const request = { tasks: [{ task: 'arithmetic/sum-0' }], group_size: 1, policy }
  expect(batchRequestSchema.safeParse(request).success).toBe(false)
})

test('passes of slime are cut at a million', () => {
  const start = { task_type: 'math', num_repeat_per_sample: '8', num_epoch: '2000000' }
  expect(startRequestSchema.parse(start).num_epoch).toBe(1_000_000)
})
