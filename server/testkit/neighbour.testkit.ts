// A well-behaved client in a thread of its own: what it waits for its answers while others misbehave.
import { Worker } from 'node:worker_threads'

interface Waits {
  count: number
  /** Milliseconds. */
  p50: number
  p99: number
}

export interface Neighbour {
  /** Asks one after another until `work` is over, and for at least `ms`. */
  during(work: () => Promise<unknown>, ms: number): Promise<Waits>
  close(): Promise<unknown>
}

/** Plain JavaScript: it must not wait for a compiler. */
const PROGRAM = `
const http = require('node:http')
const { parentPort, workerData } = require('node:worker_threads')
const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
const headers = { authorization: 'Bearer ' + workerData.token, 'content-type': 'application/json' }
const line = JSON.stringify({ id: '1', format: 'hermes', tools: [], text: 'hello' })
let asking = false

function ask(method, path, body) {
  return new Promise((resolve, reject) => {
    const request = http.request(workerData.url + path, { method, headers, agent }, (response) => {
      response.resume().on('end', () => response.statusCode === 200 ? resolve() : reject(new Error(method + ' ' + path + ': ' + response.statusCode)))
    })
    request.on('error', reject)
    request.end(body)
  })
}

parentPort.on('message', async (message) => {
  if (message === 'stop') { asking = false; return }
  asking = true
  const waits = []
  try {
    while (asking) {
      const started = performance.now()
      if (waits.length % 2) await ask('POST', '/v1/parse', line)
      else await ask('GET', '/v1/batches')
      waits.push(performance.now() - started)
    }
    waits.sort((a, b) => a - b)
    const at = (share) => waits[Math.min(waits.length - 1, Math.floor(share * waits.length))]
    parentPort.postMessage({ count: waits.length, p50: at(0.5), p99: at(0.99) })
  } catch (error) {
    parentPort.postMessage({ error: String(error) })
  }
})
`

export function startNeighbour(url: string, token: string): Neighbour {
  const worker = new Worker(PROGRAM, { eval: true, workerData: { url, token } })
  return {
    async during(work, ms) {
      const told = new Promise<Waits & { error?: string }>((resolve) =>
        worker.once('message', resolve),
      )
      worker.postMessage('start')
      const enough = new Promise((resolve) => setTimeout(resolve, ms))
      await Promise.all([work(), enough])
      worker.postMessage('stop')
      const waits = await told
      if (waits.error !== undefined) throw new Error(waits.error)
      return waits
    },
    close: () => worker.terminate(),
  }
}
