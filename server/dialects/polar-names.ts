// Which of Polar's tasks an id means: trainers choose their ids alone, and a poll says no more than one of them.
import { randomUUID } from 'node:crypto'

/** What of a task tells whether somebody may still ask for it. Times are Unix seconds. */
export interface Named {
  batch: string
  /** As its trainer has named it. */
  task_id: string
  /** What its submit was answered with in place of that; null where it is the same. */
  alias: string | null
  callback_url: string | null
  cancelled: boolean
  finished: boolean
  /** Its callback is tried, or waits for its turn or the next try. */
  calling: boolean
  /** When its callback was taken or given up. */
  called_at: number | null
  polled: boolean
}

/** A poll that is tried five times, as the client does, takes no longer. */
const LATE_POLL_S = 10

/** The id that its trainer was told. */
export function toldName({ alias, task_id }: Pick<Named, 'alias' | 'task_id'>): string {
  return alias ?? task_id
}

/** Oldest first. */
export function namesakes<Task extends Named>(tasks: Iterable<Task>, id: string): Task[] {
  const all = [...tasks]
  const own = all.find(({ alias }) => alias === id)
  return own ? [own] : all.filter(({ task_id }) => task_id === id)
}

/**
 * The task that an id means: the one that may still be asked for, else the newest. While several trainers may ask by it,
 * none: the answer of another would train the wrong one. Null where there is no such task.
 */
export function meant<Task extends Named>(
  tasks: Iterable<Task>,
  id: string,
  now: number,
): Task | 'ambiguous' | null {
  const own = namesakes(tasks, id)
  const asked = own.filter((task) => mayBeAskedFor(task, now))
  // Tasks with one callback are one trainer's.
  const trainers = new Set(asked.map(({ callback_url, batch }) => callback_url ?? batch))
  return trainers.size > 1 ? 'ambiguous' : (asked.at(-1) ?? own.at(-1) ?? null)
}

/** An id of its own for a task that is found by polls alone, where its own may mean another; clients poll by what they are told. */
export function aliasFor(
  tasks: Iterable<Named>,
  { task_id, callback_url }: Pick<Named, 'task_id' | 'callback_url'>,
  now: number,
): string | null {
  const taken = namesakes(tasks, task_id).some((task) => mayBeAskedFor(task, now))
  return callback_url === null && taken ? `${task_id}~${randomUUID().slice(0, 8)}` : null
}

/** A poll may be on its way while a callback arrives, and its trainer believes the answer. */
function mayBeAskedFor(
  { cancelled, finished, calling, called_at, polled }: Named,
  now: number,
): boolean {
  if (cancelled) return false
  if (!finished || calling) return true
  return called_at === null ? !polled : now - called_at < LATE_POLL_S
}
