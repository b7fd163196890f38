// Server-sent events: gapless resumption, ends, and readers that are slow or gone.
import { once } from 'node:events'
import { connect } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { createApp } from './app.ts'
import { loadConfig } from './config.ts'
import { type Listener, listen } from './listen.ts'
import { createEventLog } from './runtime/batches/event-log.ts'
import { eventStream } from './sse.ts'
import { createStubService } from './stub-service.testkit.ts'

const open = new AbortController().signal
/** Longer than a test. */
const HEARTBEAT_MS = 60_000

interface Frame {
  id?: string
  event?: string
  data?: string
  comment?: string
}

/** Reads a stream of text as frames, one at a time. */
function framesOf(stream: ReadableStream<Uint8Array>) {
  const reader = stream.getReader()
  const decoder = new TextDecoder()
  let rest = ''
  return {
    /** Null at the end. */
    async next(): Promise<Frame | null> {
      let end = rest.indexOf('\n\n')
      while (end === -1) {
        const { done, value } = await reader.read()
        if (done) return null
        rest += decoder.decode(value, { stream: true })
        end = rest.indexOf('\n\n')
      }
      const lines = rest.slice(0, end).split('\n')
      rest = rest.slice(end + 2)
      return Object.fromEntries(
        lines.map((line) => {
          const colon = line.indexOf(':')
          return [line.slice(0, colon) || 'comment', line.slice(colon + 1).trim()]
        }),
      )
    },
    async all(): Promise<Frame[]> {
      const frames: Frame[] = []
      for (let frame = await this.next(); frame; frame = await this.next()) frames.push(frame)
      return frames
    },
    cancel: () => reader.cancel(),
  }
}

function logOf(count: number, capacity = 100_000) {
  const log = createEventLog(capacity)
  for (let n = 1; n <= count; n++) log.append('turn', `{"type":"turn","turn":${n}}`, 1)
  return log
}

const numbers = (frames: Frame[]) => frames.map((frame) => Number(frame.id))
const range = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, index) => from + index)

describe('the stream', () => {
  test('from 0 holds every event in order, each with its number, type and JSON', async () => {
    const log = logOf(1000)
    log.end()
    const frames = await framesOf(eventStream(log, 0, open, HEARTBEAT_MS)).all()
    expect(numbers(frames)).toEqual(range(1, 1000))
    expect(frames[6]?.event).toBe('turn')
    expect(JSON.parse(frames[6]!.data!)).toEqual({ n: 7, at: 1, type: 'turn', turn: 7 })
  })

  test('it goes on with what is appended, and ends when the log ends', async () => {
    const log = logOf(1)
    const frames = framesOf(eventStream(log, 0, open, HEARTBEAT_MS))
    expect((await frames.next())?.id).toBe('1')
    const second = frames.next()
    log.append('verdict', '{"type":"verdict"}', 2)
    expect(await second).toMatchObject({ id: '2', event: 'verdict' })
    const end = frames.next()
    log.end()
    expect(await end).toBeNull()
  })

  test('a heartbeat has no id, so that a resumption after it misses nothing', async () => {
    const log = logOf(3)
    const seen: number[] = []
    for (let cut = 0; cut < 50; cut++) {
      const frames = framesOf(eventStream(log, seen.at(-1) ?? 0, open, 1))
      for (let frame = await frames.next(); frame; frame = await frames.next()) {
        if (frame.comment !== undefined) {
          expect(frame).toEqual({ comment: 'heartbeat' })
          break
        }
        seen.push(Number(frame.id))
      }
      await frames.cancel()
      log.append('turn', '{"type":"turn"}', 1)
    }
    expect(seen).toEqual(range(1, 52))
  })

  test('two readers at their own pace both get everything', async () => {
    const log = logOf(600)
    const one = framesOf(eventStream(log, 0, open, HEARTBEAT_MS))
    const two = framesOf(eventStream(log, 0, open, HEARTBEAT_MS))
    const first = [await one.next()]
    log.end()
    const all = await two.all()
    first.push(...(await one.all()))
    expect(numbers(first as Frame[])).toEqual(range(1, 600))
    expect(numbers(all)).toEqual(range(1, 600))
  })

  test('a reader so slow that its next event is dropped is told so and ended, without an id', async () => {
    // 256 events are read at once; capacity 100 drops in runs of 1,024.
    const log = logOf(300, 100)
    const frames = framesOf(eventStream(log, 0, open, HEARTBEAT_MS))
    expect(numbers([(await frames.next())!])).toEqual([1])
    for (let n = 0; n < 3000; n++) log.append('turn', '{"type":"turn"}', 1)
    const rest = await frames.all()
    const last = rest.pop()!
    expect(numbers(rest)).toEqual(range(2, 256))
    expect(last).toMatchObject({ event: 'expired' })
    expect(last.id).toBeUndefined()
    expect(JSON.parse(last.data!)).toEqual({
      type: 'expired',
      after: 256,
      oldest: log.oldest,
      newest: 3300,
    })
  })

  test('nothing is read from the log before the reader asks', async () => {
    let reads = 0
    const log = logOf(1000)
    const counting = Object.create(log, {
      read: {
        value: (after: number, limit: number) => {
          reads++
          return log.read(after, limit)
        },
      },
    })
    const frames = framesOf(eventStream(counting, 0, open, HEARTBEAT_MS))
    await new Promise(setImmediate)
    expect(reads).toBe(0)
    await frames.next()
    await new Promise(setImmediate)
    expect(reads).toBe(1)
    await frames.cancel()
  })

  test('a long log is put out in many turns of the thread', async () => {
    const log = logOf(50_000)
    log.end()
    let turns = 0
    let counting = true
    const count = () => {
      turns++
      if (counting) setImmediate(count)
    }
    count()
    await framesOf(eventStream(log, 0, open, HEARTBEAT_MS)).all()
    counting = false
    // 50,000 events are 196 writes of at most 256.
    expect(turns).toBeGreaterThan(150)
  })

  test('a reader that goes away while it waits leaves no listener behind', async () => {
    const log = logOf(0)
    let listeners = 0
    const counting = Object.create(log, {
      subscribe: {
        value: (listener: () => void) => {
          listeners++
          const unsubscribe = log.subscribe(listener)
          return () => {
            listeners--
            unsubscribe()
          }
        },
      },
    })
    const frames = framesOf(eventStream(counting, 0, open, HEARTBEAT_MS))
    const pending = frames.next()
    await new Promise(setImmediate)
    expect(listeners).toBe(1)
    await frames.cancel()
    expect(await pending).toBeNull()
    expect(listeners).toBe(0)
  })

  test('it ends when the server closes', async () => {
    const closing = new AbortController()
    const frames = framesOf(eventStream(logOf(1), 0, closing.signal, HEARTBEAT_MS))
    await frames.next()
    const end = frames.next()
    closing.abort()
    expect(await end).toBeNull()
  })
})

