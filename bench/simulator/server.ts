// The simulated policy endpoint: one HTTP server that speaks vLLM's and SGLang's wire forms over the same policy.
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { z } from 'zod'
import type { Completer } from './completer.ts'
import { COMPLETION_PATHS, createCompleter } from './completer.ts'
import { faultRuleSchema } from './faults.ts'
import type { SimulatorOptions } from './options.ts'
import { DEFAULTS } from './options.ts'
import { defaultModelDir, loadModel } from './policy/model.ts'
import { errorBody, parse, RefusedRequest, readJson } from './wire/refused.ts'
import { jsonPayload, send } from './wire/transport.ts'
import type { Served } from './wire/vllm.ts'
import { detokenize, listModels, tokenize } from './wire/vllm.ts'

export interface Simulator {
  /** As `http://127.0.0.1:40123`. */
  url: string
  close(): Promise<void>
}

/** Request bodies beyond this are refused with 413. */
const MAX_BODY_BYTES = 64 * 1024 * 1024

/** Longer than any client keeps a connection idle (undici: 4 s). */
const KEEP_ALIVE_MS = 120_000

/** Loads the model, then listens. Rejects where the model folder or the port cannot be had. */
export async function startSimulator(options: Partial<SimulatorOptions> = {}): Promise<Simulator> {
  const settings = { ...DEFAULTS, ...options }
  const model = await loadModel(settings.modelDir ?? defaultModelDir())
  const served = { model, name: settings.model, maxModelLen: settings.maxModelLen }
  const completer = createCompleter(served, settings)
  const routes = createRoutes(served, completer)
  const server = createServer((request, response) => {
    answer(routes, completer, request, response).catch((error: unknown) =>
      answerError(response, error),
    )
  })
  // A client's next request must not cross the end of its idle connection: that would be a fault nobody asked for.
  server.keepAliveTimeout = KEEP_ALIVE_MS
  server.listen(settings.port, settings.host)
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://${settings.host}:${port}`,
    close: async () => {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}

/** What a handler returns is sent as JSON; undefined says that it has answered itself. */
type Handler = (body: Buffer, response: ServerResponse) => unknown

const updateSchema = z.looseObject({
  new_version: z.union([z.string(), z.int()]).transform(String),
  abort_all_requests: z.boolean().default(true),
})
const abortSchema = z.looseObject({
  rid: z.string().default(''),
  abort_all: z.boolean().default(false),
})
const faultsSchema = z.strictObject({ faults: z.array(faultRuleSchema) })

function createRoutes(served: Served, completer: Completer): ReadonlyMap<string, Handler> {
  const weightVersion = () => {
    const version = completer.weightVersion()
    return version === null ? {} : { weight_version: version }
  }
  const routes = new Map<string, Handler>([
    ['POST /tokenize', (body) => tokenize(readJson(body), served)],
    ['POST /detokenize', (body) => detokenize(readJson(body), served)],
    ['GET /v1/models', () => listModels(served)],
    ['GET /health', (_body, response) => void response.end()],
    ['GET /weight_info', weightVersion],
    ['GET /get_weight_version', weightVersion],
    ['POST /update_weight_version', (body) => updateWeightVersion(completer, body)],
    [
      'POST /abort_request',
      (body) => {
        const { rid, abort_all } = parse(abortSchema, readJson(body))
        completer.abort(abort_all ? null : rid)
        return {}
      },
    ],
    [
      'POST /simulator/faults',
      (body) => {
        const { faults } = parse(faultsSchema, readJson(body))
        completer.setFaults(faults)
        return { faults }
      },
    ],
    ['GET /simulator/stats', () => completer.report()],
    ['GET /simulator/prepared', () => ({ requests: completer.preparedRequests() })],
  ])
  for (const path of COMPLETION_PATHS)
    routes.set(`POST ${path}`, (body, response) => completer.complete(path, body, response))
  return routes
}

/** SGLang's default is to abort what is under way, which then answers with the version it began with. */
function updateWeightVersion(completer: Completer, body: Buffer) {
  const { new_version, abort_all_requests } = parse(updateSchema, readJson(body))
  if (abort_all_requests) completer.abort(null)
  completer.setWeightVersion(new_version)
  return { success: true, message: `Weight version updated to ${new_version}`, new_version }
}

async function answer(
  routes: ReadonlyMap<string, Handler>,
  completer: Completer,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const path = (request.url ?? '').split('?')[0] as string
  const handler = routes.get(`${request.method} ${path}`)
  completer.countRequest(handler ? path : 'other')
  const body = await readBody(request)
  if (!handler) {
    send(response, jsonPayload({ detail: 'Not Found' }, 404))
    return
  }
  const reply = await handler(body, response)
  if (reply !== undefined) send(response, jsonPayload(reply))
}

/** By events: an async iterator costs 20 µs more, which a prepared reply would feel. */
function readBody(request: IncomingMessage): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let length = 0
    request.on('data', (chunk: Buffer) => {
      length += chunk.length
      chunks.push(chunk)
      if (length <= MAX_BODY_BYTES) return
      request.pause()
      reject(new RefusedRequest(`expected a body of at most ${MAX_BODY_BYTES} bytes`, 413))
    })
    request.on('end', () =>
      resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)),
    )
    request.on('error', reject)
  })
}

function answerError(response: ServerResponse, error: unknown): void {
  if (response.destroyed) return
  const { status, type } =
    error instanceof RefusedRequest ? error : { status: 500, type: 'InternalServerError' }
  const message = error instanceof Error ? error.message : String(error)
  if (status === 500) console.error(error)
  if (response.headersSent) response.destroy()
  else send(response, jsonPayload(errorBody(status, type, message), status))
}
