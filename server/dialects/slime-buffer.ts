// slime's rollout buffer over the service: each poll is answered with leased groups, and acknowledges the answer before.
import { PaddockError } from '../../protocol/errors.ts'
import { canonicalJson, type JsonObject } from '../../protocol/json.ts'
import type { Config } from '../config.ts'
import type { Service } from '../service.ts'
import { foreignBatch } from './foreign-batch.ts'
import type { Handover } from './last-byte.ts'
import { createLock } from './lock.ts'
import { answerBody, listText, nothing, statsOf } from './slime-answer.ts'
import { createSlimeBatches, type News } from './slime-batches.ts'
import {
  isOver,
  newRun,
  openPlaces,
  placeOf,
  type SlimeEvent,
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

/** An answer to a poll; `handover` where it hands something out. */
interface SlimeAnswer {
  body: Uint8Array
  handover: Handover | null
}

export interface SlimeBuffer {
  /** Begins a run, or goes on with the one that this trainer had. Throws PaddockError where it cannot be played. */
  start(request: StartRequest): Promise<JsonObject>
  /** One call at a time: the next waits until this answer's handover has `ended`. */
  poll(): Promise<SlimeAnswer>
  /** Takes an item of a worker of the trainer's own. */
  write(item: unknown): Promise<void>
}

/** Batches that play ahead of the trainer: one is read while the other plays. */
const BATCHES_AHEAD = 2
/** Groups of one where slime's batch size is not set. */
const GROUPS_A_BATCH = 32
const NOTE = 'slime'

/** All that is remembered; the tasks of a run, which do not change, lie in a note of their own. */
interface Kept {
  run: SlimeRun
  start: SlimeStart
  written: Written
  /** How many runs there were, for their names. */
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
  const batches = createSlimeBatches(service)
  const lock = createLock()
  let current: Current | null = null
  let loaded = false

  async function load(): Promise<Current | null> {
    if (loaded) return current
    const kept = (await service.note(NOTE)) as unknown as Kept | null
    const tasks = kept && (await service.note(tasksNote(kept.run.id)))
    if (kept && tasks) {
      current = { ...kept, tasks: tasks.tasks as unknown as SelectedTask[] }
      await batches.holdAgain(kept.run)
      await batches.reclaim(kept.run)
    }
    loaded = true
    return current
  }

  /** A batch is held from before the run names it until it does no more. */
  async function keep(changed: Current): Promise<void> {
    const { tasks, ...kept } = changed
    const before = new Set(current?.run.batches.map(({ id }) => id))
    const after = new Set(changed.run.batches.map(({ id }) => id))
    current = changed
    await batches.hold([...after].filter((id) => !before.has(id)))
    await service.keepNote(NOTE, kept as unknown as JsonObject)
    await batches.release([...before].filter((id) => !after.has(id)))
  }

  const feed = (state: Current, ...events: SlimeEvent[]): Current => ({
    ...state,
    run: events.reduce(slimeReducer, state.run),
  })

  /** What the request asks for; `selected` says whether its input file was one of ours. */
  async function resolve(
    request: StartRequest,
  ): Promise<{ start: SlimeStart; tasks: SelectedTask[]; selected: boolean }> {
    const { task_type } = request
    const mapped = Object.hasOwn(settings.packs, task_type) ? settings.packs[task_type] : null
    const pack = mapped ?? task_type
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
    const tasks = selection ?? known.map((task) => ({ task }))
    return { start, tasks, selected: selection !== null }
  }

  /** The run of before where it is the same training: not polled yet, or resumed with what it had. Else a new one. */
  async function begin(
    start: SlimeStart,
    tasks: SelectedTask[],
    skip: readonly unknown[],
  ): Promise<Current> {
    const before = await load()
    const total = tasks.length * start.epochs
    const of = (one: Pick<Current, 'start' | 'tasks'>) =>
      canonicalJson([one.start.pack, one.start.group_size, one.tasks] as never)
    const same = before !== null && of(before) === of({ start, tasks })
    const instances = skippedInstances(skip)
    if (same && (!before.run.polled || skip.length > 0)) {
      await settleAnswer(before, new Set(instances))
      const written = withoutGroups(
        before.written,
        skip.map((id) => JSON.stringify(id)),
      )
      // What plays asks an engine that is gone.
      if (before.start.url !== start.url) await batches.cancel(before.run)
      return { ...feed(before, { type: 'restart', skip: instances, total }), start, written }
    }
    if (before) {
      await batches.nack(before.run.answer?.groups ?? [])
      await batches.discard(before.run)
      await service.keepNote(tasksNote(before.run.id), null)
    }
    const runs = (before?.runs ?? 0) + 1
    const run = newRun(`slime-${runs}`, total, instances)
    await service.keepNote(tasksNote(run.id), { tasks } as unknown as JsonObject)
    return { run, start, tasks, written: NOTHING_WRITTEN, runs }
  }

  /** Of the last answer of a trainer that is back: what it has is acknowledged, the rest handed out again. */
  async function settleAnswer({ run }: Current, has: ReadonlySet<number>): Promise<void> {
    const groups = run.answer?.groups ?? []
    const kept = groups.filter((group) => has.has(placeOf(run, group)?.instance ?? -1))
    await batches.ack(kept)
    await batches.nack(groups.filter((group) => !kept.includes(group)))
  }

  /** Submits until two batches have groups that were not handed out, enough for an answer, or the passes are over. */
  async function playAhead(state: Current): Promise<Current> {
    let next = state
    while (next.run.batches.length < BATCHES_AHEAD || openPlaces(next.run) < batchSize) {
      const batch = `${next.run.id}.${next.run.opened}`
      const opened = feed(next, { type: 'open', batch, count: batchSize })
      if (opened.run === next.run) return next
      // First the note: a batch that it names and the server does not know is played again.
      await keep(opened)
      try {
        await batches.submit(requestOf(opened, batch))
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
      const task = place && tasks.at(place.instance % tasks.length)
      return task ? [{ ...task, metadata: { slime: { instance_id: place.instance } } }] : []
    })
    const { group_size, url, sampling } = start
    const ask = { id, tasks: asked, group_size, url, sampling }
    return foreignBatch(ask, settings.batch, config.backends)
  }

  /** The last answer has arrived where it was sent; what became of the batches since is accounted for. */
  async function catchUp(state: Current): Promise<{ next: Current; news: News }> {
    const { answer } = state.run
    const kept = answer === null || answer.phase === 'kept'
    if (kept) await batches.takeBack(answer?.groups ?? [])
    else await batches.ack(answer.groups)
    const written = kept ? state.written : withoutGroups(state.written, answer.written)
    const polled = feed({ ...state, written }, { type: 'poll' })
    const news = await batches.news(polled.run)
    const next = feed(polled, ...news.events)
    await keep(next)
    return { next, news }
  }

  /** The body, and whether it hands anything out. */
  async function answer(): Promise<{ body: Uint8Array; full: boolean }> {
    const none = (message: string) => ({ body: nothing(message), full: false })
    const state = await load()
    if (!state) return none('no rollout was started here: start the trainer again')
    const { next: caughtUp, news } = await catchUp(state)
    let next = caughtUp
    let problem = news.paused
    try {
      next = await playAhead(caughtUp)
    } catch (error) {
      if (!(error instanceof PaddockError)) throw error
      // What is ready goes out all the same.
      problem = error.message
      next = current ?? caughtUp
    }
    const { rollout_batch_size: size, reward } = settings
    const room = size === null ? Number.MAX_SAFE_INTEGER : size - (next.run.arrived % size)
    const whole = wholeGroups(next.written, next.start.group_size).slice(0, room)
    // slime waits for its whole batch in any case. In one answer no lost answer can leave it with a part that nobody counts.
    const more = news.more || next.run.opened > caughtUp.run.opened
    if (size !== null && more && news.ready + whole.length < room)
      return none(whyNothing(next.run, problem))
    const form = { kind: 'slime', reward, at: now() } as const
    const leased = await batches.lease(next.run, room - whole.length, form)
    if (leased.handed.length + whole.length === 0) return none(whyNothing(next.run, problem))
    const written = whole.map(([key]) => key)
    await keep(feed(next, { type: 'answer', groups: leased.handed, written }))
    const items = whole.map(([, of]) => of)
    const body = answerBody(
      [...leased.bodies, ...items.map(listText)],
      [...leased.figures, ...items.map(statsOf)],
      [...leased.instances, ...items.map(idOf), ...next.run.flat],
    )
    return { body, full: true }
  }

  /** Notes how far the last answer has got, before it gets there. */
  async function reach(phase: 'kept' | 'going' | 'sent'): Promise<void> {
    if (current?.run.answer) await keep(feed(current, { type: 'reach', phase }))
  }

  return {
    async start(request) {
      const release = await lock()
      try {
        const { start, tasks, selected } = await resolve(request)
        const begun = await begin(start, tasks, request.skip_instance_ids ?? [])
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
      let handover: Handover | null = null
      try {
        const { body, full } = await answer()
        if (full)
          handover = {
            lastByte: () => reach('going'),
            ended: (sent) => reach(sent ? 'sent' : 'kept').finally(release),
          }
        return { body, handover }
      } finally {
        if (handover === null) release()
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

const tasksNote = (run: string): string => `${NOTE}.tasks.${run}`

function packNames(service: Service): string {
  return [...new Set(service.tasks().map(({ pack }) => pack))].join(', ')
}

function whyNothing(run: SlimeRun, problem: string | null): string {
  const message = 'No data available to read'
  if (isOver(run)) return `${message}: all ${run.total} groups were played; raise --num-epoch`
  return problem === null ? message : `${message}: ${problem}`
}
