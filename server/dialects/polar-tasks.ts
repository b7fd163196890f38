// Polar's tasks: each is a batch of one group, told to the trainer's callback, kept for its polls, found again after a restart.
import { hash, randomUUID } from 'node:crypto'
import { PaddockError } from '../../protocol/errors.ts'
import { digest, type JsonObject } from '../../protocol/json.ts'
import type { CallbackSender } from '../callback-sender.ts'
import type { Config } from '../config.ts'
import { createEventLog } from '../runtime/batches/event-log.ts'
import type { EventLog, Service } from '../service.ts'
import { createPolarAnswers } from './polar-answers.ts'
import { hearingOf, openLogprobForms } from './polar-logprobs.ts'
import { aliasFor, meant, namesakes, toldName } from './polar-names.ts'
import { polarBatch, readPolarTask } from './polar-request.ts'
import { isDelivered, isUnderWay, type Note, noteOf, type Task, taskOf } from './polar-task.ts'

export interface PolarTasks {
  /** Throws PaddockError `invalid_task`, `conflict` for an id that was cancelled before it came, and as Service.submit. */
  submit(body: unknown): Promise<JsonObject>
  /** The body of a poll, as JSON bytes. Throws `not_found`. */
  status(taskId: string): Promise<Uint8Array>
  /** Withdraws it; `register` remembers an id that has not come yet. */
  cancel(taskId: string, register: boolean): Promise<Uint8Array>
  list(): JsonObject[]
  sessions(taskId: string): JsonObject[]
  /** What happened to tasks, newest thousand. */
  events: EventLog
}

interface PolarTasksOptions {
  service: Service
  config: Config
  callbacks: CallbackSender
  /** Told of a callback that was not taken, or may not be made. */
  onCallbackFailure(batch: string, reason: string): void
  /** Unix seconds. */
  now(): number
  keepMs?: number
}

const PREFIX = 'polar-'
/** A result stays this long after its end for the poll that the client falls back to every minute (WIRE 2.7). */
const KEEP_MS = 10 * 60_000
/** A result that nobody takes stays so many times longer, and so long its callback is tried. */
const UNDELIVERED = 6
/** An id that was cancelled before its task came is refused so long, as by Polar's own server. */
const TOMBSTONE_MS = 300_000

