// The running house behind the routes: batches by id, leases over the ledger, and the pure cores in the pool.
import { randomUUID } from 'node:crypto'
import type { BatchRequest } from '../../protocol/batch.ts'
import type { GroupEnvelope } from '../../protocol/delivery.ts'
import { PaddockError } from '../../protocol/errors.ts'
import type { AckResult, LeaseRequest } from '../../protocol/group.ts'
import { digest } from '../../protocol/json.ts'
import { packMap } from '../../protocol/msgpack.ts'
import { trajectoryOf } from '../../protocol/sealed.ts'
import type { LeasedGroup } from '../../rollout/ports.ts'
import type { Config } from '../config.ts'
import { countSettlements } from '../metrics/measured-ledger.ts'
import type { Service } from '../service.ts'
import { createAdmission } from './admission.ts'
import { type BatchPlan, planBatch } from './batch-plan.ts'
import { type BatchRun, type BatchWorld, startBatch } from './batch-run.ts'
import { explainRecord } from './explain-record.ts'
import { gradeResponse } from './grade-response.ts'
import { listedGroup } from './group-list.ts'
import { planFacts, restorePlan } from './kept-plan.ts'
import type { Announced, PolicyBoard } from './policy-board.ts'
import type { Gate } from './scheduler.ts'
import type { TaskCatalogue } from './tasks.ts'

/** Batches that are done stay readable, the newest of them; of older ones only the id is known. */
const KEPT_DONE_BATCHES = 32

const policyNote = (backend: string) => `policy/${backend}`

export interface RolloutsWorld extends Omit<BatchWorld, 'maxEvents' | 'onDelivery' | 'admission'> {
  config: Config
  tasks: TaskCatalogue
  board: PolicyBoard
}

export interface Rollouts extends Service {
  /** Takes up what the ledger has from before; to be called once, before anything else. */
  restore(): Promise<void>
  /** Batches that are not done, bytes of episodes whose groups have not left, and why some batch starts no group. */
  standing(): { open: number; heldBytes: number; paused: Set<'operator' | 'contract' | 'waste'> }
  /** No new batch is taken and no new episode starts; resolves when what runs has ended or `graceMs` is over. */
  drain(graceMs: number): Promise<void>
}

