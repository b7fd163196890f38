// What this machine can do at most: the server's own request bytes, posted to the same policy, answers dropped.
import { Pool } from 'undici'

export interface PreparedRequest {
  path: string
  body: Buffer
}

/** Every request that the simulator has a reply prepared for. */
export async function preparedRequests(policyUrl: string): Promise<PreparedRequest[]> {
  const response = await fetch(`${policyUrl}/simulator/prepared`)
  const { requests } = (await response.json()) as { requests: { path: string; body: string }[] }
  if (requests.length === 0)
    throw new Error('the simulator has prepared nothing: start it with --prepared')
  return requests.map(({ path, body }) => ({ path, body: Buffer.from(body) }))
}

/** Requests a second over `seconds`, with `concurrency` of them in flight. */
export async function bareLoop(
  policyUrl: string,
  requests: readonly PreparedRequest[],
  concurrency: number,
  seconds: number,
): Promise<number> {
  const pool = new Pool(policyUrl, { connections: concurrency })
  const headers = { 'content-type': 'application/json' }
  const started = performance.now()
  const end = started + seconds * 1000
  let next = 0
  let done = 0
  const loop = async () => {
    while (performance.now() < end) {
      const { path, body } = requests[next++ % requests.length] as PreparedRequest
      const response = await pool.request({ method: 'POST', path, headers, body })
      if (response.statusCode !== 200)
        throw new Error(`the simulator answered ${response.statusCode}`)
      await response.body.dump({ limit: Number.MAX_SAFE_INTEGER })
      done++
    }
  }
  await Promise.all(Array.from({ length: concurrency }, loop))
  const rate = (1000 * done) / (performance.now() - started)
  await pool.close()
  return rate
}
