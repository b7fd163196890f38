// The policy client: what a backend echoes of our secrets never comes out of it.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { vllm } from '../../../rollout/policy/vllm.ts'
import { backendAt, clientOf, requestTo } from '../../testkit/policy-client.testkit.ts'
import type { PolicyAnswer } from './policy-try.ts'
import { createRedaction } from './redaction.ts'

const KEY = 'sk-very/secret"key-123'
let server: Server | null = null
afterEach(() => {
  server?.closeAllConnections()
  server?.close()
})

/** Asks a backend that answers so; `other` is the key of a second backend of the same configuration. */
async function ask(
  answer: (request: IncomingMessage, response: ServerResponse) => void,
  key = KEY,
  other = 'sk-of-another',
): Promise<PolicyAnswer> {
  server = createServer(answer)
  await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const client = clientOf({
    main: backendAt([url], { api_key: key }),
    other: backendAt([url], { api_key: other }),
  })
  const signal = new AbortController().signal
  const answered = await client.ask(requestTo('main'), performance.now() + 5000, signal)
  await client.close()
  return answered
}

/** What a trainer reads of a reply that is no completion. */
function reasonOf(answer: PolicyAnswer): string {
  if (answer.kind === 'failure') return answer.reason
  const expect = { tokens: false, promptIds: null, maxTokens: 9, knowsId: null }
  const read = vllm.read(answer.status, answer.headers, answer.body, expect)
  if (read.kind === 'completion') throw new Error('expected a fault')
  return read.message
}

describe('a backend that echoes the request’s authorization', () => {
  const json = { 'content-type': 'application/json' }
  const said = (request: IncomingMessage) => request.headers.authorization ?? 'nothing'

  test.each<[what: string, answer: (request: IncomingMessage, response: ServerResponse) => void]>([
    [
      'in the text of a 400',
      (request, response) => response.writeHead(400).end(`bad key: ${said(request)}`),
    ],
    [
      'in the JSON of a 401',
      (request, response) =>
        response.writeHead(401, json).end(JSON.stringify({ error: { message: said(request) } })),
    ],
    [
      'in a body that is no JSON',
      (request, response) => response.writeHead(200, json).end(said(request)),
    ],
    [
      'in a finish reason',
      (request, response) =>
        response.writeHead(200, json).end(
          JSON.stringify({
            choices: [{ message: { content: 'x' }, finish_reason: said(request) }],
            usage: { prompt_tokens: 1, completion_tokens: 1 },
          }),
        ),
    ],
    [
      'in its content type',
      (request, response) => response.writeHead(200, { 'content-type': said(request) }).end('{}'),
    ],
    [
      'in a URL',
      (request, response) => response.writeHead(403).end(encodeURIComponent(said(request))),
    ],
  ])('%s: the reason has none of it', async (_, answer) => {
    const reason = reasonOf(await ask(answer))
    for (const form of [KEY, JSON.stringify(KEY).slice(1, -1), encodeURIComponent(KEY), 'secret'])
      expect(reason).not.toContain(form)
    expect(reason).toContain('[redacted]')
  })
})

test.each(['placeholder', 'not-needed', '12345678', 'assistant'])(
  'the filler key %s changes nothing of a good reply',
  (key) => {
    const body = new TextEncoder().encode(`{"role":"assistant","text":"a ${key}","ids":[12345678]}`)
    const reply = { status: 200, headers: {}, body }
    expect(createRedaction([key]).reply(reply)).toEqual(reply)
  },
)

test('the key of another backend is taken out too', async () => {
  const answer = await ask((_, response) => response.writeHead(400).end('is it sk-of-another?'))
  expect(reasonOf(answer)).toContain('is it [redacted]?')
})

test('a word of a good reply that is also a short key stays as it was sampled', async () => {
  const body = JSON.stringify({ choices: [{ message: { content: 'EMPTY' } }] })
  const answer = await ask(
    (_, response) => response.writeHead(200, { 'content-type': 'application/json' }).end(body),
    'EMPTY',
  )
  if (answer.kind !== 'reply') throw new Error('expected a reply')
  expect(new TextDecoder().decode(answer.body)).toBe(body)
})

test('bytes of a reply without a secret come as they were sent, text or not', async () => {
  const bytes = Uint8Array.from({ length: 256 }, (_, index) => index)
  const answer = await ask((_, response) => response.writeHead(200).end(bytes))
  if (answer.kind !== 'reply') throw new Error('expected a reply')
  expect([...answer.body]).toEqual([...bytes])
})
