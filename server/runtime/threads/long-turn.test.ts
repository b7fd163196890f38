// A turn may take as long as its limit says, and no longer: no limit of the transport stands beside it.
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { pathToFileURL } from 'node:url'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import { labPlan, writeLab } from '../../testkit/lab-environment.testkit.ts'
import { backendAt, clientOf } from '../../testkit/policy-client.testkit.ts'
import { playAttempt } from '../batches/player.ts'
import { createPool, type Pool } from './pool.ts'

let pool: Pool
beforeAll(async () => {
  const environments = { lab: pathToFileURL(writeLab().module).href }
  pool = createPool({ threads: 1, maxTurnSeconds: 900, heapMb: 96, environments, models: {} })
  await pool.ready()
}, 60_000)
afterAll(() => pool.close())
afterEach(() => void vi.useRealTimers())

const ANSWER = JSON.stringify({
  choices: [{ message: { role: 'assistant', content: 'It is 5.' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 9, completion_tokens: 9 },
})

/** Plays an attempt against a backend that answers nothing by itself, on a clock that stands still by itself. */
async function play(turnSeconds: number, during: (response: ServerResponse) => Promise<void>) {
  let requests = 0
  let arrived: (response: ServerResponse) => void = () => {}
  const arrival = new Promise<ServerResponse>((resolve) => {
    arrived = resolve
  })
  const server = createServer((_, response) => {
    requests++
    arrived(response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const client = clientOf({ main: backendAt([url]) })
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  const far = performance.now() + 10_000_000
  const deadlines = { turnMs: turnSeconds * 1000, episodeAt: far, groupAt: far }
  const world = { pool, client, keepTurn: async () => {}, onEvents: () => {} }
  const signal = new AbortController().signal
  const played = playAttempt(labPlan({}), deadlines, world as never, signal)
  await during(await arrival)
  const { outcome, reason, seconds } = await played
  vi.useRealTimers()
  await client.close()
  server.closeAllConnections()
  server.close()
  return { outcome, reason, seconds, requests }
}

/** In steps as an idle process has them, so that every timer of the transport may fire. */
async function pass(seconds: number) {
  for (let left = seconds; left > 0; left -= 5) await vi.advanceTimersByTimeAsync(5000)
}

test('B11: an answer that takes 310 s of 400 comes, with one request', async () => {
  const { outcome, requests } = await play(400, async (response) => {
    await pass(310)
    response.writeHead(200, { 'content-type': 'application/json' }).end(ANSWER)
  })
  expect([outcome, requests]).toEqual(['ok', 1])
})

test('B11: no answer in 305 s is a timeout at 305 s, which names the turn’s own limit', async () => {
  const played = await play(305, () => pass(306))
  expect(played).toMatchObject({ outcome: 'timeout', requests: 1 })
  expect(played.reason).toContain('turn_timeout_s')
  expect(played.seconds).toBeGreaterThanOrEqual(304)
  expect(played.seconds).toBeLessThanOrEqual(306)
})
