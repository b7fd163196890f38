// A batch's callback over a whole server: acknowledged by 2xx, made again until then, and only to hosts that are allowed.
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { unpack } from '../protocol/msgpack.ts'
import { type House, openHouse } from './testkit/house.testkit.ts'

interface Heard {
  headers: IncomingMessage['headers']
  body: Buffer
}

let house: House
const cleanups: (() => unknown)[] = []
beforeAll(async () => {
  house = await openHouse({
    tokens: false,
    settings: {
      callbacks: {
        allow: ['127.0.0.1'],
        headers: [
          { host: '127.0.0.1', name: 'authorization', value: 'Bearer of-the-trainer' },
          { host: 'other.example', name: 'x-other', value: 'not for this one' },
        ],
      },
    },
  })
}, 60_000)
afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup()
})
afterAll(() => house.close())

/** A trainer's endpoint that answers with each status in turn, the last one for ever; `heard(n)` waits for n calls. */
async function trainer(...statuses: number[]) {
  const calls: Heard[] = []
  const waiting: { count: number; resolve: () => void }[] = []
  const server = createServer(async (request, response) => {
    const body = await buffer(request)
    const status = statuses[Math.min(calls.length, statuses.length - 1)] ?? 200
    calls.push({ headers: request.headers, body })
    response.writeHead(status).end()
    for (const { count, resolve } of waiting) if (calls.length >= count) resolve()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  cleanups.push(() => {
    server.close()
    server.closeAllConnections()
  })
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/groups`,
    async heard(count: number): Promise<Heard[]> {
      if (calls.length < count)
        await new Promise<void>((resolve) => waiting.push({ count, resolve }))
      return calls
    },
  }
}

const batch = (url: string, more = {}) => ({
  tasks: [{ task: 'arithmetic/sum-0' }, { task: 'arithmetic/sum-1' }],
  group_size: 2,
  mode: 'eval',
  callback: { url, ...more },
})

async function done(id: string) {
  for (;;) {
    const progress = await house.api.progress(id)
    if (progress.done) return progress
    // The end of the events is the end of the batch.
    await (await fetch(`${house.url}/v1/batches/${id}/events?after=0`)).text()
  }
}

test('each group is posted once as the body of a lease, and 2xx acknowledges it', async () => {
  const { url, heard } = await trainer(204)
  const { id } = await house.api.submit(batch(url))
  const calls = await heard(2)
  const progress = await done(id)
  expect(progress.groups.settled).toEqual({ acked: 2 })
  expect(calls).toHaveLength(2)
  const groups = calls.flatMap(({ body }) => JSON.parse(body.toString()).groups)
  expect(groups.map((group) => group.batch)).toEqual([id, id])
  expect(new Set(groups.map((group) => group.task)).size).toBe(2)
  expect(groups[0].episodes).toHaveLength(2)
})

test('the headers of the settings go to their host alone', async () => {
  const { url, heard } = await trainer(200)
  await house.api.submit(batch(url))
  const [call] = await heard(1)
  expect(call?.headers.authorization).toBe('Bearer of-the-trainer')
  expect(call?.headers).not.toHaveProperty('x-other')
  expect(call?.headers['content-type']).toBe('application/json')
})

test('msgpack comes as it does from a lease', async () => {
  const { url, heard } = await trainer(200)
  await house.api.submit(batch(url, { encoding: 'msgpack' }))
  const [call] = await heard(1)
  expect(call?.headers['content-type']).toBe('application/msgpack')
  expect(unpack(call?.body as Buffer)).toMatchObject({ groups: [{ episodes: [{}, {}] }] })
})

test('a call that fails is made again under the same lease, until it is taken', async () => {
  const { url, heard } = await trainer(500, 302, 200)
  const { id } = await house.api.submit(batch(url))
  const calls = await heard(4)
  expect((await done(id)).groups.settled).toEqual({ acked: 2 })
  const leases = calls.map(({ body }) => JSON.parse(body.toString()).groups[0].lease)
  expect(new Set(leases.slice(0, 3).map(({ id }) => id)).size).toBe(1)
  expect(leases[0]).toMatchObject({ delivery: 1 })
})

/** Takes every connection and never answers. */
async function hangingTrainer() {
  const hanging = createServer((request) => request.resume()).listen(0, '127.0.0.1')
  await once(hanging, 'listening')
  cleanups.push(() => {
    hanging.close()
    hanging.closeAllConnections()
  })
  const { port } = hanging.address() as AddressInfo
  return { hanging, url: `http://127.0.0.1:${port}/` }
}

test('a trainer whose listener hangs holds up only itself', async () => {
  const { hanging, url: mute } = await hangingTrainer()
  let held = 0
  const allHeld = new Promise<void>((resolve) => {
    hanging.on('request', () => ++held === 4 && resolve())
  })
  for (let index = 0; index < 8; index++) await house.api.submit(batch(mute))
  await allHeld
  const { url } = await trainer(200)
  const { id } = await house.api.submit(batch(url))
  expect((await done(id)).groups.settled).toEqual({ acked: 2 })
})

test('a group that waits for a place at its listener is not leased before it has one', async () => {
  const { url } = await hangingTrainer()
  const ids = await Promise.all(
    Array.from({ length: 8 }, async () => {
      const { id } = await house.api.submit(batch(url))
      return id
    }),
  )
  const standing = async () => {
    const all = await Promise.all(ids.map((id) => house.api.progress(id)))
    const sum = (what: 'finished' | 'leased') =>
      all.reduce((total, { groups }) => total + groups[what], 0)
    return { finished: sum('finished'), leased: sum('leased') }
  }
  let now = await standing()
  while (now.finished < 16 || now.leased < 4) now = await standing()
  expect(now).toEqual({ finished: 16, leased: 4 })
})

test('a group that is not taken within its lease is delivered again', async () => {
  const { url, heard } = await trainer(500)
  await house.api.submit(batch(url, { lease_s: 1 }))
  const calls = await heard(6)
  const deliveries = calls.map(({ body }) => JSON.parse(body.toString()).groups[0].lease.delivery)
  expect(Math.max(...deliveries)).toBeGreaterThan(1)
})

test.each([
  'http://127.0.0.2:80/',
  'http://169.254.169.254/latest/meta-data',
  'http://localhost:1/',
  'http://[::1]:1/',
  'http://example.com/',
])('%s is not allowed: the batch is refused', async (url) => {
  await expect(house.api.submit(batch(url))).rejects.toThrow(
    /400 callback\.url: .* is not among the hosts that may be called: add it to callbacks\.allow/,
  )
})
