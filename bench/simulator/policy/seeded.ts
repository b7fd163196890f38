// Counter-based randomness: every draw is a hash of what it is about, so no order of requests can change it.

/** Mixes two 32-bit words into one (the finaliser of MurmurHash3, public domain). */
export function mix(a: number, b: number): number {
  let h = Math.imul(a ^ Math.imul(b, 0xcc9e2d51), 0x1b873593)
  h ^= h >>> 16
  h = Math.imul(h, 0x85ebca6b)
  h ^= h >>> 13
  h = Math.imul(h, 0xc2b2ae35)
  return (h ^ (h >>> 16)) >>> 0
}

/** A 32-bit hash of token ids. It is a left fold: `hashIds(b, hashIds(a)) === hashIds([...a, ...b])`. */
export function hashIds(ids: readonly number[], start = 0x811c9dc5): number {
  let hash = start
  for (const id of ids) hash = mix(hash, id)
  return hash
}

/** A 32-bit hash of the parts; `['ab', 'c']` and `['a', 'bc']` differ. */
function hashParts(parts: readonly (string | number)[]): number {
  let hash = 0x811c9dc5
  for (const part of parts) {
    const text = String(part)
    for (let i = 0; i < text.length; i++) hash = mix(hash, text.charCodeAt(i))
    hash = mix(hash, 0x10000)
  }
  return hash
}

/** A number in [0, 1) that depends on the parts alone. */
export function draw(...parts: (string | number)[]): number {
  return hashParts(parts) / 0x100000000
}

/** The index into `weights` that `drawn`, a number in [0, 1), falls on; each is met in proportion to its weight. */
export function pickWeighted(weights: readonly number[], drawn: number): number {
  let left = drawn * weights.reduce((sum, weight) => sum + weight, 0)
  for (const [index, weight] of weights.entries()) {
    left -= weight
    if (left < 0) return index
  }
  return weights.length - 1
}
