// A callback after an error that passes: the group that was not leased for it is told all the same.
import { expect, test } from 'vitest'
import type { CallbackSender } from './callback-sender.ts'
import { withCallbacks } from './callbacks.ts'
import type { LeaseAnswer, Service } from './service.ts'
import { createStubService } from './stub-service.testkit.ts'

/** Posts nothing: what it is given counts as taken. */
const sender = {
  check() {},
  send: async (_: string, { body }: Parameters<CallbackSender['send']>[1]) =>
    (await body()) !== null,
} as unknown as CallbackSender

test('a lease that fails once ends no callback', async () => {
  let left = 1
  let tries = 0
  const told: string[] = []
  const closing = new AbortController()
  const acked = new Promise<unknown>((resolve) => {
    const service = createStubService({
      submit: async () => ({ id: 'b1', groups: 1, episodes: 1 }),
      batches: () => [],
      notes: async () => [],
      waitReady: async () => left > 0,
      progress: () => ({ done: left === 0 }) as ReturnType<Service['progress']>,
      async lease() {
        if (tries++ === 0) throw new Error('deliver failed on 1 threads: it took too long')
        const groups = [{ id: 'b1.g0', lease: { id: 'l' } }] as unknown as LeaseAnswer['groups']
        return { body: new Uint8Array(1), groups }
      },
      async ack(_, { groups }) {
        left--
        resolve(groups)
        return []
      },
    })
    const called = withCallbacks(service, sender, closing.signal, (_, why) => told.push(why), 1)
    const callback = { url: 'http://t/', encoding: 'json', lease_s: 60 }
    called.submit({ id: 'b1', callback } as unknown as Parameters<Service['submit']>[0])
  })
  expect(await acked).toEqual([{ id: 'b1.g0', lease: 'l' }])
  expect(told).toEqual(['deliver failed on 1 threads: it took too long'])
  closing.abort()
})
