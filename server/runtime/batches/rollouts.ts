// The running house behind the routes: batches by id, taken on, restored and forgotten, and the pure cores in the pool.
import { randomUUID } from 'node:crypto'
import type { AdmissionPause, BatchRequest } from '../../../protocol/batch.ts'
import { PaddockError } from '../../../protocol/errors.ts'
import { digest } from '../../../protocol/json.ts'
import { trajectoryOf } from '../../../protocol/sealed.ts'
import type { Config } from '../../config.ts'
import { countSettlements } from '../../metrics/measured-ledger.ts'
import type { Service } from '../../service.ts'
import type { TaskCatalogue } from '../packs/tasks.ts'
import type { Announced, PolicyBoard } from '../policy/policy-board.ts'
import { createSuspects } from '../threads/suspects.ts'
import { createAdmission } from './admission.ts'
import { planBatch } from './batch-plan.ts'
import { type Recovered, recoveredOf } from './batch-progress.ts'
import { type BatchRun, pauseNote, startBatch } from './batch-run.ts'
import type { BatchWorld } from './batch-world.ts'
import { explainRecord } from './explain-record.ts'
import { gradeResponse } from './grade-response.ts'
import { listedGroup } from './group-list.ts'
import { planFacts, restorePlan } from './kept-plan.ts'
import { createLeasing } from './leasing.ts'
import { oldBatches } from './old-batches.ts'
import { createShares } from './shares.ts'

/** Characters of a request from which on a thread takes its digest: the keys of all objects are sorted for it. */
const LARGE_REQUEST = 64 * 1024

const policyNote = (backend: string) => `policy/${backend}`

export interface RolloutsWorld
  extends Omit<BatchWorld, 'maxEvents' | 'onDelivery' | 'admission' | 'suspects'> {
  config: Config
  tasks: TaskCatalogue
  board: PolicyBoard
  onUndeliverable(group: string, reason: string): void
}

