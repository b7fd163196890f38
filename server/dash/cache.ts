// Answers that hold until the next sample: asked for again meanwhile, they are not computed again.

/** Beyond so many different answers the oldest go: each is some 30 KB. */
const MOST = 200

/** `period` gives another number once what was computed is old. What failed is not kept. */
export function createCache(
  period: () => number,
): <T>(key: string, compute: () => Promise<T>) => Promise<T> {
  const kept = new Map<string, Promise<unknown>>()
  let of = Number.NaN

  return <T>(key: string, compute: () => Promise<T>) => {
    const now = period()
    if (now !== of) kept.clear()
    of = now
    const known = kept.get(key) as Promise<T> | undefined
    if (known) return known
    const answer = compute()
    kept.set(key, answer)
    answer.catch(() => {
      if (kept.get(key) === answer) kept.delete(key)
    })
    for (const oldest of kept.keys()) {
      if (kept.size <= MOST) break
      kept.delete(oldest)
    }
    return answer
  }
}
