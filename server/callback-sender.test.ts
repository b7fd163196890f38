// The callback sender against listeners on sockets: who hangs holds up only itself, and nothing is posted too late.
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pass } from 'node:timers/promises'
import { afterEach, expect, test } from 'vitest'
import { createCallbackSender } from './callback-sender.ts'

const cleanups: (() => unknown)[] = []
afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup()
})

function open(firstPauseMs = 1) {
  const closing = new AbortController()
  cleanups.push(() => closing.abort())
  const tried: string[] = []
  const sender = createCallbackSender(
    { callbacks: { allow: ['127.0.0.1'], headers: [] } },
    { closing: closing.signal, firstPauseMs, onTried: (result) => tried.push(result) },
  )
  const send = (url: string, untilMs = 60_000) => {
    const end = performance.now() + untilMs
    return sender.send(url, {
      body: async () => new Uint8Array([1]),
      contentType: 'application/json',
      isTaken: (status) => status === 200,
      leftMs: () => end - performance.now(),
    })
  }
  return { send, closing, tried }
}

/** A listener that answers when the test says so: `asked()` is the next request's answer. */
async function listener() {
  const arrived: ServerResponse[] = []
  const waiting: ((response: ServerResponse) => void)[] = []
  let open = 0
  let most = 0
  const server = createServer((request, response) => {
    request.resume()
    most = Math.max(most, ++open)
    response.on('close', () => open--)
    const next = waiting.shift()
    if (next) next(response)
    else arrived.push(response)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  cleanups.push(() => {
    server.close()
    server.closeAllConnections()
  })
  const asked = () =>
    new Promise<ServerResponse>((resolve) => {
      const response = arrived.shift()
      if (response) resolve(response)
      else waiting.push(resolve)
    })
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}/`, asked, arrived, most: () => most }
}

test('a listener that hangs holds up only itself', async () => {
  const [hanging, healthy] = [await listener(), await listener()]
  const { send } = open()
  for (let index = 0; index < 100; index++) void send(hanging.url)
  await hanging.asked()
  const taken = send(healthy.url)
  const answer = await healthy.asked()
  answer.end()
  expect(await taken).toBe(true)
})

test('a listener gets four at a time, and all of them in the end', async () => {
  const { url, asked, most } = await listener()
  const { send } = open()
  const sent = Array.from({ length: 12 }, () => send(url))
  const first = [await asked(), await asked(), await asked(), await asked()]
  for (const answer of first) answer.end()
  for (let index = 4; index < 12; index++) {
    const answer = await asked()
    answer.end()
  }
  expect(await Promise.all(sent)).toEqual(sent.map(() => true))
  expect(most()).toBe(4)
})

test('where sixteen destinations hang, the next free place is the newcomer’s', async () => {
  const hanging = await Promise.all(Array.from({ length: 16 }, listener))
  const late = await listener()
  const { send } = open()
  for (const { url } of hanging) for (let index = 0; index < 6; index++) void send(url)
  const [first] = await Promise.all(hanging.map(({ asked }) => asked()))
  const taken = send(late.url)
  first?.end()
  const answer = await late.asked()
  answer.end()
  expect(await taken).toBe(true)
})

test('what waited for its place until its time was over is not posted', async () => {
  const { url, asked, arrived } = await listener()
  const { send, tried } = open()
  const held = Array.from({ length: 8 }, () => send(url))
  const tooLate = send(url, 20)
  const answers = [await asked()]
  await pass(25)
  for (let index = 1; index < 8; index++) {
    answers.pop()?.end()
    answers.push(await asked())
  }
  answers.pop()?.end()
  expect(await Promise.all(held)).toEqual(held.map(() => true))
  expect(await tooLate).toBe(false)
  expect(arrived).toEqual([])
  expect(tried.toSorted()).toEqual([...held.map(() => 'delivered'), 'failed'])
})

test('closing ends a try under way, those in line and the pause', async () => {
  const { url, asked } = await listener()
  const { send, closing } = open(600_000)
  const sent = Array.from({ length: 6 }, () => send(url))
  await asked()
  closing.abort()
  expect(await Promise.all(sent)).toEqual(sent.map(() => false))
})
