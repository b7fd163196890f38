// What models, tools and task authors write is text on the pages, whatever it is: nothing of it runs, hides or reorders.
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createApp } from '../app.ts'
import { loadConfig } from '../config.ts'
import { type Listener, listen } from '../listen.ts'
import type { Service } from '../service.ts'
import { createStubService } from '../stub-service.testkit.ts'
import { openBrowser, openPage } from './browser.testkit.ts'

const MARKUP = [
  '<script>globalThis.stolen = 1</script>',
  '</script><img src=x onerror="globalThis.stolen=1">',
  '<svg onload="globalThis.stolen=1">',
  '"><a href="javascript:globalThis.stolen=1">here</a>',
  '<style>body{display:none}</style>',
  '<iframe srcdoc="<script>parent.stolen=1</script>"></iframe>',
]
/** Right to left, override, isolate, zero width, escape, NUL, C1, byte order mark, line separator, a lone surrogate. */
const STEERING = 'a\u202eb\u2066c\u200bd\u001b[31m\u0000e\u0085\ufefff\u2028g\ud800h שלום'
const HOSTILE = `${MARKUP.join('\n')}\n${STEERING}`

const group = 'b1.g0'
const id = 'b1.g0.e0'

const turn = {
  turn: 0,
  finish: 'stop',
  text: HOSTILE,
  text_differs: false,
  reasoning: HOSTILE,
  content: HOSTILE,
  calls: [{ id: 'c', name: HOSTILE, arguments_json: JSON.stringify({ [HOSTILE]: HOSTILE }) }],
  errors: [{ code: 'unknown_tool', start: 0, end: 1, message: HOSTILE }],
  flags: [],
  leniencies: [],
  observations: [{ call_id: 'c', name: HOSTILE, content: HOSTILE, is_error: true }],
  user: HOSTILE,
  prompt_tokens: 1,
  completion_tokens: 1,
  version: 1,
  reward: 0,
}

const episode = {
  id,
  batch: 'b1',
  group,
  task: HOSTILE,
  seed: 1,
  policy: { model: HOSTILE, mode: 'chat', tool_format: 'hermes', sampling: { temperature: 1 } },
  outcome: 'ok',
  reason: HOSTILE,
  reward: 1,
  rewards: { [HOSTILE]: 1 },
  grade: {
    status: 'scored',
    evidence: {
      checks: { [HOSTILE]: { status: 'scored', score: 1, evidence: [HOSTILE] } },
      [HOSTILE]: HOSTILE,
    },
  },
  messages: [
    { role: 'system', content: HOSTILE },
    { role: 'user', content: HOSTILE },
  ],
  turns: [turn],
  drift: {},
  dropped_tokens: 0,
}

const member = {
  id,
  index: 0,
  attempt: 1,
  phase: 'ended',
  outcome: 'ok',
  reward: 1,
  advantage: 0,
} as const
const service: Partial<Service> = {
  episode: async () => bytes(episode),
  tokens: async () =>
    bytes({
      samples: [
        {
          ids: [1, 2],
          mask: [0, 1],
          logprobs: [0, -1],
          prompt_length: 1,
          versions: [],
          texts: [HOSTILE, HOSTILE],
        },
      ],
    }),
  explain: async () =>
    ({
      id: group,
      batch: 'b1',
      task: HOSTILE,
      verdict: 'valid',
      level: null,
      contract: HOSTILE,
      estimator: 'grpo',
      stats: { n: 1, scored: 1, mean: 1, std: 0, distinct: 1, components: { [HOSTILE]: {} } },
      members: [{ ...member, reason: HOSTILE, rewards: { [HOSTILE]: 1 }, because: HOSTILE }],
      explanation: { remarks: [HOSTILE] },
    }) as never,
}

let browser: Browser
let listener: Listener
beforeAll(async () => {
  const app = createApp(createStubService(service), loadConfig({ file: null }))
  listener = await listen({ fetch: app.fetch, host: '127.0.0.1', port: 0, maxConnections: 50 })
  browser = await openBrowser()
}, 60_000)
afterAll(async () => {
  await browser.close()
  await listener.close(0)
})

test.each([
  ['an episode', `/episodes/${id}`],
  ['its tokens', `/episodes/${id}#tokens`],
  ['its grade', `/episodes/${id}#grade`],
  ['its raw JSON', `/episodes/${id}#raw`],
  ['a group', `/groups/${group}`],
  ['an id that is markup', `/episodes/${encodeURIComponent(MARKUP[1]!)}`],
  ['an address that is markup', `/episodes/${id}#${encodeURIComponent(MARKUP[1]!)}`],
])('%s shows it as text', async (_, path) => {
  const { page, context, hosts, problems } = await openPage(browser, listener.url)
  await page.goto(path)
  await page.waitForSelector('main[data-drawn]')
  const seen = (await page.evaluate(`({
    stolen: globalThis.stolen ?? null,
    made: [...document.querySelectorAll('main :is(script, img, svg, style, iframe), main [onerror], main a[href^="javascript"]')].length,
    text: document.querySelector('main').textContent,
    shown: getComputedStyle(document.body).display,
  })`)) as { stolen: unknown; made: number; text: string; shown: string }
  expect(seen).toMatchObject({ stolen: null, made: 0, shown: 'block' })
  expect(seen.text).toContain('onerror')
  expect(problems).toEqual([])
  expect([...hosts]).toEqual([new URL(listener.url).host])
  await context.close()
})

test('what steers or hides text is spelled out', async () => {
  const { page, context } = await openPage(browser, listener.url)
  await page.goto(`/episodes/${id}`)
  await page.waitForSelector('main[data-drawn]')
  const said = await page.textContent('.said')
  expect(said).toContain(
    'a\u27e8U+202E\u27e9b\u27e8U+2066\u27e9c\u27e8U+200B\u27e9d\u241b[31m\u2400e',
  )
  expect(said).not.toMatch(/[\u0000\u001b\u202e\u2066\u200b\ufeff\u2028]/)
  expect(await page.getAttribute('.said', 'dir')).toBe('auto')
  await context.close()
})

function bytes(value: unknown): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(value))
}
