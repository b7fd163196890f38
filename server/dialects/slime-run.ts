// One run of slime's rollout buffer as a reducer: which instances are played, handed out, and known to have arrived.

/** A group to be played: its `instance_id`, and how often it failed by its own fault. */
export interface Place {
  instance: number
  tries: number
}

/**
 * How far an answer has got: `kept` while its last byte is held back, so that nobody can have read it; `going` from
 * just before that byte goes out; `sent` once it is out.
 */
type AnswerPhase = 'kept' | 'going' | 'sent'

/** A group in an answer. */
export interface HandedOut {
  batch: string
  /** Its place in the batch. */
  index: number
  id: string
  lease: string
}

/**
 * Instances are numbered over all passes: pass × tasks + task. Each of `[0, total)` is in one place: not reached yet
 * (from `next`), in `again`, open in a batch, or done. Numbers below 0 stand in for instances that may not have arrived.
 */
export interface SlimeRun {
  id: string
  total: number
  next: number
  /** Instances that are played again before new ones are begun. */
  again: Place[]
  /** Instances from `next` on that the trainer has from before. */
  skip: number[]
  /** Batches that have open places; null is a place whose group has arrived or was given up. */
  batches: { id: string; places: (Place | null)[] }[]
  /** How many batches there were, for their names. */
  opened: number
  /** The last answer until the next poll; `written` are keys of written groups in it. */
  answer: { phase: AnswerPhase; groups: readonly HandedOut[]; written: readonly string[] } | null
  /** Instances whose flat groups were dropped, of which the trainer has not heard yet. */
  flat: number[]
  /** Groups that arrived since the trainer's start. */
  arrived: number
  /** True once the trainer has asked for data. */
  polled: boolean
}

export type SlimeEvent =
  /** A batch is about to be submitted with the next `count` instances. */
  | { type: 'open'; batch: string; count: number }
  /** The batch was refused, or is not known any more: what is open of it is played again. */
  | { type: 'lost'; batch: string }
  /** A group was dropped. What the machinery did is played again for ever, what the task did a few times. */
  | { type: 'dropped'; batch: string; index: number; why: 'machinery' | 'task' | 'flat' }
  | { type: 'answer'; groups: readonly HandedOut[]; written: readonly string[] }
  | { type: 'reach'; phase: AnswerPhase }
  /**
   * The next poll: what was sent has arrived, and what was kept goes back to be handed out again. Of what was going
   * nobody can say (the server died in that moment): it is not handed out again, and its instances are played anew.
   */
  | { type: 'poll' }
  /** The trainer is back from a checkpoint that holds the instances of `skip`. */
  | { type: 'restart'; skip: readonly number[]; total: number }

/** Tries of a group whose task spoils it: a fourth would end in the same way. */
const MAX_TRIES = 3

export function newRun(id: string, total: number, skip: readonly number[]): SlimeRun {
  const known = skip.filter((instance) => instance < total)
  return {
    id,
    total,
    next: 0,
    again: [],
    skip: known,
    batches: [],
    opened: 0,
    answer: null,
    flat: [],
    arrived: 0,
    polled: false,
  }
}

/** The transition table. An event that does not fit changes nothing. */
export function slimeReducer(run: SlimeRun, event: SlimeEvent): SlimeRun {
  switch (event.type) {
    case 'open': {
      const { places, rest } = take(run, event.count)
      if (places.length === 0) return run
      const batches = [...run.batches, { id: event.batch, places }]
      return { ...run, ...rest, batches, opened: run.opened + 1 }
    }
    case 'lost': {
      const open = run.batches.find(({ id }) => id === event.batch)?.places ?? []
      const again = [...run.again, ...open.filter((place) => place !== null)]
      const groups = run.answer?.groups.filter(({ batch }) => batch !== event.batch) ?? []
      const answer = run.answer && { ...run.answer, groups }
      return { ...run, again, answer, batches: run.batches.filter(({ id }) => id !== event.batch) }
    }
    case 'dropped': {
      const place = placeOf(run, event)
      if (!place) return run
      const tries = place.tries + (event.why === 'task' ? 1 : 0)
      const given = event.why === 'flat' || tries >= MAX_TRIES
      const again = given ? run.again : [...run.again, { ...place, tries }]
      const flat = event.why === 'flat' ? [...run.flat, place.instance] : run.flat
      return { ...settle(run, [event]), again, flat }
    }
    case 'answer':
      return { ...run, answer: { phase: 'kept', groups: event.groups, written: event.written } }
    case 'reach':
      return run.answer ? { ...run, answer: { ...run.answer, phase: event.phase } } : run
    case 'poll': {
      const { answer } = run
      const now = { ...run, answer: null, polled: true }
      if (answer === null || answer.phase === 'kept') return now
      const arrived = run.arrived + answer.groups.length + answer.written.length
      const again = answer.phase === 'going' ? [...run.again, ...standIns(run)] : run.again
      return { ...settle(now, answer.groups), again, flat: [], arrived }
    }
    case 'restart':
      return restarted(run, new Set(event.skip), event.total)
  }
}

