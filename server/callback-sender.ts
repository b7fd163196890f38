// Tells others over HTTP what they asked to be told: to allowed hosts, again and again until it is taken, a few at a time.
import { setMaxListeners } from 'node:events'
import type { Config } from './config.ts'
import { createGuardedHttp } from './runtime/asking/guarded-url.ts'
import { createRedaction } from './runtime/policy/redaction.ts'

export interface CallbackSender {
  /** Throws PaddockError `invalid_request` with `path` for a URL that may not be called. */
  check(url: string, path: string): void
  /** Posts until it is taken (true), or until `untilMs` are over or the server closes (false). Never rejects. */
  send(url: string, post: CallbackPost): Promise<boolean>
}

interface CallbackPost {
  /** Asked anew for every try, so that nothing large waits for the next one; null gives up. */
  body(): Promise<Uint8Array | null>
  contentType: string
  /** Whether what was answered says that the body was taken. */
  isTaken(status: number, body: Uint8Array): boolean
  untilMs: number
  onFailure?(reason: string): void
}

interface CallbackSenderOptions {
  /** Aborts when the server closes. */
  closing: AbortSignal
  /** The pause after the first failed try; it doubles up to a minute. */
  firstPauseMs?: number
  random?: () => number
  /** What one try came to. */
  onTried?(result: 'delivered' | 'retried' | 'failed'): void
}

/** For one try, whole: its body may be some tens of megabytes. */
const TRY_MS = 60_000
const FIRST_PAUSE_MS = 1_000
const MAX_PAUSE_MS = 60_000
/** Answers say little; a longer one is an error. */
const MAX_REPLY_BYTES = 64 * 1024
/** Bodies that are under way at once. */
const MAX_AT_ONCE = 8

export function createCallbackSender(
  { callbacks }: Pick<Config, 'callbacks'>,
  {
    closing,
    firstPauseMs = FIRST_PAUSE_MS,
    random = Math.random,
    onTried = () => {},
  }: CallbackSenderOptions,
): CallbackSender {
  const http = createGuardedHttp({
    allow: callbacks.allow,
    setting: 'callbacks.allow',
    maxReplyBytes: MAX_REPLY_BYTES,
  })
  // Every callback under way listens.
  setMaxListeners(0, closing)
  closing.addEventListener('abort', () => void http.close(), { once: true })
  const turns = createTurns(MAX_AT_ONCE)
  // Some servers repeat in an error what they were sent.
  const redaction = createRedaction(callbacks.headers.map(({ value }) => value))

  async function tryOnce(url: string, post: CallbackPost): Promise<boolean | 'nothing'> {
    const body = await post.body()
    if (body === null) return 'nothing'
    const headers = { 'content-type': post.contentType, ...secretsFor(callbacks.headers, url) }
    const reply = await http.post(url, { headers, body, timeoutMs: TRY_MS, signal: closing })
    if (post.isTaken(reply.status, reply.body)) return true
    const said = redaction.text(Buffer.from(reply.body).toString()).slice(0, 200)
    post.onFailure?.(`it answered ${reply.status} ${said}`)
    return false
  }

  return {
    check: http.check,
    async send(url, post) {
      const end = performance.now() + post.untilMs
      for (let pause = firstPauseMs; !closing.aborted; pause = Math.min(2 * pause, MAX_PAUSE_MS)) {
        try {
          const taken = await turns(() => tryOnce(url, post))
          if (taken === 'nothing') return false
          if (taken) {
            onTried('delivered')
            return true
          }
        } catch (error) {
          post.onFailure?.((error as Error).message)
        }
        const wait = pause * (0.5 + random())
        if (performance.now() + wait >= end) {
          onTried('failed')
          return false
        }
        onTried('retried')
        await sleep(wait, closing)
      }
      return false
    },
  }
}

/** The headers of the settings that belong to a URL's host; no other host sees them. */
function secretsFor(headers: Config['callbacks']['headers'], url: string): Record<string, string> {
  const { host, hostname } = new URL(url)
  return Object.fromEntries(
    headers
      .filter((entry) => entry.host === host || entry.host === hostname)
      .map(({ name, value }) => [name, value]),
  )
}

/** At most `limit` at once; the others wait in their order. */
function createTurns(limit: number): <T>(run: () => Promise<T>) => Promise<T> {
  const waiting: (() => void)[] = []
  let running = 0
  return async (run) => {
    if (running >= limit) await new Promise<void>((resolve) => waiting.push(resolve))
    else running++
    try {
      return await run()
    } finally {
      const next = waiting.shift()
      if (next) next()
      else running--
    }
  }
}

function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(end, ms)
    timer.unref()
    signal.addEventListener('abort', end, { once: true })
    function end() {
      clearTimeout(timer)
      signal.removeEventListener('abort', end)
      resolve()
    }
  })
}
