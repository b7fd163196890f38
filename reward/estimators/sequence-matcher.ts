// How alike two texts are, as Python's difflib.SequenceMatcher says it: GiGPO's similarity of states is defined by it.

/** From this length of the second text on, autojunk leaves out frequent characters. */
const AUTOJUNK_LENGTH = 200

/**
 * `SequenceMatcher(None, a, b, autojunk).ratio()`: twice the matched code points over all of them, 0 to 1; 1 for two
 * empty texts. Not symmetric. With `autojunk`, characters that make up more than 1 % of a `b` of 200 code points or
 * more start no match (a match begun elsewhere may run through them). Time grows with the product of the lengths.
 */
export function sequenceRatio(a: string, b: string, autojunk = true): number {
  const left = Array.from(a)
  const right = Array.from(b)
  const total = left.length + right.length
  if (total === 0) return 1
  return (2 * matchedLength(left, right, placesIn(right, autojunk))) / total
}

/** Upper bound of the ratio by lengths alone. */
export function ratioBound(a: string, b: string): number {
  const [m, n] = [Array.from(a).length, Array.from(b).length]
  return m + n === 0 ? 1 : (2 * Math.min(m, n)) / (m + n)
}

type Places = Map<string, number[]>

function placesIn(text: readonly string[], autojunk: boolean): Places {
  const places: Places = new Map()
  text.forEach((char, index) => {
    const at = places.get(char)
    if (at === undefined) places.set(char, [index])
    else at.push(index)
  })
  if (!autojunk || text.length < AUTOJUNK_LENGTH) return places
  const most = Math.floor(text.length / 100) + 1
  for (const [char, at] of places) if (at.length > most) places.delete(char)
  return places
}

/** Total length of the matching blocks: the longest first, then those left and right of it. */
function matchedLength(a: readonly string[], b: readonly string[], places: Places): number {
  const open: [number, number, number, number][] = [[0, a.length, 0, b.length]]
  let matched = 0
  for (let range = open.pop(); range !== undefined; range = open.pop()) {
    const [aFrom, aTo, bFrom, bTo] = range
    const { i, j, size } = longestMatch(a, b, places, range)
    if (size === 0) continue
    matched += size
    if (aFrom < i && bFrom < j) open.push([aFrom, i, bFrom, j])
    if (i + size < aTo && j + size < bTo) open.push([i + size, aTo, j + size, bTo])
  }
  return matched
}

/** The earliest of the longest common blocks in the range, found by run lengths that end at each place of `b`. */
function longestMatch(
  a: readonly string[],
  b: readonly string[],
  places: Places,
  [aFrom, aTo, bFrom, bTo]: [number, number, number, number],
): { i: number; j: number; size: number } {
  let best = { i: aFrom, j: bFrom, size: 0 }
  let runs = new Map<number, number>()
  for (let i = aFrom; i < aTo; i++) {
    const grown = new Map<number, number>()
    for (const j of places.get(a[i]!) ?? []) {
      if (j < bFrom) continue
      if (j >= bTo) break
      const size = (runs.get(j - 1) ?? 0) + 1
      grown.set(j, size)
      if (size > best.size) best = { i: i - size + 1, j: j - size + 1, size }
    }
    runs = grown
  }
  // Frequent characters start no match, but a match runs through them to both sides.
  let { i, j, size } = best
  while (i > aFrom && j > bFrom && a[i - 1] === b[j - 1]) {
    i--
    j--
    size++
  }
  while (i + size < aTo && j + size < bTo && a[i + size] === b[j + size]) size++
  return { i, j, size }
}
