// An answer that hands something out for good: its last byte waits until it is noted that it goes.
import type { ServerResponse } from 'node:http'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import type { Context } from 'hono'

/** What is noted on the way of an answer: a client without the last byte cannot have read it. */
export interface Handover {
  /** Everything else is out. Resolves when the last byte may follow. */
  lastByte(): Promise<void>
  /** `sent`: the last byte is out; else it never will be. */
  ended(sent: boolean): Promise<void>
}

/** slime's client gives a poll up after this. */
const LONGEST_ANSWER_MS = 120_000
const HEADERS = { 'content-type': 'application/json' }

export function jsonBody(context: Context, body: Uint8Array): Response {
  return context.body(body as Uint8Array<ArrayBuffer>, 200, HEADERS)
}

/** Answers with JSON text. Where no socket is behind the request, as in tests, all of it is out at once. */
export async function handOver(
  context: Context,
  body: Uint8Array,
  handover: Handover,
): Promise<Response> {
  const { outgoing } = (context.env ?? {}) as { outgoing?: ServerResponse }
  let sent = false
  try {
    if (outgoing) sent = await sendHoldingLast(outgoing, body, handover)
    else {
      await handover.lastByte()
      sent = true
    }
  } finally {
    await handover.ended(sent)
  }
  return outgoing ? RESPONSE_ALREADY_SENT : jsonBody(context, body)
}

/** Whether the last byte went out. A note that fails cuts the answer off. */
async function sendHoldingLast(
  outgoing: ServerResponse,
  body: Uint8Array,
  { lastByte }: Handover,
): Promise<boolean> {
  let limit: NodeJS.Timeout | undefined
  const lost = new Promise<false>((resolve) => {
    limit = setTimeout(() => resolve(false), LONGEST_ANSWER_MS)
    outgoing.once('close', () => resolve(false))
    if (outgoing.destroyed) resolve(false)
  })
  const out = (write: (done: (error?: Error | null) => void) => void) =>
    Promise.race([lost, new Promise<boolean>((resolve) => write((error) => resolve(!error)))])
  try {
    outgoing.writeHead(200, { ...HEADERS, 'content-length': body.length })
    const most = await out((done) => outgoing.write(body.subarray(0, -1), done))
    if (!most) return false
    await lastByte()
    return await out((done) => outgoing.end(body.subarray(-1), done))
  } finally {
    clearTimeout(limit)
    if (!outgoing.writableFinished) outgoing.destroy()
  }
}
