// What came of a batch, in a few lines so short that a narrow terminal breaks none of them.
import type { BatchProgress } from '../../protocol/batch.ts'
import { fixed } from '../../protocol/figure.js'

/** Plain text without a line end behind it. */
export function batchSummary({ id, episodes, groups, tokens, seconds }: BatchProgress): string {
  const outcomes = Object.entries(episodes.outcomes).map(([name, count]) => `${count} ${name}`)
  const again = Object.values(episodes.retried).reduce((a, b) => a + b, 0)
  const means = [
    `${fixed(episodes.mean_reward)} over episodes`,
    `${fixed(groups.mean_group_reward)} over groups`,
  ]
  return [
    `${id}: ${groups.finished} groups, ${episodes.finished} episodes in ${fixed(seconds, 1)} s`,
    `  ${outcomes.join(', ')}; ${again} failed attempts were played again`,
    `  mean reward ${means.join(', ')}; ${tokens.completion} tokens sampled`,
    ...groups.dropped.map((group) => `  ${group.task} was dropped: ${group.reason}`),
  ].join('\n')
}
