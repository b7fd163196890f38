// What backend_up and the tries by code say of a backend that fails now and then, always, or not at all.
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { backendAt, clientOf, requestTo } from '../testkit/policy-client.testkit.ts'
import { createMetrics } from './metrics.ts'
import { QUIET } from './quiet.testkit.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

type Answer = (response: ServerResponse, nth: number) => void
const fails: Answer = (response) => void response.writeHead(500).end()
const JSON_TYPE = { 'content-type': 'application/json' }
const fine: Answer = (response) => void response.writeHead(200, JSON_TYPE).end('{}')

/** A client whose metrics are real, and a backend whose `answer` may be changed. */
async function watched(answer: Answer) {
  const now = { answer, arrivals: 0, arrived: (_: number) => {} }
  const server = createServer((request, response) => {
    request.resume().on('end', () => {
      now.arrived(now.arrivals + 1)
      now.answer(response, now.arrivals++)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  closing.push(() => {
    server.closeAllConnections()
    server.close()
  })
  const lists = { env: ['office'], backend: ['main'], component: {}, version: '1', node: 'v20' }
  const told: [string, string | null][] = []
  const metrics = createMetrics(lists, QUIET, undefined, (backend, silence) =>
    told.push([backend, silence?.last ?? null]),
  )
  const { port } = server.address() as AddressInfo
  const client = clientOf({ main: backendAt([`http://127.0.0.1:${port}`]) }, metrics)
  closing.push(() => client.close())
  return {
    now,
    metrics,
    told,
    ask: (signal = new AbortController().signal, ms = 20_000) =>
      client.ask(requestTo('main'), performance.now() + ms, signal),
    async up() {
      const { text } = await metrics.text('plain')
      expect(metrics.backendsDown().has('main')).toBe(text.includes('backend_up{backend="main"} 0'))
      return !metrics.backendsDown().has('main')
    },
    async tries(code: string) {
      const { text } = await metrics.text('plain')
      const line = `paddock_backend_requests_total{backend="main",code="${code}"} (\\d+)`
      return Number(new RegExp(line).exec(text)?.[1])
    },
  }
}

test('one request that nothing helps says little of the backend, however often it is tried', async () => {
  const { ask, up, tries } = await watched(fails)
  await ask()
  expect(await tries('5xx')).toBe(3)
  expect(await up()).toBe(true)
})

test('a backend is down once three requests have come to nothing, and up with the first token', async () => {
  const { now, ask, up } = await watched(fails)
  for (let count = 0; count < 3; count++) await ask()
  expect(await up()).toBe(false)
  now.answer = fine
  await ask()
  expect(await up()).toBe(true)
})

test('a backend whose breaker opens while its requests still wait is down, and refused requests leave it so', async () => {
  const { now, metrics, ask, up, told } = await watched(fine)
  // So that each of those to come may be tried again.
  for (let count = 0; count < 100; count++) await ask()
  now.answer = (response) => void response.socket?.destroy()
  const before = Date.now() / 1000
  const withdrawn = new AbortController()
  const waiting = Array.from({ length: 12 }, () => ask(withdrawn.signal, 600_000))
  await expect.poll(up, { timeout: 4000 }).toBe(false)
  // None of them has come to its end: they wait for the breaker.
  const since = metrics.backendsDown().get('main')
  expect(since).toBeGreaterThanOrEqual(before)
  expect(since).toBeLessThan(Date.now() / 1000)
  for (let count = 0; count < 4; count++)
    expect(await ask(undefined, 100)).toMatchObject({ reason: expect.stringMatching(/left alone/) })
  expect(metrics.backendsDown().get('main')).toBe(since)
  expect(told).toEqual([['main', expect.stringMatching(/UND_ERR_SOCKET|ECONNRESET/)]])
  withdrawn.abort()
  await Promise.all(waiting)
})

test('it is told once that a backend gives no tokens, with what came, and once that it gives some again', async () => {
  const { now, ask, told } = await watched(fails)
  for (let count = 0; count < 3; count++) await ask()
  expect(told).toEqual([['main', 'status 500']])
  now.answer = fine
  for (let count = 0; count < 3; count++) await ask()
  expect(told).toEqual([
    ['main', 'status 500'],
    ['main', null],
  ])
})

test('it lives where it asks for a pause', async () => {
  const { now, ask, up } = await watched(fails)
  for (let count = 0; count < 3; count++) await ask()
  now.answer = (response) => void response.writeHead(429).end()
  await ask()
  expect(await up()).toBe(true)
})

test('a backend that fails a fifth of what it is asked is up all the time', async () => {
  const { ask, up } = await watched((response, nth) =>
    nth % 5 === 4 ? fails(response, nth) : fine(response, nth),
  )
  for (let count = 0; count < 50; count++) {
    await ask()
    expect(await up()).toBe(true)
  }
})

test('requests that are withdrawn are no tries that ran out of time', async () => {
  const { now, ask, up, tries } = await watched(() => {})
  const withdrawn = new AbortController()
  const arrived = new Promise<void>((resolve) => {
    now.arrived = (count) => count === 4 && resolve()
  })
  const asked = Array.from({ length: 4 }, () => ask(withdrawn.signal))
  await arrived
  withdrawn.abort()
  for (const answer of await Promise.all(asked))
    expect(answer).toMatchObject({ outcome: 'aborted' })
  expect(await up()).toBe(true)
  expect(await tries('timeout')).toBe(0)
})

test('a deadline that passes is a try without a token', async () => {
  const { ask, up, tries } = await watched(() => {})
  await Promise.all(Array.from({ length: 3 }, () => ask(undefined, 300)))
  expect(await tries('timeout')).toBe(3)
  expect(await up()).toBe(false)
})

test('a page, and nothing at all, are no tokens though their status is 200', async () => {
  for (const bad of [
    (response: ServerResponse) =>
      void response.writeHead(200, { 'content-type': 'text/html' }).end('<html>'),
    (response: ServerResponse) => void response.writeHead(200, JSON_TYPE).end(),
  ]) {
    const { ask, up, tries } = await watched(bad)
    for (let count = 0; count < 3; count++) await ask()
    expect(await tries('invalid')).toBe(3)
    expect(await up()).toBe(false)
  }
})

test('a body that breaks off is truncated, a connection that ends before an answer is reset', async () => {
  const { now, ask, tries } = await watched((response) => {
    response.writeHead(200, { ...JSON_TYPE, 'content-length': '100' })
    response.write('{', () => response.socket?.destroy())
  })
  await ask()
  expect([await tries('truncated'), await tries('reset')]).toEqual([3, 0])
  now.answer = (response) => void response.socket?.destroy()
  await ask(undefined, 2000)
  expect(await tries('reset')).toBeGreaterThan(0)
})

test('before anything was asked or told, nothing is claimed: neither that a backend is up nor that a checkpoint is near', async () => {
  const { metrics, ask } = await watched(fine)
  const told = async (name: string) =>
    new RegExp(`^paddock_${name}(?:\\{.*\\})? (\\S+)$`, 'm').exec(
      (await metrics.text('plain')).text,
    )?.[1]
  for (const name of ['backend_up', 'trainer_step', 'trainer_checkpoint_step', 'store_free_bytes'])
    expect(await told(name), name).toBeUndefined()
  await ask()
  expect(await told('backend_up')).toBe('1')
  // A trainer that has told of no checkpoint is not one whose checkpoint is of step 0.
  metrics.heartbeat(122, null, 1)
  expect(await told('trainer_step')).toBe('122')
  expect(await told('trainer_checkpoint_step')).toBeUndefined()
  metrics.heartbeat(123, 0, 1)
  expect(await told('trainer_checkpoint_step')).toBe('0')
  metrics.heartbeat(130, 120, 2)
  metrics.heartbeat(131, null, 3)
  expect(await told('trainer_step')).toBe('131')
  expect(await told('trainer_checkpoint_step')).toBe('120')
})