export function createPolarTasks(options: PolarTasksOptions): PolarTasks {
  const { service, config, callbacks, onCallbackFailure, now, keepMs = KEEP_MS } = options
  /** By batch, in the order of their coming: ids are used again by other trainers and after restarts. */
  const tasks = new Map<string, Task>()
  const tombstones = new Set<string>()
  const forms = openLogprobForms(config.dialects.polar.logprobs)
  const answers = createPolarAnswers(service, forms)
  const events = createEventLog(1000)

  function tell(type: string, task: Task, more: JsonObject = {}): void {
    events.append(type, JSON.stringify({ type, task_id: toldName(task), ...more }), now())
  }

  function named(taskId: string): Task | 'ambiguous' {
    const task = meant(tasks.values(), taskId, now())
    if (!task) throw new PaddockError('not_found', `no task ${taskId}`)
    return task
  }

  /** Keeps what has been done for a task: a restart begins where this one ends. */
  async function remember(task: Task): Promise<void> {
    if (!tasks.has(task.batch)) return
    await service.keepNote(task.batch, noteOf(task) as unknown as JsonObject)
  }

  /** Waits for the end of its group. */
  function follow(task: Task): void {
    const log = service.events(task.batch)
    const look = () => {
      const { finished, total } = service.progress(task.batch).groups
      if (finished < total || task.finished) return
      unsubscribe()
      task.finished = true
      retire(task, 1)
      call(task).catch((error: Error) => onCallbackFailure(task.batch, error.message))
    }
    const unsubscribe = log.subscribe(() => {
      if (log.ended || log.read(log.newest - 1, 1)[0]?.type === 'verdict') look()
    })
    look()
  }

  async function call(task: Task): Promise<void> {
    const { callback_url, samples } = task
    if (task.cancelled || task.taken) return
    tell('task.completed', task, { status: 'completed', completed_sessions: samples })
    if (callback_url === null || obstacleOf(callback_url) !== null) return
    task.calling = true
    const end = performance.now() + UNDELIVERED * keepMs
    let form = forms.now()
    task.taken = await callbacks.send(callback_url, {
      async body() {
        if (!tasks.has(task.batch)) return null
        if (task.firstTry === 'ahead') task.firstTry = 'on the wire'
        return answers.result(task, form)
      },
      contentType: 'application/json',
      isTaken(status, body) {
        const heard = hearingOf(status, body)
        form = forms.after(form, heard)
        task.logprobs = form
        task.firstTry = 'over'
        return heard === 'taken'
      },
      leftMs: () => end - performance.now(),
      onFailure(reason) {
        task.firstTry = 'over'
        onCallbackFailure(task.batch, reason)
        tell('callback.failed', task, { reason })
      },
    })
    task.calling = false
    task.called_at = now()
    if (task.taken) await remember(task)
  }

  /** Why a URL may not be called; null where it may. */
  function obstacleOf(url: string): string | null {
    try {
      callbacks.check(url, 'callback_url')
      return null
    } catch (error) {
      return (error as Error).message
    }
  }

  /** After `keepMs` it goes, where somebody has its result; else after as many as UNDELIVERED says. */
  function retire(task: Task, times: number): void {
    const timer = setTimeout(() => {
      const over = isDelivered(task) || task.cancelled || times >= UNDELIVERED
      if (over) settle(task).catch(() => {})
      else retire(task, times + 1)
    }, keepMs)
    timer.unref()
  }

  /** The group leaves the store: acknowledged where somebody has it, handed back for good where nobody came. */
  async function settle(task: Task): Promise<void> {
    tasks.delete(task.batch)
    try {
      await service.letGo(task.batch, isDelivered(task))
    } finally {
      await service.keepNote(task.batch, null)
    }
  }

  function add(note: Note, batch: string, admitted: Promise<void>): Task {
    const task = taskOf(note, batch, admitted)
    tasks.set(batch, task)
    return task
  }

  /**
   * Tasks whose batches the ledger still has. Their callbacks are made again where they may not have been taken. A crash
   * may have left the note of a batch that never came.
   */
  async function findAgain(): Promise<void> {
    const batches = service.batches()
    const known = new Set(batches.map(({ id }) => id))
    for (const name of await service.notes())
      if (name.startsWith(PREFIX) && !known.has(name)) await service.keepNote(name, null)
    for (const { id } of batches) {
      if (!id.startsWith(PREFIX)) continue
      const note = await service.note(id)
      if (note === null) continue
      follow(add(note as unknown as Note, id, Promise.resolve()))
    }
  }
  const found = findAgain()

  return {
    events,
    async submit(body) {
      await found
      const asked = readPolarTask(body)
      const { task_id, num_samples: samples, metadata } = asked
      const callback_url = asked.callback_url ?? null
      if (tombstones.has(task_id))
        throw new PaddockError('conflict', `task ${task_id} was cancelled before it was submitted`)
      // Of the keys in their order: in that of its submit, tried again, a client sends them. Sorting would cost ten times the parse.
      const own = hash('sha256', JSON.stringify(body)).slice(0, 32)
      const same = namesakes(tasks.values(), task_id).find(
        (one) => one.digest === own && isUnderWay(one),
      )
      if (same) {
        await same.admitted
        return accepted(same)
      }
      const batch = `${PREFIX}${digest(task_id)}-${randomUUID().slice(0, 8)}`
      const request = polarBatch(batch, asked, config)
      const enough = asked.early_stop_min_usable_sessions ?? null
      const note: Note = {
        ...{ task_id, callback_url, samples, enough, digest: own, submitted: now() },
        metadata: metadata as JsonObject,
        alias: aliasFor(tasks.values(), { task_id, callback_url }, now()),
      }
      const admit = async () => {
        // It holds the batch, however its group ends, until the task is over.
        await service.keepNote(batch, note as unknown as JsonObject)
        await service.submit(request)
      }
      const task = add(note, batch, admit())
      try {
        await task.admitted
      } catch (error) {
        tasks.delete(batch)
        await service.keepNote(batch, null)
        throw error
      }
      tell('task.created', task, { status: 'running', harness: 'paddock', num_samples: samples })
      follow(task)
      return accepted(task)
    },

    async status(taskId) {
      await found
      const task = named(taskId)
      service.polarPolled(task === 'ambiguous' || isUnderWay(task) ? 0 : 1)
      if (task === 'ambiguous') return answers.bare(taskId, 'running', samplesOf(taskId))
      await task.admitted
      // What its trainer can read is known when the callback that is on the wire is answered.
      if (isUnderWay(task) || task.firstTry === 'on the wire') return answers.running(task)
      const body = await answers.result(task)
      if (!task.polled) {
        task.polled = true
        await remember(task)
      }
      return body
    },

    async cancel(taskId, register) {
      await found
      if (register && namesakes(tasks.values(), taskId).length === 0) {
        tombstones.add(taskId)
        setTimeout(() => tombstones.delete(taskId), TOMBSTONE_MS).unref()
        return answers.bare(taskId, 'cancelled', 0)
      }
      const task = named(taskId)
      // Whose it is cannot be told: it is left to end by itself rather than taken from the wrong trainer.
      if (task === 'ambiguous') return answers.bare(taskId, 'running', samplesOf(taskId))
      await task.admitted
      if (!isUnderWay(task)) return answers.result(task)
      task.cancelled = true
      await remember(task)
      const { episodes } = await service.cancel(task.batch)
      tell('task.completed', task, { status: 'cancelled' })
      return answers.bare(taskId, 'cancelled', task.samples, episodes.finished)
    },

    list: () =>
      [...tasks.values()].map((task) => ({
        task_id: toldName(task),
        status: isUnderWay(task) ? 'running' : 'completed',
        harness: 'paddock',
        total_sessions: task.samples,
        created_at: task.submitted,
        batch: task.batch,
      })),

    sessions(taskId) {
      const task = namesakes(tasks.values(), taskId).at(-1)
      if (!task) throw new PaddockError('not_found', `no task ${taskId}`)
      const status = isUnderWay(task) ? 'RUNNING' : 'COMPLETED'
      return Array.from({ length: task.samples }, (_, index) => ({
        session_id: `sk-polar-${task.batch}.g0.e${index}`,
        status,
      }))
    },
  }

  /** A callback that may not be made is no refusal: the client polls every minute, and is told here why it has to. */
  function accepted(task: Task): JsonObject {
    const { batch, callback_url } = task
    const answer = { task_id: toldName(task), status: 'running' }
    const obstacle = callback_url === null ? null : obstacleOf(callback_url)
    if (obstacle === null) return answer
    const warning = `no callback is made: ${obstacle}`
    onCallbackFailure(batch, warning)
    return { ...answer, warning }
  }

  function samplesOf(taskId: string): number {
    return namesakes(tasks.values(), taskId).at(-1)?.samples ?? 0
  }
}
