// What the model has really seen of the records that a call read, where the observation shows only a part of the result.
import { canonicalJson } from '../../../protocol/json.ts'
import type { Cut } from './observation.ts'
import type { OfficeState, ReadRecord } from './state.ts'

interface Evidence {
  reads: ReadRecord[]
  /** The next `partly`, where this call changes it. */
  partly?: OfficeState['partly']
}

/**
 * Items that a cut page left out were not read. A record of which a part was shown counts as read in full only once all
 * of its text was: parts add up where each begins no later than the one before it ended, and start anew where the
 * result (`resultDigest`) has changed in between.
 */
export function evidenceOf(
  partly: OfficeState['partly'],
  reads: readonly ReadRecord[],
  cut: Cut | null,
  resultDigest: string,
): Evidence {
  if (cut === null) return { reads: [...reads] }
  const inPart = reads.map((read): ReadRecord => ({ ...read, depth: 'summary' }))
  if ('items' in cut) return { reads: (cut.lastInPart ? inPart : reads).slice(0, cut.items) }
  const first = reads[0]
  if (first?.depth !== 'full' || reads.length !== 1) return { reads: inPart }
  const key = canonicalJson([first.entity, first.id])
  const before = partly?.[key]
  const known = before?.digest === resultDigest ? before.chars : 0
  const chars = cut.from <= known ? Math.max(known, cut.to) : known
  const isWhole = chars >= cut.total
  return {
    reads: isWhole ? [...reads] : inPart,
    partly: { ...partly, [key]: { digest: resultDigest, chars } },
  }
}
