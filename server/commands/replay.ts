// `paddock replay`: plays a transcript through a task's real tools and shows the grade with what it rests on.
import { stat } from 'node:fs/promises'
import type { Graded, Task } from '../../envs/environment.ts'
import { askGraders, graded } from '../../envs/graded.ts'
import { missedExpectation, type Play, playOn } from '../../envs/office/gate/play.ts'
import type { SpecStep } from '../../envs/office/spec.ts'
import { PaddockError } from '../../protocol/errors.ts'
import { isPlainObject, type JsonObject, type JsonValue } from '../../protocol/json.ts'
import { nearestName } from '../../reward/nearest.ts'
import { stateHash } from '../../rollout/state-hash.ts'
import type { NamedTask } from './named-task.ts'
import type { Streams } from './streams.ts'
import { readTranscriptFile } from './transcript-file.ts'

/** Numbers are null where the grade has none; of an environment without checks or rules those are empty. */
interface Replay {
  status: Graded['status']
  score: number | null
  completion: number | null
  safety: number | null
  robustness: number | null
  /** Why there is no score, where there is none. */
  reason?: string
  checks: JsonValue
  violations: JsonValue
  /** Digest of the last state: equal for equal steps, on any machine. */
  state_hash: string | null
  audit: JsonValue[]
}

export interface ReplayOptions {
  /** A transcript of the task by its name, or a file. */
  transcript: string
  seed?: number
}

/**
 * Writes one JSON object, and to standard error each step that does not come out as it expects. Gives the exit code: 1
 * where there is one.
 */
export async function replay(
  named: NamedTask,
  { transcript, seed }: ReplayOptions,
  streams: Streams = process,
): Promise<number> {
  const { task, environment } = named
  expectPlayable(named)
  const steps = await stepsOf(task, transcript)
  const state = environment.reset(task, seed ?? seedOf(task))
  const play = playOn(environment, { state, played: [] }, steps)
  streams.stdout.write(`${JSON.stringify(replayed(named, play))}\n`)
  const missed = play.played.flatMap((played, index) => {
    const miss = missedExpectation(played)
    return miss
      ? [`steps[${index}].${miss.member}: expected ${miss.expected}, found ${miss.found}`]
      : []
  })
  for (const sentence of missed) streams.stderr.write(`paddock: ${sentence}\n`)
  return missed.length > 0 ? 1 : 0
}

/** Rules that are found by playing: a task that breaks one of them can be played, and is replayed to see why. */
const PLAYED_RULES = /^V1[0-7]$/

/** Throws `invalid_task` where the spec cannot be played. */
export function expectPlayable({ task, environment }: NamedTask): void {
  const problem = environment.problems(task.spec).find(({ rule }) => !PLAYED_RULES.test(rule))
  if (problem) throw new PaddockError('invalid_task', problem.message, { path: problem.path })
}

/** A task's own seed; 0 where it names none. */
export const seedOf = ({ spec }: Task): number => (typeof spec.seed === 'number' ? spec.seed : 0)

function replayed({ environment, graders }: NamedTask, { state, played }: Play<unknown>): Replay {
  const grade = graded(environment, state, askGraders(graders))
  const rewards = grade.status === 'scored' ? grade.rewards : {}
  const { checks = {}, safety = [] } = grade.evidence
  return {
    status: grade.status,
    score: rewards.score ?? null,
    completion: rewards.completion ?? null,
    safety: rewards.safety ?? null,
    robustness: rewards.robustness ?? null,
    ...(grade.status === 'unavailable' && { reason: grade.reason }),
    checks,
    violations: safety,
    state_hash: stateHash(state),
    audit: played.flatMap(({ audit }) => audit ?? []),
  }
}

/** The steps of a transcript of the task by its name, else of a file. */
async function stepsOf({ id, spec }: Task, transcript: string): Promise<SpecStep[]> {
  const named = isPlainObject(spec.transcripts) ? (spec.transcripts as JsonObject) : {}
  if (Object.hasOwn(named, transcript))
    return (named[transcript] as unknown as { steps: SpecStep[] }).steps
  const exists = await stat(transcript).then(
    () => true,
    () => false,
  )
  if (exists) return readTranscriptFile(transcript)
  const names = Object.keys(named)
  const hint =
    names.length > 0
      ? `the task has ${names.join(', ')}; nearest is ${nearestName(transcript, names)}`
      : 'the task has none'
  throw new PaddockError(
    'not_found',
    `${transcript} is neither a transcript of ${id} nor a file; ${hint}`,
  )
}
