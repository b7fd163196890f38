// How replies leave the server, and the ways in which they do not arrive whole.
import type { ServerResponse } from 'node:http'
import type { FaultRule, TransportFault } from '../faults.ts'
import { errorBody } from './refused.ts'

/** A whole reply. */
export interface Payload {
  status: number
  contentType: string
  bytes: Buffer
}

const JSON_TYPE = 'application/json'

export function jsonPayload(body: unknown, status = 200): Payload {
  return { status, contentType: JSON_TYPE, bytes: Buffer.from(JSON.stringify(body)) }
}

/** Server-sent events, written already. */
export function streamPayload(events: string): Payload {
  return {
    status: 200,
    contentType: 'text/event-stream; charset=utf-8',
    bytes: Buffer.from(events),
  }
}

export function send(response: ServerResponse, { status, contentType, bytes }: Payload): void {
  response.writeHead(status, { 'content-type': contentType, 'content-length': bytes.length })
  response.end(bytes)
}

/** Faults that need no completion: the policy is not even asked. */
export function sendInstead(response: ServerResponse, fault: TransportFault): boolean {
  switch (fault) {
    case '500':
      return sendError(response, 500, 'InternalServerError', 'Internal server error')
    case '503':
      return sendError(response, 503, 'ServiceUnavailableError', 'Service unavailable')
    case '429':
      response.setHeader('retry-after', '1')
      return sendError(response, 429, 'RateLimitError', 'Too many requests')
    case '502':
      send(response, htmlPayload(502, '502 Bad Gateway'))
      return true
    case 'html':
      send(response, htmlPayload(200, 'Welcome to the gateway'))
      return true
    case 'context':
      return sendError(response, 400, 'BadRequestError', CONTEXT_MESSAGE)
    case 'redirect':
      response.writeHead(307, { location: '/health' }).end()
      return true
    case 'hang':
      return true
    case 'reset':
      response.socket?.resetAndDestroy()
      return true
    default:
      return false
  }
}

const CONTEXT_MESSAGE =
  "This model's maximum context length is 8192 tokens. However, you requested 8193 tokens (8192 in the messages, 1 in the completion). Please reduce the length of the messages or completion."

function sendError(response: ServerResponse, status: number, type: string, message: string): true {
  send(response, jsonPayload(errorBody(status, type, message), status))
  return true
}

function htmlPayload(status: number, title: string): Payload {
  const page = `<html>\r\n<head><title>${title}</title></head>\r\n<body><h1>${title}</h1></body>\r\n</html>\r\n`
  return { status, contentType: 'text/html', bytes: Buffer.from(page) }
}

/** Sends a completion's reply damaged. `share` in [0, 1) says where it is cut and which way. */
export function sendDamaged(
  response: ServerResponse,
  fault: TransportFault,
  payload: Payload,
  { after }: FaultRule,
  share: number,
): void {
  const { bytes, contentType, status } = payload
  const half = after ?? Math.floor(bytes.length / 2)
  switch (fault) {
    case 'trickle':
      trickle(response, payload, after ?? bytes.length)
      return
    case 'cut':
      // With a length the body is short of it, without one the chunked form lacks its end.
      response.writeHead(status, {
        'content-type': contentType,
        ...(share < 0.5 && { 'content-length': bytes.length }),
      })
      response.write(bytes.subarray(0, half), () => response.destroy())
      return
    case 'stall':
      response.writeHead(status, { 'content-type': contentType })
      response.write(bytes.subarray(0, half))
      return
    case 'badjson':
      send(response, { ...payload, bytes: bytes.subarray(0, half) })
      return
    case 'noend':
      send(response, { ...payload, bytes: withoutEnd(payload) })
      return
    default:
      throw new Error(`${fault}: expected a fault of a reply on its way out`)
  }
}

/** A stream without its last events; anything else is an empty body. */
function withoutEnd({ contentType, bytes }: Payload): Buffer {
  if (contentType === JSON_TYPE) return Buffer.alloc(0)
  const events = bytes.toString().split('\n\n')
  return Buffer.from(events.filter((event) => !isLastEvent(event)).join('\n\n'))
}

function isLastEvent(event: string): boolean {
  return (
    event === 'data: [DONE]' || /"finish_reason":["{]/.test(event) || /"choices":\[\]/.test(event)
  )
}

/** Milliseconds between two bytes of a trickle: shorter than any timeout that restarts at each byte. */
const TRICKLE_MS = 50

/** A body that comes byte by byte and never ends, until the client goes away. */
function trickle(response: ServerResponse, { status, contentType, bytes }: Payload, limit: number) {
  response.writeHead(status, { 'content-type': contentType })
  let sent = 0
  const timer = setInterval(() => {
    // White space behind the last byte keeps it coming.
    response.write(sent < Math.min(limit, bytes.length) ? bytes.subarray(sent, sent + 1) : ' ')
    sent += 1
  }, TRICKLE_MS)
  response.on('close', () => clearInterval(timer))
}
