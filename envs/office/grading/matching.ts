// Maximum matching between expected items and distinct records, so that one record never pays for two items.

/**
 * For each item the index of the candidate it is matched with, or null. `fits[i]` are the candidates that
 * item i accepts. Augmenting paths (Kuhn): as many items as possible are matched, each candidate at most once.
 */
export function maximumMatching(fits: readonly (readonly number[])[]): (number | null)[] {
  const itemOf = new Map<number, number>()

  const claim = (item: number, tried: Set<number>): boolean => {
    for (const candidate of fits[item]!) {
      if (tried.has(candidate)) continue
      tried.add(candidate)
      const holder = itemOf.get(candidate)
      if (holder === undefined || claim(holder, tried)) {
        itemOf.set(candidate, item)
        return true
      }
    }
    return false
  }

  for (const item of fits.keys()) claim(item, new Set())
  const matched: (number | null)[] = fits.map(() => null)
  for (const [candidate, item] of itemOf) matched[item] = candidate
  return matched
}
