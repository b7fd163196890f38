// Tells others over HTTP what they asked to be told: to allowed hosts, again and again until it is taken, a few at a time each.
import { setMaxListeners } from 'node:events'
import type { Config } from './config.ts'
import { createGuardedHttp } from './runtime/asking/guarded-url.ts'
import { createRedaction } from './runtime/policy/redaction.ts'

export interface CallbackSender {
  /** Throws PaddockError `invalid_request` with `path` for a URL that may not be called. */
  check(url: string, path: string): void
  /**
   * Posts until it is taken (true), or until no time is left or the server closes (false); no try begins after that.
   * A few at a time go to one destination, so that one that hangs holds up only itself. Never rejects.
   */
  send(url: string, post: CallbackPost): Promise<boolean>
}

interface CallbackPost {
  /** Asked as each try begins, so that nothing large or lent waits for its turn; null gives up. */
  body(): Promise<Uint8Array | null>
  contentType: string
  /** Whether what was answered says that the body was taken. */
  isTaken(status: number, body: Uint8Array): boolean
  /** Milliseconds for it from now on. */
  leftMs(): number
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
/** Bodies that are under way at once to one destination, and to all: sixteen may hang before another waits for them. */
const MAX_TO_ONE = 4
const MAX_TO_ALL = 64

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
  const inLine = openLines(MAX_TO_ONE, MAX_TO_ALL)
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
      const { origin } = new URL(url)
      const isOver = (wait = 0) => wait >= post.leftMs()
      for (let pause = firstPauseMs; ; pause = Math.min(2 * pause, MAX_PAUSE_MS)) {
        try {
          // Looked at when its turn has come: the wait for it may have taken all the time there was.
          const taken = await inLine(origin, async () =>
            closing.aborted || isOver() ? false : tryOnce(url, post),
          )
          if (taken === 'nothing') return false
          if (taken) {
            onTried('delivered')
            return true
          }
        } catch (error) {
          post.onFailure?.((error as Error).message)
        }
        if (closing.aborted) return false
        const wait = pause * (0.5 + random())
        if (isOver(wait)) {
          onTried('failed')
          return false
        }
        onTried('retried')
        await sleep(wait, closing)
      }
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

/** At most `each` at once of one key and `all` together. Those of a key wait in their order; the keys take turns. */
function openLines(
  each: number,
  all: number,
): <T>(key: string, run: () => Promise<T>) => Promise<T> {
  const lines = new Map<string, { running: number; waiting: (() => void)[] }>()
  let running = 0

  function admitNext(): void {
    if (running === all) return
    for (const line of lines.values()) {
      const start = line.running < each ? line.waiting.shift() : undefined
      if (!start) continue
      line.running++
      running++
      start()
      return
    }
  }

  return async (key, run) => {
    const line = lines.get(key) ?? { running: 0, waiting: [] }
    lines.set(key, line)
    await new Promise<void>((start) => {
      line.waiting.push(start)
      admitNext()
    })
    try {
      return await run()
    } finally {
      line.running--
      running--
      // Who has had a place comes after those that wait for one.
      lines.delete(key)
      if (line.running > 0 || line.waiting.length > 0) lines.set(key, line)
      admitNext()
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