describe('GET /v1/batches/:id/events', () => {
  const service = createStubService()
  for (let n = 1; n <= 5000; n++) service.log.append('turn', '{"type":"turn"}', 1)
  service.log.end()
  const { oldest } = service.log
  const app = createApp(service, loadConfig({ file: null }))
  const get = (query: string, headers: Record<string, string> = {}) =>
    app.request(`/v1/batches/b1/events${query}`, { headers })

  test('it is an event stream that no proxy holds back or keeps', async () => {
    const response = await get('')
    expect(response.headers.get('content-type')).toBe('text/event-stream')
    expect(response.headers.get('cache-control')).toBe('no-store')
    expect(response.headers.get('x-accel-buffering')).toBe('no')
    await response.body?.cancel()
  })

  test('from 0 it gives everything that is still kept', async () => {
    expect(oldest).toBeGreaterThan(1)
    const frames = await framesOf((await get('?after=0')).body!).all()
    expect(numbers(frames)).toEqual(range(oldest, 5000))
  })

  test('Last-Event-ID wins over after', async () => {
    const response = await get(`?after=${oldest}`, { 'last-event-id': '4998' })
    expect(numbers(await framesOf(response.body!).all())).toEqual([4999, 5000])
  })

  test.each([
    ['?after=5001', {}, 400],
    ['', { 'last-event-id': '5001' }, 400],
    ['', { 'last-event-id': 'x' }, 400],
    ['?after=1', {}, 410],
    ['?after=5000', {}, 204],
  ])('%s %j is answered %i', async (query, headers, status) => {
    expect((await get(query, headers)).status).toBe(status)
  })

  test('what has expired is told with the place from which to go on', async () => {
    const problem = (await (await get('?after=1')).json()) as { detail: string; code: string }
    expect(problem.code).toBe('gone')
    expect(problem.detail).toContain(`resume after ${oldest - 1}`)
    expect((await get(`?after=${oldest - 1}`)).status).toBe(200)
  })
})

describe('over a socket', () => {
  let listener: Listener | null = null
  afterEach(() => listener?.close(0))

  test('a reader that never reads holds up no other, and little of the log is put out for it', async () => {
    const service = createStubService()
    const log = createEventLog(100_000, 0, 2 ** 27)
    const filler = 'x'.repeat(1000)
    for (let n = 1; n <= 50_000; n++) log.append('turn', `{"type":"turn","text":"${filler}"}`, 1)
    log.end()
    /** The highest event that each reader was given, in the order in which they came. */
    const given: number[] = []
    service.events = () => {
      const reader = given.push(0) - 1
      return Object.create(log, {
        read: {
          value: (after: number, limit: number) => {
            given[reader] = after + limit
            return log.read(after, limit)
          },
        },
      })
    }
    const app = createApp(service, loadConfig({ file: null }))
    listener = await listen({ fetch: app.fetch, host: '127.0.0.1', port: 0, maxConnections: 10 })
    const { url } = listener

    const stalled = connect(Number(new URL(url).port), '127.0.0.1')
    stalled.write('GET /v1/batches/b1/events HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await once(stalled, 'readable')
    stalled.pause()
    const response = await fetch(`${url}/v1/batches/b1/events`)
    const frames = await framesOf(response.body!).all()
    expect(frames).toHaveLength(50_000)
    // 50 MB were there for it too; the kernel's buffers take a few.
    expect(given[0]).toBeLessThan(20_000)
    stalled.destroy()
  })
})
