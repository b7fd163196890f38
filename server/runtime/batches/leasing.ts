// How finished groups get to a trainer: leased within its wait, encoded by a thread, acknowledged or given back.
import type { GroupEnvelope } from '../../../protocol/delivery.ts'
import type { AckResult, LeaseRequest } from '../../../protocol/group.ts'
import { packMap } from '../../../protocol/msgpack.ts'
import { trajectoryOf } from '../../../protocol/sealed.ts'
import type { LeasedGroup, Ledger } from '../../../rollout/ports.ts'
import type { Metrics } from '../../metrics/metrics.ts'
import type { GroupForm, Service } from '../../service.ts'
import type { PolicyBoard } from '../policy/policy-board.ts'
import { type Pool, WorkerLost } from '../threads/pool.ts'
import type { BatchRun } from './batch-run.ts'

export interface Leasing
  extends Pick<Service, 'lease' | 'waitReady' | 'peek' | 'ack' | 'nack' | 'takeBack' | 'letGo'> {
  /** The server stops: every lease that waits is answered, and none waits any more. */
  stop(): void
}

interface LeasingWorld {
  ledger: Ledger
  pool: Pool
  board: PolicyBoard
  metrics: Metrics
  /** Unix seconds, for display only. */
  now(): number
  /** Told of a group that no body can be made of. */
  onUndeliverable(group: string, reason: string): void
}

/** Groups that are let go in one step, and seconds in which that is done. */
const AT_ONCE = 16
const LET_GO_S = 60

/** `runOf` throws where a batch is not known. */
export function createLeasing(world: LeasingWorld, runOf: (id: string) => BatchRun): Leasing {
  const { ledger, pool, board, metrics } = world
  /** Ends the wait of every lease that waits. */
  const waiting = new Set<() => void>()
  /** Batches of which a body of several groups could not be made. */
  const oneByOne = new Set<string>()
  let stopped = false

  /** Groups that are ready now, or as soon as one is; none when the wait is over or the batch is done. */
  async function leaseWithin(
    run: BatchRun,
    request: LeaseRequest,
    signal: AbortSignal,
  ): Promise<LeasedGroup[]> {
    const { id } = run.plan
    const end = performance.now() + request.wait_s * 1000
    for (;;) {
      const changed = change(id, end - performance.now(), signal)
      const leased = await ledger.lease(id, request.max, request.lease_s, isStale(run))
      if (leased.length > 0 || run.isDone() || performance.now() >= end || signal.aborted) {
        changed.cancel()
        return leased
      }
      await changed.happened
      if (stopped) return []
    }
  }

  /** Groups with their body. Those that no body can be made of leave the store, or every lease would fail at them. */
  async function leaseEncoded(
    run: BatchRun,
    request: LeaseRequest,
    form: GroupForm,
    signal: AbortSignal,
  ) {
    const { id } = run.plan
    for (;;) {
      const max = oneByOne.has(id) ? 1 : request.max
      const leased = await leaseWithin(run, { ...request, max }, signal)
      const done = leased.length === 0 && run.isDone()
      const groups = leased.map((group) => envelope(group, !isNative(form)))
      try {
        return { leased, groups, body: await pool.run('deliver', { groups, done, form }) }
      } catch (error) {
        const [first, ...others] = leased
        if (first && others.length === 0 && isUnencodable(error)) {
          await giveUp(id, first.record.id, error)
          continue
        }
        // Nobody has seen them: the next lease need not wait until these have run out.
        await ledger.takeBack(id, handles(leased))
        if (others.length === 0 || !isLost(error)) throw error
        oneByOne.add(id)
      }
    }
  }

  async function giveUp(id: string, group: string, { message }: Error): Promise<void> {
    await ledger.giveUp(id, group)
    world.onUndeliverable(group, message)
  }

  function tellLeased(run: BatchRun, leased: readonly LeasedGroup[]): void {
    for (const { record, lease } of leased)
      metrics.leased({
        mode: run.plan.request.mode,
        delivery: lease.delivery,
        staleness: staleness(run, record.head.policy.version_min),
      })
  }

  function tellAcknowledged(results: readonly AckResult[], reason = ''): void {
    metrics.trainerSeen(world.now())
    for (const result of results) metrics.acknowledged(result)
    const nacked = results.filter((result) => result === 'nacked').length
    if (nacked > 0) metrics.trainerSkipped(reason, nacked)
  }

  /** Versions between the announced one and a group's oldest; null where one of them is unknown. */
  function staleness({ plan }: BatchRun, oldest: number | null): number | null {
    const newest = board.of(plan.policy.backend).version
    return newest === null || oldest === null ? null : newest - oldest
  }

  /**
   * Whether a group was begun in an epoch before the present one, or its oldest tokens are further behind the announced
   * version than its batch allows.
   */
  function isStale(run: BatchRun): (oldest: number | null, group: string) => boolean {
    const { max_staleness, backend } = run.plan.request.policy
    return (oldest, group) => {
      const { epoch, epochAt } = board.of(backend)
      if (epoch > 0 && (run.begunAt(group) ?? epochAt) < epochAt) return true
      const behind = staleness(run, oldest)
      return max_staleness !== null && behind !== null && behind > max_staleness
    }
  }

  /** The next change of the batch's groups, watched from now on, or the end of the wait. */
  function change(id: string, ms: number, signal: AbortSignal) {
    let cancel = () => {}
    const happened = new Promise<void>((resolve) => {
      const timer = setTimeout(() => cancel(), Math.max(0, ms))
      const leave = ledger.watch(id, () => cancel())
      cancel = () => {
        clearTimeout(timer)
        leave()
        waiting.delete(cancel)
        signal.removeEventListener('abort', cancel)
        resolve()
      }
      signal.addEventListener('abort', cancel)
      waiting.add(cancel)
    })
    return { happened, cancel: () => cancel() }
  }

  return {
    stop() {
      stopped = true
      for (const wake of waiting) wake()
    },

    async lease(id, request, form, signal, by = 'trainer') {
      const run = runOf(id)
      const { leased, groups, body } = await leaseEncoded(run, request, form, signal)
      const leases = handles(leased)
      if (leases.length > 0 && !signal.aborted) await ledger.renew(id, leases, request.lease_s)
      const isGone = signal.aborted
      if (isGone) await ledger.takeBack(id, leases)
      if (by === 'trainer') {
        metrics.trainerSeen(world.now())
        metrics.trainerPolled(isNative(form) ? 'native' : 'slime', isGone ? 0 : leased.length)
      }
      if (!isGone) tellLeased(run, leased)
      return { body, groups: groups.map(({ head }) => head) }
    },

    async waitReady(id, seconds, signal) {
      const run = runOf(id)
      const end = performance.now() + seconds * 1000
      for (;;) {
        const changed = change(id, end - performance.now(), signal)
        const ready = ledger.deliveries(id).ready > 0
        if (ready || run.isDone() || performance.now() >= end || signal.aborted) {
          changed.cancel()
          return ready
        }
        await changed.happened
        if (stopped) return false
      }
    },

    async letGo(id, taken) {
      const run = runOf(id)
      for (;;) {
        const leased = await ledger.lease(id, AT_ONCE, LET_GO_S, isStale(run))
        if (leased.length === 0) return
        const leases = handles(leased)
        // Nobody was heard of where nobody has it.
        if (taken) tellLeased(run, leased)
        const results = await (taken ? ledger.ack(id, leases) : ledger.nack(id, leases))
        if (taken) for (const result of results) metrics.acknowledged(result)
      }
    },

    async peek(id, form) {
      runOf(id)
      const group = await ledger.peek(id)
      if (!group) return null
      const lease = { id: '', expires_in_s: 0, delivery: 0 }
      const groups = [envelope({ ...group, lease }, !isNative(form))]
      try {
        return await pool.run('deliver', { groups, done: false, form })
      } catch (error) {
        if (!isUnencodable(error)) throw error
        await giveUp(id, group.record.id, error)
        return null
      }
    },

    async ack(id, { groups }) {
      runOf(id)
      const results = await ledger.ack(id, groups)
      tellAcknowledged(results)
      return groups.map((group, index) => ({ id: group.id, result: results[index] ?? 'unknown' }))
    },

    async takeBack(id, leases) {
      runOf(id)
      await ledger.takeBack(id, leases)
    },

    async nack(id, { groups, reason }) {
      runOf(id)
      const results = await ledger.nack(id, groups)
      tellAcknowledged(results, reason)
      return groups.map((group, index) => ({ id: group.id, result: results[index] ?? 'unknown' }))
    },
  }
}

