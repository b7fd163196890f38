// Which batches that are done are too old to be kept. What somebody holds is not: it has still to be told of.

/** Batches that are done stay readable, the newest of them, up to `limits.keep_episodes`; of older ones only the id is known. */
const KEPT_DONE_BATCHES = 32

/** Ids, newest first. `done` has the oldest first; those of `held` stay, and take no place from the others. */
export function oldBatches(
  done: readonly { id: string; episodes: number }[],
  held: ReadonlySet<string>,
  keepEpisodes: number,
): string[] {
  let sum = 0
  return done
    .filter(({ id }) => !held.has(id))
    .reverse()
    .filter(({ episodes }, age) => {
      sum += episodes
      // Whoever waited for the newest must see how it ended.
      return age > 0 && (age >= KEPT_DONE_BATCHES || sum > keepEpisodes)
    })
    .map(({ id }) => id)
}
