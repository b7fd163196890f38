// How the episodes of one backend are shared by its endpoints, one after another and all at once.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { JsonObject } from '../protocol/json.ts'
import { type House, openHouse } from './testkit/house.testkit.ts'
import { writeLab } from './testkit/lab-environment.testkit.ts'

const EPISODES = 40
const TURNS = 6
const CALL = '<tool_call>\n{"name": "measure", "arguments": {}}\n</tool_call>'

/** Requests of each endpoint, by the number of the episode. */
type Seen = Map<number, number>[]
let seen: Seen = []
/** Called with every first turn; its reply waits for what it returns. */
let onFirst: () => Promise<void> = async () => {}
const closing: (() => unknown)[] = []
let house: House

/** A policy that measures five times and then answers. */
async function endpoint(index: number): Promise<string> {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const body = Buffer.concat(chunks).toString()
    const episode = Number(/Measure number (\d+)/.exec(body)?.[1])
    const { messages } = JSON.parse(body) as { messages: { role: string }[] }
    const turn = messages.filter(({ role }) => role === 'assistant').length
    const requests = seen[index] as Map<number, number>
    requests.set(episode, (requests.get(episode) ?? 0) + 1)
    if (turn === 0) await onFirst()
    const content = turn < TURNS - 1 ? CALL : 'It is 5.'
    const choice = { message: { role: 'assistant', content }, finish_reason: 'stop' }
    const usage = { prompt_tokens: 9, completion_tokens: 9 }
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ choices: [choice], usage }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  closing.push(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

beforeAll(async () => {
  const urls = await Promise.all([0, 1, 2, 3].map(endpoint))
  house = await openHouse({
    backends: { four: { dialect: 'vllm', urls } },
    tokens: false,
    settings: { environments: { lab: writeLab().module } },
  })
}, 60_000)
afterAll(async () => {
  await house.close()
  for (const close of closing) await close()
})
beforeEach(() => {
  seen = Array.from({ length: 4 }, () => new Map())
})

const request = (id: string, ...numbers: number[]): JsonObject => ({
  id,
  tasks: numbers.map((number) => ({
    environment: 'lab',
    spec: { request: `Measure number ${number}.` },
  })),
  group_size: 1,
  mode: 'eval',
  policy: { backend: 'four' },
  limits: { max_turns: TURNS },
})
const numbers = Array.from({ length: EPISODES }, (_, number) => number)

/** Episodes of each endpoint, where every episode had all its turns at one. */
function shares(): number[] {
  const turns = seen.flatMap((requests) => [...requests])
  expect(turns.map(([episode]) => episode).sort((a, b) => a - b)).toEqual(numbers)
  for (const [, count] of turns) expect(count).toBe(TURNS)
  return seen.map((requests) => requests.size)
}

describe('O07: forty episodes of six turns at four endpoints', () => {
  it('O07: one after another, leave no endpoint idle and make none hot', async () => {
    onFirst = async () => {}
    for (const number of numbers) await house.run(request(`one-${number}`, number))
    for (const share of shares()) {
      expect(share).toBeGreaterThanOrEqual(3)
      expect(share).toBeLessThanOrEqual(19)
    }
  }, 120_000)

  it('O07: at once, are ten each', async () => {
    let waiting = EPISODES
    let go = () => {}
    const all = new Promise<void>((resolve) => {
      go = resolve
    })
    onFirst = () => {
      if (--waiting === 0) go()
      return all
    }
    await house.run(request('all', ...numbers))
    for (const share of shares()) {
      expect(share).toBeGreaterThanOrEqual(8)
      expect(share).toBeLessThanOrEqual(12)
    }
  }, 60_000)
})