function isNative(form: GroupForm): boolean {
  return form === 'json' || form === 'msgpack'
}

/** A body that no thread could make that has tried. */
function isLost(error: unknown): error is WorkerLost {
  return error instanceof WorkerLost && error.tries > 0
}

/** A body that ended every thread it was made on: too long for a text, or for a thread's memory. Time alone proves nothing. */
function isUnencodable(error: unknown): error is WorkerLost {
  return isLost(error) && error.exit !== 'hang_killed'
}

function handles(leased: readonly LeasedGroup[]): { id: string; lease: string }[] {
  return leased.map(({ record, lease }) => ({ id: record.id, lease: lease.id }))
}

/** Rows are copied out of their blobs: a view would take the whole blob along to the worker. */
function envelope(
  { record, lease, sealed }: LeasedGroup,
  withTrajectories: boolean,
): GroupEnvelope {
  return {
    head: { ...record.head, lease },
    episodes: record.episodes.map((head, index) => {
      const blob = sealed[index] ?? null
      const row = rowOf(blob)
      return withTrajectories && blob
        ? { head, row, trajectory: trajectoryOf(blob).slice() }
        : { head, row }
    }),
  }
}

/** A member that never played has no blob; its row is an empty grade and no samples. */
function rowOf(sealed: LeasedGroup['sealed'][number]): Uint8Array {
  return sealed ? sealed.blob.slice(0, sealed.header.row_bytes) : EMPTY_ROW
}
const EMPTY_ROW = packMap({ grade: null, samples: [] })
