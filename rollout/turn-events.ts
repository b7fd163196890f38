// What happened in a turn, as the event stream tells it; JSON text, made where the turn is played.
import type { EpisodeHeader } from '../protocol/sealed.ts'
import type { EpisodePlan, TurnRecord } from './episode.ts'

/** One event of an episode. `json` is an object's text; the main thread adds number and time in front. */
export interface TurnEvent {
  type: 'turn' | 'call' | 'observation' | 'outcome'
  json: string
}

/** A turn, then its calls and what was said to each. */
export function turnEvents(plan: EpisodePlan, record: TurnRecord): TurnEvent[] {
  const { turn } = record
  return [
    event('turn', plan, {
      turn,
      finish: record.finish,
      reasoning: record.reasoning,
      content: record.content,
      errors: record.errors,
      flags: record.flags,
      leniencies: record.leniencies,
      prompt_tokens: record.prompt_tokens,
      completion_tokens: record.completion_tokens,
      version: record.version,
    }),
    ...record.calls.map((call) => event('call', plan, { turn, ...call })),
    ...record.observations.map((seen) => event('observation', plan, { turn, ...seen })),
  ]
}

/** The end of an attempt. */
export function outcomeEvent(plan: EpisodePlan, header: EpisodeHeader): TurnEvent {
  const { outcome, reason, reward, rewards } = header
  return event('outcome', plan, { outcome, reason, reward, rewards, turns: header.turns.length })
}

function event(type: TurnEvent['type'], plan: EpisodePlan, facts: object): TurnEvent {
  const { batch, group, episode, attempt } = plan
  return { type, json: JSON.stringify({ type, batch, group, episode, attempt, ...facts }) }
}
