// A grade as lines for a terminal: what it came to, and for each part the records and calls that gave it.
import type { Graded } from '../../envs/environment.ts'
import type { JsonObject, JsonValue } from '../../protocol/json.ts'

/** One line for each reward, check and broken rule. In evidence a number is a call, a name a record or message. */
export function explainGrade(grade: Graded): string {
  const { checks, gates, caps, recoveries, safety, ...other } = grade.evidence
  const rewards =
    grade.status === 'scored'
      ? Object.entries(grade.rewards).map(([name, value]) => `${name}: ${value ?? 'none'}`)
      : [`no score: ${grade.reason}`]
  // An environment that is not graded by checks tells its evidence in its own words.
  if (checks === undefined) return [...rewards, JSON.stringify(other)].join('\n')
  return [
    ...rewards,
    ...resultLines('check', checks),
    ...resultLines('gate', gates),
    ...resultLines('cap', caps),
    ...resultLines('recovery', recoveries),
    ...((safety ?? []) as JsonObject[]).map(
      ({ rule, severity, evidence }) =>
        `rule ${rule} broken, severity ${severity}${because(evidence)}`,
    ),
  ].join('\n')
}

function resultLines(kind: string, results: JsonValue = {}): string[] {
  return Object.entries(results as Record<string, JsonObject>).map(
    ([name, { score, reason, evidence }]) =>
      `${kind} ${name}: ${score ?? `no score (${reason})`}${because(evidence)}`,
  )
}

function because(evidence: JsonValue = []): string {
  const parts = (evidence as (number | string)[]).map((one) =>
    typeof one === 'number' ? `call ${one}` : one,
  )
  return parts.length > 0 ? ` (${parts.join(', ')})` : ''
}