export interface Rollouts extends Service {
  /** Takes up what the ledger has from before; to be called once, before anything else. */
  restore(): Promise<Recovered>
  /** Batches that are not played to their end, bytes of episodes whose groups have not left, and why some batch starts no group. */
  standing(): {
    playing: number
    oldest: number
    heldBytes: number
    paused: Set<'operator' | 'contract' | 'waste' | 'disk'>
  }
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
  /** Batches whose record in the ledger is damaged. */
  const damaged = new Set<string>()
  /** Names of notes: a batch of such a name is held. */
  const noted = new Set<string>()
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
    suspects: createSuspects(),
    maxEvents: config.limits.max_events,
    onDelivery: () => shares.apply(),
  }
  const shares = createShares({ ...world, runs, limits: config.limits })
  const leasing = createLeasing(world, runOf)

  function runOf(id: string): BatchRun {
    const run = runs.get(id)
    if (!run && damaged.has(id)) throw lost(id)
    if (!run && submitted.has(id))
      throw new PaddockError('gone', `batch ${id} was done long ago; only its id is known`)
    if (!run) throw new PaddockError('not_found', `no batch ${id}`)
    return run
  }

  async function admit(id: string, request: BatchRequest, text: string, asked: string) {
    const plan = await planBatch(id, request, planWorld)
    const kept = planFacts(plan, tasks.packHash)
    await ledger.submit({ id, request: text, digest: asked, plan: kept })
    submitted.set(id, asked)
    await forgetOldBatches()
    scheduler.gate(id, shares.gateOf(plan, runs.size + 1))
    metrics.budgeted(request.tasks.length * request.group_size * request.limits.max_tokens)
    countSettlements(ledger, { id, mode: request.mode }, metrics)
    runs.set(id, startBatch(plan, batchWorld))
    shares.apply()
    return accepted(request, id)
  }

  function refuseWhenFull(): void {
    if (draining)
      throw new PaddockError('draining', 'the server is stopping; submit to another one')
    const full = shares.refusal(submitting.size)
    if (full !== null) throw new PaddockError('queue_full', full.sentence, { bound: full.bound })
  }

  function playingBatches(): { playing: number; oldest: number } {
    const playing = [...runs.values()].filter((run) => !run.isPlayed())
    const ages = playing.map(({ startedAt }) => ledger.now() - startedAt)
    return { playing: playing.length, oldest: Math.max(0, ...ages) }
  }

  /** Why no group of it starts. */
  function pausesOf(run: BatchRun, full: boolean): ('operator' | 'contract' | 'waste' | 'disk')[] {
    const own = run.pause()?.reason
    const told = !run.isPlayed() && board.of(run.plan.policy.backend).paused
    const held = !run.isPlayed() && full
    return [
      ...(own ? [own] : []),
      ...(told ? ['operator' as const] : []),
      ...(held ? ['disk' as const] : []),
    ]
  }

  async function forgetOldBatches(): Promise<void> {
    const done = [...runs].flatMap(([id, run]) => {
      const { tasks, group_size } = run.plan.request
      return run.isDone() ? [{ id, episodes: tasks.length * group_size }] : []
    })
    for (const id of oldBatches(done, noted, config.limits.keep_episodes)) {
      runs.delete(id)
      await ledger.forget(id)
    }
  }

  /** Everything that the ledger has goes on from where it was. */
  async function restore(): Promise<Recovered> {
    for (const backend of Object.keys(config.backends)) {
      const known = (await ledger.note(policyNote(backend))) as Announced | null
      if (!known) continue
      board.restore(backend, known)
      if (known.version !== null) metrics.policyVersion(known.version)
    }
    const { batches, submitted: ids, damaged: lostOnes, life } = ledger.resume()
    for (const id of lostOnes) damaged.add(id)
    for (const [id, asked] of ids) submitted.set(id, asked)
    for (const { entry, events, damage } of batches) {
      const { plan, obstacle } = await restorePlan(entry, planWorld)
      const pause = (await ledger.note(pauseNote(entry.id))) as AdmissionPause | null
      const past = { events, obstacle: damage ?? obstacle, life, pause }
      scheduler.gate(entry.id, shares.gateOf(plan, batches.length))
      metrics.recovered('batch', 1)
      countSettlements(ledger, { id: entry.id, mode: plan.request.mode }, metrics)
      runs.set(entry.id, startBatch(plan, batchWorld, past))
    }
    for (const name of await ledger.notes()) noted.add(name)
    shares.apply()
    const all = [...runs.values()].map((run) => run.progress())
    await forgetOldBatches()
    return recoveredOf(all)
  }

  return {
    restore,
    async submit(request) {
      const id = request.id ?? `b-${randomUUID()}`
      if (damaged.has(id)) throw lost(id)
      const text = JSON.stringify(request)
      const asked =
        text.length < LARGE_REQUEST
          ? digest(request, 32)
          : await pool.run('digest', { text, length: 32 })
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
      const promise = admit(id, request, text, asked).finally(() => submitting.delete(id))
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

    async resume(id) {
      const run = runOf(id)
      await run.resume()
      return run.progress()
    },

    async discard(id) {
      await runOf(id).cancel()
      const letGo = () => ledger.lease(id, 1, 1, () => true).then(() => {})
      // A group may be on its way into the ledger.
      ledger.watch(id, () => void letGo().catch(world.onError))
      await letGo()
    },

    lease: leasing.lease,
    waitReady: leasing.waitReady,
    peek: leasing.peek,
    ack: leasing.ack,
    nack: leasing.nack,
    takeBack: leasing.takeBack,
    letGo: leasing.letGo,

    async reclaim(id, kept) {
      runOf(id)
      await ledger.reclaim(id, kept)
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
      shares.apply()
      const { epochAt: _, ...told } = now
      return { backend, ...told }
    },

    heartbeat({ step, checkpoint_step }) {
      const checkpoint = checkpoint_step ?? null
      metrics.heartbeat(step, checkpoint, world.now())
      return { step, checkpoint_step: checkpoint }
    },

    polarPolled(groups) {
      metrics.trainerSeen(world.now())
      metrics.trainerPolled('polar', groups)
    },

    standing() {
      const full = shares.isLedgerFull()
      return {
        ...playingBatches(),
        heldBytes: [...runs.keys()].reduce((sum, id) => sum + ledger.heldBytes(id), 0),
        paused: new Set([...runs.values()].flatMap((run) => pausesOf(run, full))),
      }
    },
    grade: (asked) => gradeResponse(asked, world),
    parse: (line) => pool.run('parse', line),
    advantages: (line) => pool.run('advantages', line),
    note: (name) => ledger.note(name),
    notes: () => ledger.notes(),
    async keepNote(name, value) {
      if (value !== null) noted.add(name)
      await ledger.keepNote(name, value)
      if (value === null) noted.delete(name)
    },
    notReady: () => [
      ...(draining ? ['the server is stopping'] : []),
      ...[...metrics.backendsDown().keys()].map((backend) => `backend ${backend} gives no tokens`),
    ],
    metrics: (form) => metrics.text(form),

    async drain(graceMs) {
      draining = true
      shares.stop()
      metrics.draining()
      leasing.stop()
      scheduler.pause(true)
      const grace = new Promise<void>((resolve) => setTimeout(resolve, graceMs).unref())
      await Promise.race([scheduler.idle(), grace])
      if (ledger.outlives) for (const run of runs.values()) run.halt()
      else await Promise.all([...runs.values()].map((run) => run.cancel()))
    },
  }
}

function lost(id: string): PaddockError {
  return new PaddockError(
    'gone',
    `batch ${id} is lost: its record in the ledger is damaged; submit its tasks under another id`,
    { path: 'id' },
  )
}

function accepted(request: BatchRequest, id: string) {
  const groups = request.tasks.length
  return { id, groups, episodes: groups * request.group_size }
}
