// Groups that are taken out of the store without a word of their trainer: nobody is counted as seen whom nobody heard.
import { expect, test } from 'vitest'
import type { GroupEnvelope } from '../../../protocol/delivery.ts'
import type { AckResult } from '../../../protocol/group.ts'
import type { LeasedGroup, Ledger } from '../../../rollout/ports.ts'
import type { Metrics } from '../../metrics/metrics.ts'
import { createPolicyBoard } from '../policy/policy-board.ts'
import { type Pool, WorkerLost } from '../threads/pool.ts'
import type { BatchRun } from './batch-run.ts'
import { createLeasing } from './leasing.ts'

const group = (id: string, delivery: number) =>
  ({
    record: { id, head: { id, policy: { version_min: null } }, episodes: [] },
    sealed: [],
    lease: { id: `lease-${id}-${delivery}`, delivery },
  }) as unknown as LeasedGroup

/** A ledger that hands out what `rounds` says, and metrics that write down what they are told. */
function house(
  rounds: LeasedGroup[][],
  run: Pool['run'] = async () => new Uint8Array() as never,
  onStep: (step: 'is leased' | 'is renewed') => void = () => {},
) {
  const done: string[] = []
  const asked: number[] = []
  const told: string[] = []
  const note =
    (how: string, result: AckResult) => async (_: string, leases: readonly { id: string }[]) => {
      done.push(...leases.map(({ id }) => `${how} ${id}`))
      return leases.map(() => result)
    }
  const ledger = {
    lease: async (_: string, max: number) => {
      asked.push(max)
      onStep('is leased')
      return rounds.shift() ?? []
    },
    peek: async () => rounds.shift()?.[0] ?? null,
    giveUp: async (_: string, group: string) => void done.push(`give up ${group}`),
    renew: async () => onStep('is renewed'),
    ack: note('ack', 'acked'),
    nack: note('nack', 'nacked'),
    takeBack: async (_: string, leases: readonly { id: string }[]) =>
      void done.push(...leases.map(({ id }) => `take back ${id}`)),
    watch: () => () => {},
  } as unknown as Ledger
  const metrics = new Proxy({} as Metrics, {
    get: (_, name) => () => void told.push(String(name)),
  })
  const policy = { backend: 'main', max_staleness: null }
  const played = { isDone: () => true, plan: { request: { mode: 'train', policy }, policy } }
  const pool = { run } as Pool
  const onUndeliverable = (group: string) => void told.push(`undeliverable ${group}`)
  const board = createPolicyBoard()
  const world = { ledger, metrics, pool, board, now: () => 0, onUndeliverable }
  return { done, told, asked, ...createLeasing(world, () => played as unknown as BatchRun) }
}

/** A pool whose threads all fail at a body with one of these groups, or with more than so many. */
const failing = (bad: string[], most = Number.POSITIVE_INFINITY) =>
  (async (_: string, { groups }: { groups: GroupEnvelope[] }) => {
    const ids = groups.map(({ head }) => head.id)
    if (ids.length > most || ids.some((id) => bad.includes(id)))
      throw new WorkerLost('crash', 'deliver failed on 3 threads: Invalid string length', null, 3)
    return new Uint8Array()
  }) as unknown as Pool['run']
const WANTED = { max: 16, lease_s: 60, wait_s: 0 }
const { signal } = new AbortController()

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

test.each(['json', 'msgpack', { kind: 'slime', reward: 'reward', at: 0 }] as const)(
  'a group that no thread can encode is given up, and the lease goes on with the next: %o',
  async (form) => {
    const { lease, done, told } = house([[group('a', 1)], [group('b', 1)]], failing(['a']))
    const { groups } = await lease('batch', WANTED, form, signal)
    expect(groups.map(({ id }) => id)).toEqual(['b'])
    expect(done).toEqual(['give up a'])
    expect(told).toContain('undeliverable a')
    expect(told.filter((what) => what === 'leased')).toHaveLength(1)
  },
)

test.each(['is leased', 'is encoded', 'is renewed'])(
  'a lease whose asker goes away while it %s is taken back, and no group counts as handed out',
  async (when) => {
    const asker = new AbortController()
    const leave = (now: string) => void (now === when && asker.abort())
    const encode = (async () => {
      leave('is encoded')
      return new Uint8Array()
    }) as unknown as Pool['run']
    const { lease, done, told } = house([[group('a', 1), group('b', 1)]], encode, leave)
    await lease('batch', WANTED, 'json', asker.signal)
    expect(done).toEqual(['take back a', 'take back b'])
    expect(told).not.toContain('leased')
  },
)

test('groups that cannot be encoded together are handed out one by one from then on', async () => {
  const rounds = [[group('a', 1), group('b', 1)], [group('a', 2)], [group('b', 2)]]
  const { lease, done, asked } = house(rounds, failing([], 1))
  const first = await lease('batch', WANTED, 'json', signal)
  const second = await lease('batch', WANTED, 'json', signal)
  expect([first, second].map(({ groups }) => groups[0]?.id)).toEqual(['a', 'b'])
  expect(asked).toEqual([16, 1, 1])
  expect(done).toEqual(['take back a', 'take back b'])
})

test('a group is not given up where no thread has tried to encode it', async () => {
  const run = (() =>
    Promise.reject(new WorkerLost('crash', 'no worker thread starts', null))) as Pool['run']
  const { lease, done } = house([[group('a', 1)]], run)
  await expect(lease('batch', WANTED, 'json', signal)).rejects.toThrow('no worker thread starts')
  expect(done).toEqual(['take back a'])
})

test('a group whose encoding took too long is not given up: a busy machine takes as long', async () => {
  const run = (() =>
    Promise.reject(new WorkerLost('hang_killed', 'took too long', null, 1))) as Pool['run']
  const rounds = [[group('a', 1), group('b', 1)], [group('a', 2)]]
  const { lease, peek, done, told } = house([...rounds, [group('a', 3)]], run)
  await expect(lease('batch', WANTED, 'json', signal)).rejects.toThrow('took too long')
  expect(done).toEqual(['take back a', 'take back b', 'take back a'])
  await expect(peek('batch', 'json')).rejects.toThrow('took too long')
  expect(told).toEqual([])
})

test('a group that is looked at and cannot be encoded is given up, and none is there', async () => {
  const { peek, done, told } = house([[group('a', 1)]], failing(['a']))
  const form = {
    kind: 'polar',
    task_id: 't',
    metadata: {},
    logprobs: 'numbers',
    enough: null,
  } as const
  expect(await peek('batch', form)).toBe(null)
  expect(done).toEqual(['give up a'])
  expect(told).toEqual(['undeliverable a'])
})
