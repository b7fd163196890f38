// A door in front of the policy simulator, a new one for each life of the server, which remembers who asked for what.
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface CountingPolicy {
  /** Opens the door of the next life, from 1, and resolves with its address: a late request of the one before is its own. */
  nextLife(): Promise<string>
  life(): number
  /** By the request's seed: the life of each of its requests. */
  seen: ReadonlyMap<number, readonly number[]>
  close(): Promise<void>
}

/** Requests whose seed `hangs` says yes to are never answered. */
export function openCountingPolicy(
  simulatorUrl: string,
  hangs: (seed: number) => boolean = () => false,
): CountingPolicy {
  const seen = new Map<number, number[]>()
  const doors: Server[] = []

  async function answer(life: number, request: IncomingMessage, response: ServerResponse) {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const body = Buffer.concat(chunks)
    if (request.method === 'POST') {
      const { seed } = JSON.parse(body.toString()) as { seed: number }
      seen.set(seed, [...(seen.get(seed) ?? []), life])
      if (hangs(seed)) return
    }
    const reply = await fetch(simulatorUrl + request.url, {
      method: request.method ?? 'GET',
      ...(body.length > 0 && { body, headers: { 'content-type': 'application/json' } }),
    })
    response.writeHead(reply.status, { 'content-type': 'application/json' })
    response.end(Buffer.from(await reply.arrayBuffer()))
  }

  return {
    async nextLife() {
      const life = doors.length + 1
      const door = createServer((request, response) => {
        // Whoever asked has been killed.
        answer(life, request, response).catch(() => response.destroy())
      })
      door.listen(0, '127.0.0.1')
      await once(door, 'listening')
      doors.push(door)
      return `http://127.0.0.1:${(door.address() as AddressInfo).port}`
    },
    life: () => doors.length,
    seen,
    async close() {
      for (const door of doors) {
        door.close()
        door.closeAllConnections()
      }
    },
  }
}
