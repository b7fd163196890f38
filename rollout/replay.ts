// A stored episode played again: the same texts through the same environment, compared turn by turn with what was stored.
import type { Environment, Task } from '../envs/environment.ts'
import { canonicalJson, type JsonValue } from '../protocol/json.ts'
import { isScored } from '../protocol/outcomes.ts'
import type { StoredEpisode } from '../protocol/trajectory.ts'
import { answered, applyTurn } from './apply-turn.ts'
import { type ControlTokens, QWEN_CONTROL_TOKENS } from './chat/control-tokens.ts'
import type { TurnRecord } from './episode.ts'
import { guardedEnvironment } from './guarded-environment.ts'
import { parseTurn } from './parse-turn.ts'
import { stateHash } from './state-hash.ts'

/** The first place where the replay leaves what was stored. */
export interface Difference {
  at: 'reset' | 'grade' | { turn: number }
  part: 'state_hash' | 'messages' | 'calls' | 'observations' | 'audit' | 'grade'
  expected: JsonValue
  found: JsonValue
}

export interface Replay {
  /** Turns that were played, the one that differs included. */
  turns: number
  /** Fingerprints after the reset and after each turn. */
  hashes: (string | null)[]
  /** `not_compared`: the replay ended before the end, or the grade needs what only others can answer. */
  grade: 'same' | 'differs' | 'not_compared'
  difference: Difference | null
}

export interface ReplayOptions {
  /** Turns to play at most. */
  toTurn?: number
  /** Of the vocabulary that the episode was played with. */
  controlTokens?: ControlTokens
}

/**
 * Plays an episode again from its seed and what the policy (and a user played by a model) said. It stops at the first
 * difference. A fault of the environment is thrown as PaddockError `environment_fault`.
 */
export function replayEpisode(
  stored: StoredEpisode,
  task: Task,
  world: Environment,
  { toTurn = stored.turns.length, controlTokens = QWEN_CONTROL_TOKENS }: ReplayOptions = {},
): Replay {
  const environment = guardedEnvironment(stored.environment, world)
  const rules = {
    environment,
    onParseError: stored.on_parse_error,
    controlTokens,
    showsControlTokens: stored.policy.control_tokens === 'plain',
  }
  const reading = { toolFormat: stored.policy.tool_format, ...stored.policy }
  const replay: Replay = { turns: 0, hashes: [], grade: 'not_compared', difference: null }
  /** Notes the difference, if there is one; true where the replay ends here. */
  const differs = (
    at: Difference['at'],
    part: Difference['part'],
    expected: unknown,
    found: unknown,
  ): boolean => {
    if (canonicalJson(expected) === canonicalJson(found)) return false
    replay.difference = { at, part, expected: expected as JsonValue, found: found as JsonValue }
    return true
  }

  const played = stored.user ? { ...task, user: stored.user } : task
  let env: unknown = environment.reset(played, stored.seed)
  replay.hashes.push(stateHash(env))
  if (differs('reset', 'state_hash', stored.state_hash, stateHash(env))) return replay
  const opening = environment.open(env)
  let told = opening.length
  if (differs('reset', 'messages', said(stored.messages.slice(0, told)), said(opening)))
    return replay

  for (const turn of stored.turns.slice(0, toTurn)) {
    const at = { turn: turn.turn }
    const parsed = parseTurn(turn.text, turn.finish, environment.tools(env), reading)
    const applied = applyTurn(env, unplayed(turn), parsed, rules)
    const { record } = applied
    env = applied.env
    let { messages } = applied
    if (applied.ask) {
      const reply = answered(env, parsed.content ?? '', turn.turn, environment, turn.user ?? '')
      env = reply.env
      messages = reply.messages
    }
    replay.turns++
    replay.hashes.push(stateHash(env))
    if (
      differs(at, 'calls', turn.calls, record.calls) ||
      differs(at, 'observations', turn.observations, record.observations) ||
      differs(at, 'audit', turn.audit, record.audit) ||
      differs(at, 'state_hash', turn.state_hash, stateHash(env))
    )
      return replay
    told += 1
    const here = stored.messages.slice(told, told + messages.length)
    if (differs(at, 'messages', said(here), said(messages))) return replay
    told += messages.length
  }
  if (toTurn < stored.turns.length || !isScored(stored.outcome as never)) return replay
  const grade = environment.grade(env)
  if (grade.status === 'asks' || stored.grade === null) return replay
  replay.grade = differs('grade', 'grade', stored.grade, grade) ? 'differs' : 'same'
  return replay
}

const said = (messages: readonly { role: string; content: string }[]) =>
  messages.map(({ role, content }) => ({ role, content }))

/** The record of a turn before anything came of it. */
function unplayed(turn: StoredEpisode['turns'][number]): TurnRecord {
  return { ...(turn as unknown as TurnRecord), calls: [], observations: [], audit: [] }
}