/** What is still open in a batch at `index`; null where the group has arrived, was given up, or is unknown. */
export function placeOf(run: SlimeRun, at: { batch: string; index: number }): Place | null {
  return run.batches.find(({ id }) => id === at.batch)?.places[at.index] ?? null
}

/** How many places are open in the run's batches. */
export function openPlaces({ batches }: SlimeRun): number {
  return batches.reduce((sum, { places }) => sum + places.filter((place) => place).length, 0)
}

/** True where nothing is left to be played, handed out or confirmed. */
export function isOver(run: SlimeRun): boolean {
  return run.batches.length === 0 && take(run, 1).places.length === 0
}

/**
 * The next instances, those to be played again first and stand-ins last; `rest` is what the run keeps of its lists.
 */
function take(run: SlimeRun, count: number): { places: Place[]; rest: Partial<SlimeRun> } {
  const due = run.again.filter(({ instance }) => instance >= 0)
  const spare = run.again.filter(({ instance }) => instance < 0)
  const places = due.slice(0, count)
  const skip = new Set(run.skip)
  let { next } = run
  for (; places.length < count && next < run.total; next++)
    if (!skip.has(next)) places.push({ instance: next, tries: 0 })
  const filled = count - places.length
  return {
    places: [...places, ...spare.slice(0, filled)],
    rest: {
      again: [...due.slice(count), ...spare.slice(filled)],
      next,
      skip: run.skip.filter((instance) => instance >= next),
    },
  }
}

/** The instances of the last answer under numbers of their own: slime makes one group of what has one number. */
function standIns(run: SlimeRun): Place[] {
  return (run.answer?.groups ?? []).flatMap((group) => {
    const place = placeOf(run, group)
    return place ? [{ instance: place.instance - run.total, tries: 0 }] : []
  })
}

/** Closes places; a batch with none left is over. */
function settle(run: SlimeRun, gone: readonly { batch: string; index: number }[]): SlimeRun {
  const batches = run.batches.map(({ id, places }) => {
    const indices = gone.filter(({ batch }) => batch === id).map(({ index }) => index)
    if (indices.length === 0) return { id, places }
    return { id, places: places.map((place, index) => (indices.includes(index) ? null : place)) }
  })
  return { ...run, batches: batches.filter(({ places }) => places.some((place) => place)) }
}

/**
 * What the trainer does not have is owed to it: open places stay, anything else behind `next` is played again. Stand-ins
 * go: now it is known what has arrived.
 */
function restarted(run: SlimeRun, skip: ReadonlySet<number>, total: number): SlimeRun {
  const had = run.batches.flatMap(({ id, places }) =>
    places.flatMap((place, index) =>
      place && (place.instance < 0 || skip.has(place.instance)) ? [{ batch: id, index }] : [],
    ),
  )
  const left = settle({ ...run, answer: null }, had)
  const open = left.batches.flatMap(({ places }) => places.map((place) => place?.instance))
  const waiting = run.again.filter(({ instance }) => instance >= 0 && !skip.has(instance))
  const known = new Set([...open, ...waiting.map(({ instance }) => instance)])
  const owed = range(run.next).filter((instance) => !skip.has(instance) && !known.has(instance))
  return {
    ...left,
    total,
    again: [...waiting, ...owed.map((instance) => ({ instance, tries: 0 }))],
    skip: [...skip].filter((instance) => instance >= run.next && instance < total),
    flat: [],
    arrived: 0,
    polled: false,
  }
}

function range(end: number): number[] {
  return Array.from({ length: end }, (_, index) => index)
}
