// The name that was probably meant: the closest of those that exist, for errors that point at the fix.

/**
 * The member of `names` with the smallest Levenshtein distance to `name` (case ignored), the first on a tie;
 * null when there are none.
 */
export function nearestName(name: string, names: readonly string[]): string | null {
  let best: string | null = null
  let bestDistance = Number.POSITIVE_INFINITY
  for (const candidate of names) {
    const distance = editDistance(name.toLowerCase(), candidate.toLowerCase())
    if (distance < bestDistance) {
      best = candidate
      bestDistance = distance
    }
  }
  return best
}

// Names come from outside: what is longer than any honest one is compared by its beginning.
const MAX_COMPARED = 64

function editDistance(a: string, b: string): number {
  const left = a.slice(0, MAX_COMPARED)
  const right = b.slice(0, MAX_COMPARED)
  let previous = Array.from({ length: right.length + 1 }, (_, index) => index)
  for (let i = 1; i <= left.length; i++) {
    const current = [i]
    for (let j = 1; j <= right.length; j++) {
      const substituted = previous[j - 1]! + (left[i - 1] === right[j - 1] ? 0 : 1)
      current.push(Math.min(previous[j]! + 1, current[j - 1]! + 1, substituted))
    }
    previous = current
  }
  return previous[right.length]!
}
