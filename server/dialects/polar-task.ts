// One of Polar's tasks: what a restart must find of it, what is known of it while it lasts.
import type { JsonObject } from '../../protocol/json.ts'
import type { LogprobForm } from './polar-logprobs.ts'
import type { Named } from './polar-names.ts'

/** What must be known of a task after a restart; a note beside its batch. */
export interface Note {
  task_id: string
  callback_url: string | null
  metadata: JsonObject
  samples: number
  /** Absent in older ledgers. */
  enough?: number | null
  digest: string
  submitted: number
  /** What has been done for it, which a restart must not undo or do again. Absent in older ledgers. */
  alias?: string | null
  cancelled?: boolean
  /** Its callback was taken. */
  taken?: boolean
  called_at?: number | null
  /** Its result was the answer to a poll. */
  polled?: boolean
}

export interface Task extends Omit<Note, keyof Named>, Named {
  taken: boolean
  /** Resolves once the batch is admitted. */
  admitted: Promise<void>
  /** Of its callback. Only that one holds up a poll, and only on the wire: a poll is for where callbacks do not get through. */
  firstTry: 'ahead' | 'on the wire' | 'over'
  /** Which form its trainer may read; null until a callback has been tried. */
  logprobs: LogprobForm | null
}

/** A task whose note was just written, or is found after a restart; `admitted` as Task has it. */
export function taskOf(note: Note, batch: string, admitted: Promise<void>): Task {
  return {
    ...{ alias: null, cancelled: false, taken: false, called_at: null, polled: false },
    ...note,
    ...{ batch, admitted, finished: false, calling: false, firstTry: 'ahead', logprobs: null },
  }
}

export function isUnderWay(task: Task): boolean {
  return !task.finished && !task.cancelled
}

export function isDelivered({ taken, polled }: Task): boolean {
  return taken || polled
}

export function noteOf({
  batch: _,
  admitted,
  finished,
  calling,
  firstTry,
  logprobs,
  ...note
}: Task): Note {
  return note
}
