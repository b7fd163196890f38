// slime's rollout buffer over the service: a run of batches, each poll an answer of leased groups, acknowledged by the next.
import { PaddockError } from '../../protocol/errors.ts'
import { canonicalJson, type JsonObject } from '../../protocol/json.ts'
import type { Config } from '../config.ts'
import type { Service } from '../service.ts'
import { foreignBatch } from './foreign-batch.ts'
import { createLock } from './lock.ts'
import { answerBody, type GroupFigures, listText, nothing, statsOf } from './slime-answer.ts'
import { instanceOf } from './slime-items.ts'
import {
  type HandedOut,
  isOver,
  newRun,
  placeOf,
  type SlimeRun,
  slimeReducer,
} from './slime-run.ts'
import { readSelection } from './slime-selection.ts'
import {
  type SelectedTask,
  type SlimeStart,
  type StartRequest,
  samplingOf,
  skippedInstances,
} from './slime-start.ts'
import {
  idOf,
  NOTHING_WRITTEN,
  type Written,
  wholeGroups,
  withoutGroups,
  writeItem,
} from './slime-written.ts'

/** An answer to a poll, and what must be called once it is out, or cannot go out any more. */
interface SlimeAnswer {
  body: Uint8Array
  ended(sent: boolean): Promise<void>
}

export interface SlimeBuffer {
  /** Begins a run, or goes on with the one that this trainer had. Throws PaddockError where it cannot be played. */
  start(request: StartRequest): Promise<JsonObject>
  /** One call at a time: the next waits until this answer has `ended`. */
  poll(): Promise<SlimeAnswer>
  /** Takes an item of a worker of the trainer's own. */
  write(item: unknown): Promise<void>
}

/** Batches that play ahead of the trainer: one is read while the other plays. */
const BATCHES_AHEAD = 2
/** Groups of one where slime's batch size is not set. */
const GROUPS_A_BATCH = 32
/** A group whose lease has run out goes back, and is let go when it comes again: it was handed out. */
const LEASE_S = 600
const NOTE = 'slime'

/** All that is remembered; the tasks of a run, which do not change, lie in a note of their own. */
interface Kept {
  run: SlimeRun
  start: SlimeStart
  written: Written
  /** Keys of the written groups in the last answer. */
  handedOut: string[]
  runs: number
}

interface Current extends Kept {
  tasks: SelectedTask[]
}

