// A prefix cache that outlives a weight update gives hidden states of the old weights: the salt keeps versions apart.

const encoder = new TextEncoder()

/** The same JSON object with `cache_salt` as its first member. `body` must be an object's text without it. */
export function withCacheSalt(body: Uint8Array, salt: string): Uint8Array {
  const member = encoder.encode(`{"cache_salt":${JSON.stringify(salt)},`)
  const salted = new Uint8Array(member.length + body.length - 1)
  salted.set(member)
  salted.set(body.subarray(1), member.length)
  return salted
}