export function createRollouts(world: RolloutsWorld): Rollouts {
  const { config, ledger, pool, tasks, metrics, scheduler, board } = world
  const runs = new Map<string, BatchRun>()
  /** Digest of each request that was ever submitted, by its batch's id: an id is never taken twice. */
  const submitted = new Map<string, string>()
  /** Batches that are being planned: the same id twice at once is one batch. */
  const submitting = new Map<string, { digest: string; accepted: ReturnType<Service['submit']> }>()
  /** Ends the wait of every lease that waits. */
  const waiting = new Set<() => void>()
  let draining = false
  const planWorld = {
    backends: config.backends,
    engineHosts: config.dialects.engine_hosts,
    asks: config,
    tasks,
  }
  const batchWorld: BatchWorld = {
    ...world,
    admission: createAdmission(metrics.canaryChecked),
    maxEvents: config.limits.max_events,
    onDelivery: holdWhenFull,
  }

  const runOf = (id: string): BatchRun => {
    const run = runs.get(id)
    if (!run && submitted.has(id))
      throw new PaddockError('gone', `batch ${id} was done long ago; only its id is known`)
    if (!run) throw new PaddockError('not_found', `no batch ${id}`)
    return run
  }

  async function admit(id: string, request: BatchRequest, asked: string) {
    const plan = await planBatch(id, request, planWorld)
    const kept = planFacts(plan, tasks.packHash)
    await ledger.submit({ id, request: JSON.stringify(request), digest: asked, plan: kept })
    submitted.set(id, asked)
    await forgetOldBatches()
    scheduler.gate(id, gateOf(plan, runs.size + 1))
    metrics.budgeted(request.tasks.length * request.group_size * request.limits.max_tokens)
    countSettlements(ledger, { id, mode: request.mode }, metrics)
    runs.set(id, startBatch(plan, batchWorld))
    holdWhenFull()
    return accepted(request, id)
  }

  /** No new group of a batch starts while nobody takes its finished ones, and nothing where its backend is paused. */
  function holdWhenFull(): void {
    const open = [...runs.values()].filter((run) => !run.isPlayed())
    const unread = playedButUnread()
    for (const { plan } of open) scheduler.gate(plan.id, gateOf(plan, open.length, unread))
  }

  /**
   * A bound is a batch's share of it: one that nobody reads stops itself and not its neighbours. What cannot be read
   * yet holds nothing up, or a batch whose advantages need its last group would wait for itself.
   */
  function gateOf(
    { id, policy: asked }: BatchPlan,
    open: number,
    waiting = playedButUnread(),
  ): Gate {
    if (board.of(asked.backend).paused) return 'paused'
    // What has started goes on: its groups may be good ones.
    if (runs.get(id)?.pause()) return 'held'
    const { ready, leased } = ledger.deliveries(id)
    const { max_groups_ready, max_bytes } = config.limits
    const tooMany = ready >= Math.max(1, Math.floor((max_groups_ready - waiting.groups) / open))
    const share = Math.max(0, max_bytes - waiting.bytes) / open
    const tooLarge = ready + leased > 0 && ledger.heldBytes(id) >= share
    return tooMany || tooLarge ? 'held' : 'open'
  }

  /** What batches that are played still hold, which is taken from the share of those that play. */
  function playedButUnread(): { groups: number; bytes: number } {
    const played = [...runs.keys()].filter((id) => runs.get(id)?.isPlayed())
    const sum = (value: (id: string) => number) =>
      played.reduce((total, id) => total + value(id), 0)
    return { groups: sum((id) => ledger.deliveries(id).ready), bytes: sum(ledger.heldBytes) }
  }

  async function forgetOldBatches(): Promise<void> {
    const done = [...runs].filter(([, run]) => run.isDone())
    for (const [id] of done.slice(0, -KEPT_DONE_BATCHES)) {
      runs.delete(id)
      await ledger.forget(id)
    }
  }

  /** Everything that the ledger has goes on from where it was. */
  async function restore(): Promise<void> {
    for (const backend of Object.keys(config.backends)) {
      const known = (await ledger.note(policyNote(backend))) as Announced | null
      if (!known) continue
      board.restore(backend, known)
      if (known.version !== null) metrics.policyVersion(known.version)
    }
    const { batches, submitted: ids, life } = ledger.resume()
    for (const [id, asked] of ids) submitted.set(id, asked)
    for (const { entry, events, damage } of batches) {
      const { plan, obstacle } = await restorePlan(entry, planWorld)
      const past = { events, obstacle: damage ?? obstacle, life }
      scheduler.gate(entry.id, gateOf(plan, batches.length))
      metrics.recovered('batch', 1)
      countSettlements(ledger, { id: entry.id, mode: plan.request.mode }, metrics)
      runs.set(entry.id, startBatch(plan, batchWorld, past))
    }
    holdWhenFull()
    await forgetOldBatches()
  }

  /** Why finished groups must be taken before more is taken on, as a sentence; null where there is room. */
  function waitingTooMuch(): string | null {
    const { max_groups_ready, max_bytes } = config.limits
    const { ready } = ledger.standing()
    const bytes = [...runs.keys()].reduce((sum, id) => sum + ledger.heldBytes(id), 0)
    if (ready >= max_groups_ready)
      return `${ready} finished groups wait to be leased, which is the limit (limits.max_groups_ready); lease and acknowledge some`
    if (bytes >= max_bytes)
      return `${bytes} bytes of episodes wait to be leased or for their group's end, which is the limit (limits.max_bytes)`
    return null
  }

  function refuseWhenFull(): void {
    if (draining)
      throw new PaddockError('draining', 'the server is stopping; submit to another one')
    const { max_batches, max_groups_ready } = config.limits
    const open = [...runs.values()].filter((run) => !run.isDone())
    const playing = open.filter((run) => !run.isPlayed()).length + submitting.size
    const full = ledger.full() ?? waitingTooMuch()
    if (full !== null) throw new PaddockError('queue_full', full)
    if (playing >= max_batches)
      throw new PaddockError('queue_full', `${playing} batches are played, which is the limit`)
    // One that is played and not read holds at least one group.
    if (open.length - playing >= max_groups_ready)
      throw new PaddockError(
        'queue_full',
        `${open.length - playing} batches wait to be read, which is the limit; lease and acknowledge some`,
      )
  }

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
      if (draining) return []
    }
  }

  function tellAcknowledged(results: readonly AckResult[]): void {
    metrics.trainerSeen(world.now())
    for (const result of results) metrics.acknowledged(result)
    const nacked = results.filter((result) => result === 'nacked').length
    if (nacked > 0) metrics.trainerSkipped('other', nacked)
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
    restore,
    async submit(request) {
      const id = request.id ?? `b-${randomUUID()}`
      const asked = digest(request, 32)
      const underWay = submitting.get(id)
      const before = submitted.get(id) ?? underWay?.digest
      if (before !== undefined && before !== asked)
        throw new PaddockError(
          'conflict',
          `batch ${id} was submitted with another request; choose another id`,
          { path: 'id' },
        )
      if (submitted.has(id) || underWay) metrics.submittedAgain()
      if (submitted.has(id)) return accepted(request, id)
      if (underWay) return underWay.accepted
      metrics.trainerSeen(world.now())
      refuseWhenFull()
      const promise = admit(id, request, asked).finally(() => submitting.delete(id))
      submitting.set(id, { digest: asked, accepted: promise })
      return promise
    },

    progress: (id) => runOf(id).progress(),
    batches: () => [...runs.values()].map((run) => run.progress()),

    async cancel(id) {
      const run = runOf(id)
      await run.cancel()
      return run.progress()
    },

    async evaluation(id, { k, ...settings }) {
      const { plan, evaluated } = runOf(id)
      const { mode, group_size } = plan.request
      if (mode !== 'eval')
        throw new PaddockError(
          'invalid_request',
          `batch ${id} is in mode ${mode}: groups that it drops would be in no mean; submit it in mode eval`,
        )
      const ks = k ?? [...new Set([1, group_size])]
      return pool.run('evaluate', { tasks: evaluated(), settings: { ...settings, k: ks } })
    },

    resume(id) {
      const run = runOf(id)
      run.resume()
      return run.progress()
    },

    async discard(id) {
      await runOf(id).cancel()
      const letGo = () => ledger.lease(id, 1, 1, () => true).then(() => {})
      // A group may be on its way into the ledger.
      ledger.watch(id, () => void letGo().catch(world.onError))
      await letGo()
    },

    async lease(id, request, form, signal) {
      const run = runOf(id)
      const leased = await leaseWithin(run, request, signal)
      metrics.trainerSeen(world.now())
      for (const { record, lease } of leased)
        metrics.leased({
          mode: run.plan.request.mode,
          delivery: lease.delivery,
          staleness: staleness(run, record.head.policy.version_min),
        })
      const done = leased.length === 0 && run.isDone()
      const native = form === 'json' || form === 'msgpack'
      metrics.trainerPolled(native ? 'native' : 'slime', leased.length)
      const groups = leased.map((group) => envelope(group, !native))
      const leases = leased.map(({ record, lease }) => ({ id: record.id, lease: lease.id }))
      const body = await pool.run('deliver', { groups, done, form }).catch(async (error) => {
        // Nobody has seen them: the next lease need not wait until these have run out.
        await ledger.nack(id, leases)
        throw error
      })
      if (signal.aborted) await ledger.nack(id, leases)
      else if (leases.length > 0) await ledger.renew(id, leases, request.lease_s)
      return { body, groups: groups.map(({ head }) => head) }
    },

    async peek(id, form) {
      runOf(id)
      const [group] = await ledger.peek(id)
      if (!group) return null
      const lease = { id: '', expires_in_s: 0, delivery: 0 }
      const native = form === 'json' || form === 'msgpack'
      const groups = [envelope({ ...group, lease }, !native)]
      return pool.run('deliver', { groups, done: false, form })
    },

    async ack(id, { groups }) {
      runOf(id)
      const results = await ledger.ack(id, groups)
      tellAcknowledged(results)
      return groups.map((group, index) => ({ id: group.id, result: results[index] ?? 'unknown' }))
    },

    async nack(id, { groups }) {
      runOf(id)
      const results = await ledger.nack(id, groups)
      tellAcknowledged(results)
      return groups.map((group, index) => ({ id: group.id, result: results[index] ?? 'unknown' }))
    },

    events: (id) => runOf(id).events,
    tasks: (pack) => tasks.summaries(pack),

    async task(id) {
      const { task } = tasks.get(id)
      const { environment, spec } = task
      const seed = Number.isSafeInteger(spec.seed) ? (spec.seed as number) : 0
      return pool.run('show', { environment, id, spec, seed })
    },

    async explain(id) {
      const record = await ledger.group(id.slice(0, Math.max(0, id.lastIndexOf('.g'))), id)
      if (!record) throw new PaddockError('not_found', `no finished group ${id}`)
      return explainRecord(record)
    },

    async episode(id) {
      const sealed = await ledger.episode(id)
      if (!sealed) throw new PaddockError('not_found', `no finished episode ${id}`)
      return trajectoryOf(sealed)
    },

    async tokens(id) {
      const sealed = await ledger.episode(id)
      if (!sealed) throw new PaddockError('not_found', `no finished episode ${id}`)
      const { header, blob } = sealed
      return pool.run('tokens', { header: { row_bytes: header.row_bytes }, blob })
    },

    async groups(id, { offset, limit }) {
      const all = runOf(id).groups()
      const page = all.slice(offset, offset + limit).map(async (group) => {
        const record = group.settled ? await ledger.group(id, group.id) : null
        return listedGroup(group, record)
      })
      return { total: all.length, groups: await Promise.all(page) }
    },

    async announcePolicy({ backend, ...announcement }) {
      if (!Object.hasOwn(config.backends, backend))
        throw new PaddockError('invalid_request', `no backend ${backend}`, { path: 'backend' })
      const now = board.announce(backend, announcement, ledger.now())
      await ledger.keepNote(policyNote(backend), { ...now })
      if (now.version !== null) metrics.policyVersion(now.version)
      holdWhenFull()
      const { epochAt: _, ...told } = now
      return { backend, ...told }
    },

    heartbeat({ step, checkpoint_step }) {
      const checkpoint = checkpoint_step ?? null
      metrics.heartbeat(step, checkpoint, world.now())
      return { step, checkpoint_step: checkpoint }
    },

    standing: () => ({
      open: [...runs.values()].filter((run) => !run.isDone()).length,
      heldBytes: [...runs.keys()].reduce((sum, id) => sum + ledger.heldBytes(id), 0),
      paused: new Set(
        [...runs.values()].flatMap((run) => {
          const reason = run.pause()?.reason
          const told = !run.isPlayed() && board.of(run.plan.policy.backend).paused
          return [...(reason ? [reason] : []), ...(told ? ['operator' as const] : [])]
        }),
      ),
    }),
    grade: (asked) => gradeResponse(asked, world),
    parse: (line) => pool.run('parse', line),
    advantages: (line) => pool.run('advantages', line),
    note: (name) => ledger.note(name),
    keepNote: (name, value) => ledger.keepNote(name, value),
    notReady: () => [
      ...(draining ? ['the server is stopping'] : []),
      ...metrics.backendsDown().map((backend) => `backend ${backend} gives no tokens`),
    ],
    metrics: (form) => metrics.text(form),

    async drain(graceMs) {
      draining = true
      metrics.draining()
      for (const wake of waiting) wake()
      scheduler.pause(true)
      const grace = new Promise<void>((resolve) => setTimeout(resolve, graceMs).unref())
      await Promise.race([scheduler.idle(), grace])
      if (ledger.outlives) for (const run of runs.values()) run.halt()
      else await Promise.all([...runs.values()].map((run) => run.cancel()))
    },
  }
}

function accepted(request: BatchRequest, id: string) {
  const groups = request.tasks.length
  return { id, groups, episodes: groups * request.group_size }
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
