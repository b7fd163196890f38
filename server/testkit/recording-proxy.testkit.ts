// A proxy between server and simulator that keeps what is posted: requests and replies as JSON, in the order of their ends.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Crossing {
  path: string
  status: number
  request: Record<string, unknown>
  reply: Record<string, unknown>
}

interface RecordingProxy {
  url: string
  crossings: Crossing[]
  close(): void
}

/** `afterReply` runs before the reply goes on. */
export async function startProxy(
  target: string,
  afterReply: (crossing: Crossing) => Promise<void> = async () => {},
): Promise<RecordingProxy> {
  const crossings: Crossing[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', async () => {
      const body = Buffer.concat(chunks)
      const path = request.url ?? ''
      const method = request.method ?? 'POST'
      const answer = await fetch(`${target}${path}`, { method, ...(body.length > 0 && { body }) })
      const text = await answer.text()
      if (method === 'GET') {
        response.writeHead(answer.status, { 'content-type': 'application/json' }).end(text)
        return
      }
      const crossing = {
        path,
        status: answer.status,
        request: JSON.parse(body.toString()),
        reply: JSON.parse(text),
      }
      crossings.push(crossing)
      await afterReply(crossing)
      response.writeHead(answer.status, { 'content-type': 'application/json' }).end(text)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    crossings,
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}
