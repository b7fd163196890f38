// Whether a group looks as if its backend had ignored the temperature: every member said the same.

/** Mean tokens of a completion below which a group may well be of one mind: a one-token answer says nothing. */
const LEAST_TOKENS = 8

/**
 * `digest` is equal for episodes of which every turn sampled the same; `tokens` counts what was sampled. False at
 * temperature 0, where equal completions are what was asked for.
 */
export function isGreedySuspect(
  temperature: number,
  completions: readonly { digest: string; tokens: number }[],
): boolean {
  if (temperature <= 0 || completions.length < 2) return false
  const tokens = completions.reduce((sum, completion) => sum + completion.tokens, 0)
  const distinct = new Set(completions.map(({ digest }) => digest)).size
  return distinct === 1 && tokens / completions.length >= LEAST_TOKENS
}
