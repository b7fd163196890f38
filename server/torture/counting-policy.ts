// A door in front of the policy simulator that remembers, for each request's seed, in which lives of the server it came.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface CountingPolicy {
  url: string
  /** Requests from now on belong to this life. */
  nextLife(): void
  life(): number
  /** By the request's seed: the life of each of its requests, in order. */
  seen: ReadonlyMap<number, readonly number[]>
  close(): Promise<void>
}

export async function openCountingPolicy(simulatorUrl: string): Promise<CountingPolicy> {
  const seen = new Map<number, number[]>()
  let life = 0
  const server = createServer(async (request, response) => {
    try {
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk as Buffer)
      const body = Buffer.concat(chunks)
      if (request.method === 'POST') {
        const { seed } = JSON.parse(body.toString()) as { seed: number }
        seen.set(seed, [...(seen.get(seed) ?? []), life])
      }
      const answer = await fetch(simulatorUrl + request.url, {
        method: request.method ?? 'GET',
        ...(body.length > 0 && { body, headers: { 'content-type': 'application/json' } }),
      })
      response.writeHead(answer.status, { 'content-type': 'application/json' })
      response.end(Buffer.from(await answer.arrayBuffer()))
    } catch {
      // Whoever asked has been killed.
      response.destroy()
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    nextLife() {
      life++
    },
    life: () => life,
    seen,
    async close() {
      server.close()
      server.closeAllConnections()
    },
  }
}
