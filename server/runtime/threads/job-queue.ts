// The order in which jobs wait for a thread: what somebody waits for, then turns; what failed stands behind both of its kind.
import type { JobKind } from './jobs.ts'

/** What the order looks at. */
export interface Queued {
  kind: JobKind
  /** How often it has failed. */
  tries: number
}

export interface JobQueue<Waiting extends Queued> {
  size(): number
  /** All that wait. */
  all(): Waiting[]
  /** Whether a job waits that has not failed yet. */
  hasFresh(): boolean
  /** To the end of its kind. */
  push(job: Waiting): void
  /** To the front of their kinds, in their order: they were begun with once and lost by no fault of theirs. */
  putBack(jobs: readonly Waiting[]): void
  remove(job: Waiting): void
  /**
   * Takes the first job that may run, and with it those right behind it that may share its batch: `most` in all, and at
   * most the `threads`-th part of its kind, so that no thread takes what another could begin with. A job that has failed
   * goes alone and only to an idle thread; while it is the first, a busy thread gets nothing and so becomes idle.
   */
  take(may: (job: Waiting) => boolean, idle: boolean, threads: number, most: number): Waiting[]
  /** Empties the queue. */
  takeAll(): Waiting[]
}

/** Nobody waits for one turn, and there are thousands. A person or a trainer waits for each of the others. */
const TURNS: ReadonlySet<JobKind> = new Set(['begin', 'advance'])

export function createJobQueue<Waiting extends Queued>(): JobQueue<Waiting> {
  const urgent: Waiting[] = []
  const turns: Waiting[] = []
  const listOf = ({ kind }: Waiting) => (TURNS.has(kind) ? turns : urgent)

  return {
    size: () => urgent.length + turns.length,
    all: () => [...urgent, ...turns],
    hasFresh: () => [urgent, turns].some((list) => list.some(({ tries }) => tries === 0)),
    push: (job) => void listOf(job).push(job),
    putBack(jobs) {
      for (const list of [urgent, turns])
        list.unshift(...jobs.filter((job) => listOf(job) === list))
    },
    remove(job) {
      const list = listOf(job)
      const at = list.indexOf(job)
      if (at >= 0) list.splice(at, 1)
    },
    take(may, idle, threads, most) {
      for (const list of [urgent, turns]) {
        const at = list.findIndex(may)
        const first = list[at]
        if (!first) continue
        if (first.tries > 0) return idle ? list.splice(at, 1) : []
        const share = Math.min(most, Math.ceil(list.length / threads))
        let count = 1
        while (count < share && list[at + count]?.tries === 0) count++
        return list.splice(at, count)
      }
      return []
    },
    takeAll: () => [...urgent.splice(0), ...turns.splice(0)],
  }
}
