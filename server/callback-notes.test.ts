// What is remembered of a batch's callback, over a service of the test's own: it goes with the batch, on whatever way that went.
import { expect, test } from 'vitest'
import { batchRequestSchema } from '../protocol/batch.ts'
import { PaddockError } from '../protocol/errors.ts'
import type { JsonObject } from '../protocol/json.ts'
import type { CallbackSender } from './callback-sender.ts'
import { withCallbacks } from './callbacks.ts'
import type { Service } from './service.ts'
import { createStubService } from './stub-service.testkit.ts'

const CALLBACK = { url: 'http://127.0.0.1:9/', encoding: 'json', lease_s: 60 }
const sender: CallbackSender = { check: () => {}, send: async () => true }

function open(names: string[], more: Partial<Service>) {
  const notes = new Map<string, JsonObject>(names.map((name) => [name, CALLBACK]))
  const logged: string[] = []
  const stub = createStubService({
    notes: async () => [...notes.keys()],
    note: async (name) => notes.get(name) ?? null,
    async keepNote(name, value) {
      if (value === null) notes.delete(name)
      else notes.set(name, value)
    },
    progress: () => ({ done: false }) as never,
    ...more,
  })
  const { signal } = new AbortController()
  const service = withCallbacks(stub, sender, signal, (_, reason) => logged.push(reason))
  return { notes, logged, service }
}

test('the callback of a batch that was forgotten while it was told is forgotten, and no failure', async () => {
  const { notes, logged, service } = open([], {
    waitReady: () => Promise.reject(new PaddockError('gone', 'batch b1 was done long ago')),
  })
  const request = { id: 'b1', tasks: [{ task: 'arithmetic/sum-0' }], callback: CALLBACK }
  await service.submit(batchRequestSchema.parse({ ...request, group_size: 1 }))
  await expect.poll(() => notes.size).toBe(0)
  expect(logged).toEqual([])
})

test('a server that starts forgets the callbacks of batches that are done or gone', async () => {
  const batches = () =>
    [
      { id: 'done', done: true },
      { id: 'runs', done: false },
    ] as never
  const { notes } = open(['callback-gone', 'callback-done', 'callback-runs', 'other'], {
    batches,
    waitReady: () => new Promise(() => {}),
  })
  await expect.poll(() => [...notes.keys()]).toEqual(['callback-runs', 'other'])
})
