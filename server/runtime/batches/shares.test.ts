// A ledger without room: no group starts until it has some again, and the scrape says why.
import { afterEach, expect, test, vi } from 'vitest'
import type { Ledger } from '../../../rollout/ports.ts'
import { settingsSchema } from '../../settings.ts'
import { createPolicyBoard } from '../policy/policy-board.ts'
import type { BatchRun } from './batch-run.ts'
import { createScheduler } from './scheduler.ts'
import { createShares } from './shares.ts'

afterEach(() => void vi.useRealTimers())

function house() {
  let full: string | null = null
  const plan = { id: 'b', policy: { backend: 'main' } }
  const run = { plan, isPlayed: () => false, isDone: () => false, pause: () => null }
  const runs = new Map([['b', run as unknown as BatchRun]])
  const ledger = {
    full: () => full,
    deliveries: () => ({ ready: 0, leased: 0 }),
    standing: () => ({ ready: 0, leased: 0 }),
    heldBytes: () => 0,
  } as unknown as Ledger
  const scheduler = createScheduler(8)
  const { limits } = settingsSchema.parse({})
  const shares = createShares({ runs, ledger, board: createPolicyBoard(), scheduler, limits })
  return { shares, scheduler, fill: (why: string | null) => (full = why) }
}

test('a disk that runs full holds the groups of batches that play, until there is room again', () => {
  vi.useFakeTimers()
  const { shares, scheduler, fill } = house()
  shares.apply()
  expect(scheduler.gateOf('b')).toBe('open')
  fill('the disk has 7 bytes left')
  vi.advanceTimersByTime(1000)
  shares.apply()
  expect(scheduler.gateOf('b')).toBe('held')
  expect(shares.isLedgerFull()).toBe(true)
  fill(null)
  // Nobody tells that there is room: it is looked for.
  vi.advanceTimersByTime(2000)
  expect(scheduler.gateOf('b')).toBe('open')
  expect(shares.isLedgerFull()).toBe(false)
  expect(vi.getTimerCount()).toBe(0)
})

test('once stopped it looks no more', () => {
  vi.useFakeTimers()
  const { shares, fill } = house()
  fill('full')
  shares.apply()
  expect(vi.getTimerCount()).toBe(1)
  shares.stop()
  expect(vi.getTimerCount()).toBe(0)
})
