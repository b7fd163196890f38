// Groups that leave the store without a lease of their trainer: nobody is counted as heard of whom nobody heard.
import { expect, test } from 'vitest'
import type { AckResult } from '../../protocol/group.ts'
import type { LeasedGroup, Ledger } from '../../rollout/ports.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { BatchRun } from './batch-run.ts'
import { createLeasing } from './leasing.ts'
import { createPolicyBoard } from './policy-board.ts'
import type { Pool } from './pool.ts'

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
  } as unknown as Ledger
  const metrics = new Proxy({} as Metrics, {
    get: (_, name) => () => void told.push(String(name)),
  })
  const policy = { backend: 'main', max_staleness: null }
  const run = { plan: { request: { mode: 'train', policy }, policy } }
  const world = { ledger, metrics, pool: {} as Pool, board: createPolicyBoard(), now: () => 0 }
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