/** `now` gives Unix seconds. */
export function createSlimeBuffer(
  service: Service,
  config: Config,
  now: () => number = () => Date.now() / 1000,
): SlimeBuffer {
  const settings = config.dialects.slime
  const batchSize = settings.rollout_batch_size ?? GROUPS_A_BATCH
  const lock = createLock()
  let current: Current | null = null
  let loaded = false

  async function load(): Promise<Current | null> {
    if (loaded) return current
    const kept = (await service.note(NOTE)) as unknown as Kept | null
    const tasks = kept && (await service.note(tasksNote(kept.run.id)))
    if (kept && tasks) current = { ...kept, tasks: tasks.tasks as unknown as SelectedTask[] }
    loaded = true
    return current
  }

  async function keep(changed: Current): Promise<void> {
    const { tasks, ...kept } = changed
    current = changed
    await service.keepNote(NOTE, kept as unknown as JsonObject)
  }

  const feed = (state: Current, ...events: Parameters<typeof slimeReducer>[1][]): Current => ({
    ...state,
    run: events.reduce(slimeReducer, state.run),
  })

  async function resolve(
    request: StartRequest,
  ): Promise<{ start: SlimeStart; tasks: SelectedTask[]; selected: boolean }> {
    const pack = settings.packs[request.task_type] ?? request.task_type
    const known = service.tasks(pack).map(({ id }) => id)
    if (known.length === 0)
      throw new PaddockError(
        'invalid_request',
        `no pack ${pack}: there are ${packNames(service)}; name one by --rollout-task-type, or map it in dialects.slime.packs`,
        { path: 'task_type' },
      )
    const { data_dir } = settings
    const selection = await readSelection(data_dir, request.input_file, pack, new Set(known))
    const start = {
      pack,
      group_size: request.num_repeat_per_sample,
      epochs: request.num_epoch,
      url: settings.engine === 'request' ? request.remote_engine_url || null : null,
      sampling: samplingOf(request),
    }
    return {
      start,
      tasks: selection ?? known.map((task) => ({ task })),
      selected: selection !== null,
    }
  }

  /** The run of before where it is the same training: not polled yet, or resumed with what it had. */
  async function begin(start: SlimeStart, tasks: SelectedTask[], skip: number[]): Promise<Current> {
    const before = await load()
    const total = tasks.length * start.epochs
    const same =
      before !== null &&
      canonicalJson([before.start.pack, before.start.group_size, before.tasks]) ===
        canonicalJson([start.pack, start.group_size, tasks])
    if (before && same && (!before.run.polled || skip.length > 0)) {
      await release(before, new Set(skip))
      // What runs asks an engine that is gone.
      if (before.start.url !== start.url)
        for (const { id } of before.run.batches) await known(() => service.cancel(id))
      return { ...feed(before, { type: 'restart', skip, total }), start, handedOut: [] }
    }
    if (before) await forget(before)
    const runs = (before?.runs ?? 0) + 1
    const run = newRun(`slime-${runs}`, total, skip)
    await service.keepNote(tasksNote(run.id), { tasks } as unknown as JsonObject)
    return { run, start, tasks, written: NOTHING_WRITTEN, handedOut: [], runs }
  }

  /** Of the last answer of a trainer that is back: what it has is acknowledged, the rest handed out again. */
  async function release({ run }: Current, has: ReadonlySet<number>): Promise<void> {
    const groups = run.answer?.groups ?? []
    const isKnown = (group: HandedOut) => has.has(placeOf(run, group)?.instance ?? -1)
    await answerLeases('ack', groups.filter(isKnown))
    await answerLeases(
      'nack',
      groups.filter((group) => !isKnown(group)),
    )
  }

  async function forget({ run }: Current): Promise<void> {
    await answerLeases('nack', run.answer?.groups ?? [])
    for (const { id } of run.batches) await known(() => service.discard(id))
  }

  async function answerLeases(how: 'ack' | 'nack', handed: readonly HandedOut[]): Promise<void> {
    for (const batch of new Set(handed.map((group) => group.batch))) {
      const groups = handed.filter((group) => group.batch === batch)
      await known(() =>
        service[how](batch, { groups: groups.map(({ id, lease }) => ({ id, lease })) }),
      )
    }
  }

  /** Groups that never come are played again, or given up; a batch that the server has lost is played again whole. */
  async function account(state: Current): Promise<Current> {
    let next = state
    for (const { id: batch } of state.run.batches) {
      const progress = await known(async () => service.progress(batch))
      if (!progress) next = feed(next, { type: 'lost', batch })
      for (const { id, verdict } of progress?.groups.dropped ?? []) {
        const why = FLAT.has(verdict) ? 'flat' : MACHINERY.has(verdict) ? 'machinery' : 'task'
        next = feed(next, { type: 'dropped', batch, index: indexOf(id), why })
      }
    }
    return next
  }

  /** Submits until two batches have groups that were not handed out, or the passes are over. */
  async function playAhead(state: Current): Promise<Current> {
    let next = state
    while (next.run.batches.length < BATCHES_AHEAD) {
      const batch = `${next.run.id}.${next.run.opened}`
      const opened = feed(next, { type: 'open', batch, count: batchSize })
      if (opened === next || opened.run.opened === next.run.opened) return next
      // First the note: a batch that it names and the server does not know is played again.
      await keep(opened)
      try {
        await service.submit(requestOf(opened, batch))
      } catch (error) {
        await keep(feed(opened, { type: 'lost', batch }))
        throw error
      }
      next = opened
    }
    return next
  }

  function requestOf({ run, start, tasks }: Current, id: string) {
    const places = run.batches.find((batch) => batch.id === id)?.places ?? []
    const asked = places.flatMap((place) => {
      const task = place && tasks[place.instance % tasks.length]
      return task ? [{ ...task, metadata: { slime: { instance_id: place.instance } } }] : []
    })
    const { group_size, url, sampling } = start
    const ask = { id, tasks: asked, group_size, url, sampling }
    return foreignBatch(ask, settings.batch, config.backends)
  }

  /** Leases what is ready, up to what the trainer's batch still lacks. */
  async function lease(state: Current) {
    const handed: HandedOut[] = []
    const bodies: Uint8Array[] = []
    const stats: GroupFigures[] = []
    const instances: number[] = []
    const { rollout_batch_size: size } = settings
    let room = size === null ? 1024 : size - (state.run.arrived % size)
    const form = { kind: 'slime', reward: settings.reward, at: now() } as const
    for (const { id: batch } of state.run.batches) {
      if (room === 0) break
      const request = { max: Math.min(room, 1024), lease_s: LEASE_S, wait_s: 0 }
      const answer = await service.lease(batch, request, form, new AbortController().signal)
      const leased = answer.groups.map((head) => ({
        head,
        group: { batch, index: indexOf(head.id), id: head.id, lease: head.lease.id },
      }))
      const arrived = leased.filter(({ group }) => placeOf(state.run, group) === null)
      if (arrived.length > 0) {
        // Handed out before its lease ran out: it is not handed out twice. The rest comes with the next poll.
        await answerLeases(
          'ack',
          arrived.map(({ group }) => group),
        )
        await answerLeases(
          'nack',
          leased.filter((one) => !arrived.includes(one)).map(({ group }) => group),
        )
        continue
      }
      if (leased.length === 0) continue
      bodies.push(answer.body)
      for (const { head, group } of leased) {
        handed.push(group)
        instances.push(instanceOf(head))
        stats.push({ n: head.stats.scored, mean: head.stats.mean ?? 0 })
      }
      room -= leased.length
    }
    return { handed, bodies, stats, instances, room }
  }

  async function answer(): Promise<Uint8Array> {
    const state = await load()
    if (!state) return nothing('no rollout was started here: start the trainer again')
    const { run, handedOut, written } = state
    const groups = run.answer?.groups ?? []
    await answerLeases(run.answer?.sent ? 'ack' : 'nack', groups)
    const arrived = run.answer?.sent ? withoutGroups(written, handedOut) : written
    let next = feed({ ...state, written: arrived, handedOut: [] }, { type: 'poll' })
    next = await account(next)
    await keep(next)
    let problem = ''
    try {
      next = await playAhead(next)
    } catch (error) {
      if (!(error instanceof PaddockError) || error.code === 'internal') throw error
      // What is ready goes out all the same.
      problem = error.message
      next = current ?? next
    }
    const leased = await lease(next)
    const whole = wholeGroups(next.written, next.start.group_size).slice(0, leased.room)
    if (leased.handed.length + whole.length === 0) {
      const over = isOver(next.run)
        ? `: all ${next.run.total} groups were played, raise --num-epoch`
        : ''
      return nothing(`No data available to read${problem && `: ${problem}`}${over}`)
    }
    const event = { type: 'answer', groups: leased.handed } as const
    await keep({ ...feed(next, event), handedOut: whole.map(([key]) => key) })
    const items = whole.map(([, of]) => of)
    const bodies = [...leased.bodies, ...items.map(listText)]
    const stats = [...leased.stats, ...items.map(statsOf)]
    const finished = [...leased.instances, ...items.map(idOf), ...next.run.flat]
    return answerBody(bodies, stats, finished)
  }

  return {
    async start(request) {
      const release = await lock()
      try {
        const { start, tasks, selected } = await resolve(request)
        const begun = await begin(start, tasks, skippedInstances(request))
        await keep(begun)
        const playing = await playAhead(begun)
        const { input_file } = request
        return {
          message: 'Rollout started',
          run: playing.run.id,
          groups: playing.run.total,
          tasks: tasks.length,
          ...(input_file &&
            !selected && { input_file: 'ignored: no file of dialects.slime.data_dir' }),
        }
      } finally {
        release()
      }
    },

    async poll() {
      const release = await lock()
      try {
        const body = await answer()
        return {
          body,
          async ended(sent) {
            try {
              if (sent && current?.run.answer) await keep(feed(current, { type: 'sent' }))
            } finally {
              release()
            }
          },
        }
      } catch (error) {
        release()
        throw error
      }
    },

    async write(item) {
      const release = await lock()
      try {
        const state = await load()
        if (!state)
          throw new PaddockError(
            'invalid_request',
            'no rollout was started: its group size is not known',
          )
        if (settings.reward === 'advantage')
          throw new PaddockError(
            'invalid_request',
            'answers carry advantages (dialects.slime.reward), and a written item has none',
          )
        const { group_size: groupSize } = state.start
        const written = writeItem(state.written, item, { groupSize, total: state.run.total })
        if (written !== state.written) await keep({ ...state, written })
      } finally {
        release()
      }
    },
  }
}

const FLAT = new Set(['zero_variance'])
const MACHINERY = new Set(['infra', 'timeout', 'aborted'])

const tasksNote = (run: string): string => `${NOTE}.tasks.${run}`

function packNames(service: Service): string {
  return [...new Set(service.tasks().map(({ pack }) => pack))].join(', ')
}

/** `slime-1.0.g3` is the group at 3 of its batch. */
function indexOf(group: string): number {
  return Number(group.slice(group.lastIndexOf('.g') + 2))
}

/** Null where the server does not know the batch any more. */
async function known<T>(ask: () => Promise<T>): Promise<T | null> {
  try {
    return await ask()
  } catch (error) {
    if (error instanceof PaddockError && (error.code === 'not_found' || error.code === 'gone'))
      return null
    throw error
  }
}
