// What is counted of turns wherever they are told: in an episode's header, a delivered group, a batch's progress.
import type { Leniency, ParseErrorCode, ParseFlag } from './parse-codes.ts'

/** Why a prompt does not extend the token chain before it: the causes of the drift ledger. */
export const DRIFT_CAUSES = [
  'thinking_stripped',
  'json_spacing',
  'whitespace',
  'template',
  'unknown',
] as const
export type DriftCause = (typeof DRIFT_CAUSES)[number]

type Counts<Name extends string> = Partial<Record<Name, number>>

export interface TurnCounts {
  /** In how many turns each code, flag and lenient reading occurred. */
  parse_errors: Counts<ParseErrorCode>
  parse_flags: Counts<ParseFlag>
  parse_leniencies: Counts<Leniency>
  /** Observations that spelled out a control token. */
  control_tokens: number
  /** Turns whose text, as the backend gave it, is not what the sampled ids decode to. */
  text_mismatches: number
  /** Token chains cut, by cause. */
  drift: Counts<DriftCause>
}

export const NO_COUNTS: TurnCounts = {
  parse_errors: {},
  parse_flags: {},
  parse_leniencies: {},
  control_tokens: 0,
  text_mismatches: 0,
  drift: {},
}

export function sumCounts(all: readonly TurnCounts[]): TurnCounts {
  return all.reduce(
    (sum, counts) => ({
      parse_errors: added(sum.parse_errors, counts.parse_errors),
      parse_flags: added(sum.parse_flags, counts.parse_flags),
      parse_leniencies: added(sum.parse_leniencies, counts.parse_leniencies),
      control_tokens: sum.control_tokens + counts.control_tokens,
      text_mismatches: sum.text_mismatches + counts.text_mismatches,
      drift: added(sum.drift, counts.drift),
    }),
    NO_COUNTS,
  )
}

function added<Name extends string>(a: Counts<Name>, b: Counts<Name>): Counts<Name> {
  const sums = { ...a }
  for (const [name, count] of Object.entries(b) as [Name, number][])
    sums[name] = (sums[name] ?? 0) + count
  return sums
}
