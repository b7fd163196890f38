// Groups that are taken out of the store without a word of their trainer: nobody is counted as seen whom nobody heard.
import { expect, test } from 'vitest'
import type { AckResult } from '../../../protocol/group.ts'
import type { LeasedGroup, Ledger } from '../../../rollout/ports.ts'
import type { Metrics } from '../../metrics/metrics.ts'
import { createPolicyBoard } from '../policy/policy-board.ts'
import type { Pool } from '../threads/pool.ts'
import type { BatchRun } from './batch-run.ts'
import { createLeasing } from './leasing.ts'

const group = (id: string, delivery: number) =>
  ({
    record: { id, head: { policy: { version_min: null } } },
    lease: { id: `lease-${id}-${delivery}`, delivery },
  }) as unknown as LeasedGroup

/** A ledger that hands out what `rounds` says, and metrics that write down what they are told. */
function house(rounds: LeasedGroup[][]) {
  const done: string[] = []
  const told: string[] = []
  const note =
    (how: string, result: AckResult) => async (_: string, leases: readonly { id: string }[]) => {
      done.push(...leases.map(({ id }) => `${how} ${id}`))
      return leases.map(() => result)
    }
  const ledger = {
    lease: async () => rounds.shift() ?? [],
    ack: note('ack', 'acked'),
    nack: note('nack', 'nacked'),
    watch: () => () => {},
  } as unknown as Ledger
  const metrics = new Proxy({} as Metrics, {
    get: (_, name) => () => void told.push(String(name)),
  })
  const policy = { backend: 'main', max_staleness: null }
  const run = { isDone: () => true, plan: { request: { mode: 'train', policy }, policy } }
  const pool = { run: async () => new Uint8Array() } as unknown as Pool
  const world = { ledger, metrics, pool, board: createPolicyBoard(), now: () => 0 }
  return { done, told, ...createLeasing(world, () => run as unknown as BatchRun) }
}

test('what was taken on another way is acknowledged', async () => {
  const { letGo, done, told } = house([[group('a', 1), group('b', 1)]])
  await letGo('batch', true)
  expect(done).toEqual(['ack a', 'ack b'])
  expect(told).toEqual(['leased', 'leased', 'acknowledged', 'acknowledged'])
})

test('what nobody came for is handed back until it is handed out no more, and no trainer was seen', async () => {
  const { letGo, done, told } = house([[group('a', 1)], [group('a', 2)]])
  await letGo('batch', false)
  expect(done).toEqual(['nack a', 'nack a'])
  expect(told).toEqual([])
})

test('a callback that is about to be made is no sign of its trainer; a lease is', async () => {
  const { lease, told } = house([])
  const asked = { max: 1, lease_s: 60, wait_s: 0 }
  const { signal } = new AbortController()
  await lease('batch', asked, 'json', signal, 'callback')
  expect(told).toEqual([])
  await lease('batch', asked, 'json', signal)
  expect(told).toEqual(['trainerSeen', 'trainerPolled'])
})
