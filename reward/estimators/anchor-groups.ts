// Which steps were taken in the same state: by equal anchors, or by texts that are nearly alike.
import { z } from 'zod'
import { ratioBound, sequenceRatio } from './sequence-matcher.ts'

export const anchorMatchSchema = z.union(
  [
    z.literal('exact'),
    z.strictObject({
      kind: z.literal('sequence_matcher_ratio'),
      threshold: z.number().gt(0).lt(1).default(0.95),
      representative: z.literal('first_seen').default('first_seen'),
      autojunk: z.boolean().default(true),
    }),
  ],
  {
    error:
      'expected "exact" or {"kind": "sequence_matcher_ratio", "threshold"?: a number between 0 and 1, "autojunk"?: boolean}',
  },
)
export type AnchorMatch = z.output<typeof anchorMatchSchema>

export interface AnchorGroup {
  /** The anchor of its first step; null for a step without one, which is alone. */
  anchor: string | null
  /** Indices into the steps that were given. */
  rows: number[]
}

/**
 * Groups the steps of one task group, in order of first appearance. By similarity a step joins the group with its own
 * anchor, else the first whose first member is alike enough; so the result depends on the order of the steps.
 */
export function anchorGroups(
  anchors: readonly (string | null)[],
  match: AnchorMatch,
): AnchorGroup[] {
  const groups: AnchorGroup[] = []
  const byAnchor = new Map<string, AnchorGroup>()
  anchors.forEach((anchor, row) => {
    const known =
      anchor === null ? undefined : (byAnchor.get(anchor) ?? alike(anchor, groups, match))
    if (known !== undefined) {
      known.rows.push(row)
      return
    }
    const group = { anchor, rows: [row] }
    groups.push(group)
    if (anchor !== null) byAnchor.set(anchor, group)
  })
  return groups
}

function alike(
  anchor: string,
  groups: readonly AnchorGroup[],
  match: AnchorMatch,
): AnchorGroup | undefined {
  if (match === 'exact') return undefined
  const { threshold, autojunk } = match
  return groups.find(
    (group) =>
      group.anchor !== null &&
      ratioBound(anchor, group.anchor) >= threshold &&
      sequenceRatio(anchor, group.anchor, autojunk) >= threshold,
  )
}
