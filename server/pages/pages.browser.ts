// The pages in a real browser: what they show, that nothing leaves the machine, that anyone can use them.
import { createRequire } from 'node:module'
import type { Browser, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { createDashboard } from '../grafana/dashboard.ts'
import type { House } from '../testkit/house.testkit.ts'
import { type Look, type OpenPage, openBrowser, openPage } from './browser.testkit.ts'
import { openGallery } from './gallery.testkit.ts'

let house: House
let browser: Browser
let opened: (OpenPage & { context: { close(): Promise<void> } }) | null = null

beforeAll(async () => {
  ;[house, browser] = await Promise.all([openGallery(), openBrowser()])
}, 180_000)
afterAll(async () => {
  await browser.close()
  await house.close()
})
afterEach(async () => {
  const hosts = [...(opened?.hosts ?? [])]
  const problems = opened?.problems ?? []
  await opened?.context.close()
  opened = null
  expect(problems).toEqual([])
  expect(hosts).toEqual([new URL(house.url).host])
})

async function visit(path: string, look: Look = {}): Promise<Page> {
  opened = await openPage(browser, house.url, look)
  await opened.page.goto(path)
  await opened.page.waitForSelector('main[data-drawn]')
  return opened.page
}

const PAGES = [
  ['the overview', '/'],
  ['a batch', '/batches/step-40'],
  ['a batch that lost a group', '/batches/step-41'],
  ['a running batch', '/batches/step-42'],
  ['a group', '/groups/step-40.g0'],
  ['an episode', '/episodes/step-40.g0.e1'],
  ['its tokens', '/episodes/step-40.g0.e1#tokens'],
  ['the tokens of a cut chain', '/episodes/step-39.g0.e0#tokens'],
  ['its grade', '/episodes/step-40.g0.e1#grade'],
  ['the dashboard', '/dash'],
] as const

const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js')

describe.each(['light', 'dark'] as const)('in %s', (scheme) => {
  test.each(PAGES)('%s has nothing that axe-core objects to', async (_, path) => {
    const page = await visit(path, { scheme })
    // Its script comes past the policy of the page, which lets none in.
    await page.evaluate(
      await import('node:fs/promises').then(({ readFile }) => readFile(AXE, 'utf8')),
    )
    const found = (await page.evaluate('axe.run()')) as {
      violations: { id: string; nodes: { html: string; failureSummary: string }[] }[]
    }
    const told = found.violations.map(({ id, nodes }) => [
      id,
      nodes[0]?.html,
      nodes[0]?.failureSummary,
    ])
    expect(told).toEqual([])
  })
})

test.each(PAGES)('%s is no wider than a telephone', async (_, path) => {
  const page = await visit(path, { width: 390 })
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(390)
})

describe('what they say', () => {
  test('the overview has the six figures, and leads to a batch, its groups and their episodes', async () => {
    const page = await visit('/')
    expect(await page.locator('.figures li').count()).toBe(6)
    await page.click('text=step-40')
    await page.waitForSelector('.group')
    expect(await page.locator('.group').count()).toBe(6)
    expect(await page.locator('.group:first-child .member').count()).toBe(8)
    const { groups } = await get('/v1/batches/step-40/groups')
    const signs = await page.locator('.group:first-child .sign').allTextContents()
    expect(signs).toEqual(
      groups[0].members.map(({ advantage }: { advantage: number }) =>
        advantage > 0 ? '+' : advantage < 0 ? '\u2212' : '0',
      ),
    )
    await page.click('.group:first-child a.member:first-child')
    await page.waitForSelector('.turn')
    expect(new URL(page.url()).pathname).toBe('/episodes/step-40.g0.e0')
  })

  test('a group that its backend lost is not delivered, and says why', async () => {
    const page = await visit('/batches/step-41')
    const lost = page.locator('.group', { hasText: 'not delivered' })
    expect(await lost.count()).toBe(1)
    expect(await lost.locator('.sign').allTextContents()).toEqual(Array(8).fill('\u00d7'))
    expect(await lost.locator('.reason').textContent()).toMatch(/infra_backend|timeout/)
  })

  test('an episode shows every turn with its calls and observations, as they were recorded', async () => {
    const page = await visit('/episodes/step-40.g0.e1')
    const episode = await get('/v1/episodes/step-40.g0.e1')
    expect(await page.locator('.turn').count()).toBe(episode.turns.length)
    const calls = episode.turns.flatMap((turn: { calls: { name: string }[] }) =>
      turn.calls.map(({ name }) => name),
    )
    expect(await page.locator('.call code').allTextContents()).toEqual(calls)
    expect(await page.locator('.observation').count()).toBe(calls.length)
  })

  test('the tokens that are coloured are those that were sampled', async () => {
    const page = await visit('/episodes/step-40.g0.e1#tokens')
    const { samples } = await get('/v1/episodes/step-40.g0.e1/tokens')
    const sampled = samples
      .flatMap(({ mask }: { mask: number[] }) => mask)
      .filter((one: number) => one === 1).length
    expect(await page.locator('.tape [data-at]').count()).toBe(sampled)
    expect(samples[0].texts.join('')).toContain('<|im_start|>system')
    await page.focus('.tape')
    await page.keyboard.press('ArrowRight')
    expect(await page.textContent('.token-facts')).toContain(
      `id ${samples[0].ids[samples[0].prompt_length]} `,
    )
  })

  test('a chain that was cut and weights that were updated meanwhile are marked where it was', async () => {
    const of = async (index: number) => ({
      index,
      samples: (await get(`/v1/episodes/step-39.g0.e${index}/tokens`)).samples,
    })
    const members = await Promise.all([0, 1, 2, 3].map(of))
    const versionsOf = (samples: { versions: { version: number }[] }[]) =>
      new Set(samples.flatMap(({ versions }) => versions.map(({ version }) => version)))
    const { index, samples } = members.find(({ samples }) => versionsOf(samples).size === 2)!
    const page = await visit(`/episodes/step-39.g0.e${index}#tokens`)
    expect(await page.locator('.tape').count()).toBe(samples.length)
    expect(await page.locator('.cut').allTextContents()).toEqual(
      Array(samples.length - 1).fill(
        'Cut: the next prompt did not extend this chain: template (1)',
      ),
    )
    // Once in each chain, and where the version changes.
    expect([...new Set(await page.locator('.tape .version').allTextContents())]).toEqual([
      'version 0',
      'version 1',
    ])
    await page.click('text=Conversation')
    await page.waitForSelector('.warning:has-text("The token chain was cut: 1 × template.")')
  })

  test('a group sets its episodes side by side from the turn where their calls part', async () => {
    const page = await visit('/groups/step-40.g0')
    const ids = (await page.locator('.column > header a').allTextContents()).map(
      (name) => `step-40.g0.${name}`,
    )
    const episodes = await Promise.all(ids.map((id) => get(`/v1/episodes/${id}`)))
    const first = (await page
      .locator('.columns .column:first-child .turn h3')
      .first()
      .textContent())!
    const at = Number(/\d+/.exec(first)![0])
    const did = (turn: number) =>
      new Set(
        episodes.map(({ turns }) =>
          JSON.stringify(
            (turns[turn]?.calls ?? []).map(
              ({ name, arguments_json }: { name: string; arguments_json: string }) => [
                name,
                arguments_json,
              ],
            ),
          ),
        ),
      )
    for (let turn = 0; turn < at; turn++) expect(did(turn).size).toBe(1)
    expect(did(at).size).toBeGreaterThan(1)
  })

  test('a grade shows what each check adds, and that it was graded in no colour of success', async () => {
    const episode = await get('/v1/episodes/step-40.g0.e1')
    const page = await visit('/episodes/step-40.g0.e1#grade')
    const row = (await page.locator('table').first().locator('tbody tr').all()).map((one) =>
      one.locator('td.number').allTextContents(),
    )
    const shown = (await Promise.all(row)).map((cells) => cells.map(Number))
    const checks: [string, { score: number }][] = Object.entries(episode.grade.evidence.checks)
    expect(shown.map(([score, weight]) => [score, weight])).toEqual(
      checks.map(([name, { score }]) => [score, episode.weights[name]]),
    )
    const sum = shown.reduce((total, [, , adds = 0]) => total + adds, 0)
    expect(sum).toBeCloseTo(episode.rewards.completion, 2)
    expect(await page.locator('table .badge.good').count()).toBe(0)
  })

  test('tokens are said to be in groups that are ready or delivered, beside the numbers of those groups', async () => {
    await house.api.submit({
      id: 'unread',
      tasks: [{ task: 'arithmetic/sum-1' }],
      group_size: 2,
      policy: { mode: 'tokens' },
    })
    const path = '/v1/batches/unread'
    await expect.poll(async () => (await get(path)).state, { timeout: 30_000 }).toBe('finished')
    const page = await visit('/')
    const card = page.locator('.card', { hasText: 'unread' })
    expect(await card.textContent()).toContain('1 ready')
    await house.run({
      id: 'unread',
      tasks: [{ task: 'arithmetic/sum-1' }],
      group_size: 2,
      policy: { mode: 'tokens' },
    })
    await page.waitForSelector('.card:has-text("unread"):has-text("1 acked")')
    expect(await page.textContent('.cards')).not.toContain('not delivered')
    await page.goto('/batches/unread')
    await page.waitForSelector('dt:has-text("in groups ready or delivered")')
  })

  test('four episodes beside each other fit a window of 1280, and more can be reached', async () => {
    const page = await visit('/groups/step-40.g0', { width: 1280 })
    const cut = () =>
      page.evaluate(
        `(() => { const { scrollWidth, clientWidth } = document.querySelector('.columns'); return scrollWidth - clientWidth })()`,
      )
    expect(await page.locator('.column').count()).toBe(4)
    expect(await cut()).toBe(0)
    await page.locator('.choice input:not(:checked)').first().check()
    await page.waitForSelector('.column:nth-child(5)')
    expect(await cut()).toBeGreaterThan(0)
    // Of what is to be scrolled to, the beginning is seen.
    const fifth = await page.locator('.column').nth(4).boundingBox()
    expect(fifth?.x).toBeLessThan(1200)
  })

  test('a group says what its estimator divides by', async () => {
    const page = await visit('/groups/step-40.g0')
    const { stats, members } = await get('/v1/groups/step-40.g0/explain')
    const rewards = members.map(({ reward }: { reward: number }) => reward)
    const squares = rewards.reduce((sum: number, one: number) => sum + (one - stats.mean) ** 2, 0)
    const sample = Math.sqrt(squares / (rewards.length - 1))
    const told = page.locator('.facts div', { hasText: 'grpo divides by' })
    expect(await told.locator('dd').textContent()).toBe(
      `${Number(sample.toPrecision(3))} = sample std + 0.000001`,
    )
  })

  test('the dashboard draws every panel of dashboard.json', async () => {
    const page = await visit('/dash')
    const panels = createDashboard().panels.filter(({ type }) => type !== 'row')
    // A panel is drawn once one comes near to it.
    for (const figure of await page.locator('figure').all()) {
      await figure.scrollIntoViewIfNeeded()
      await figure.locator('.quietly').waitFor({ state: 'detached' })
    }
    expect(await page.locator('figure').count()).toBe(panels.length)
    expect(await page.locator('figure h3').allTextContents()).toEqual(
      panels.map(({ title }) => title),
    )
    expect(await page.locator('figure.timeseries canvas').count()).toBeGreaterThan(5)
    expect(await page.textContent('figure:has-text("Event loop lag")')).toContain(
      'is not kept in memory',
    )
  })

  test('the address of the dashboard keeps what is looked at', async () => {
    const page = await visit('/dash?minutes=5&env=arithmetic&mode=train')
    expect(await page.inputValue('#range')).toBe('5')
    expect(await page.locator('details.picker > summary').allTextContents()).toEqual([
      'Environment: arithmetic',
      'Mode: train',
      'Backend: all',
    ])
    const asked = page.waitForRequest((one) => one.url().includes('/v1/dashboard/panels/'))
    await page.click('text=Environment: arithmetic')
    await page.click('details.picker[open] label:has-text("office")')
    expect(new URL((await asked).url()).searchParams.get('env')).toBe('arithmetic,office')
    await page.waitForURL((url) => url.searchParams.get('env') === 'arithmetic,office')
    await page.click('h1')
    expect(await page.locator('details.picker[open]').count()).toBe(0)
    await page.reload()
    await page.waitForSelector('text=Environment: arithmetic, office')
  })

  test('weight updates are told and drawn', async () => {
    let version = 100
    const updates = async () => {
      const body = JSON.stringify({ version: version++ })
      const headers = { 'content-type': 'application/json' }
      await fetch(`${house.url}/v1/policy`, { method: 'POST', headers, body })
      const { annotations } = await get('/v1/dashboard/annotations?minutes=5')
      return annotations[1].spans.length
    }
    // A version is seen to change once the one before it has been sampled.
    await expect.poll(updates, { timeout: 30_000, interval: 1000 }).toBe(1)
    const page = await visit('/dash?minutes=5')
    const told = page.locator('.annotations li')
    expect(await told.nth(0).textContent()).toBe(
      'Alerts are evaluated by Prometheus: without one there are none to show.',
    )
    await page.waitForSelector(
      '.annotations li:has-text("Weight updates: 1 (weights), the last from ")',
    )
  })

  test('what is not there is said in words', async () => {
    const page = await visit('/episodes/none.g0.e0')
    expect(await page.textContent('main')).toContain('no finished episode none.g0.e0')
    await page.goto('/batches/none')
    expect(await page.waitForSelector('[role=alert]').then((one) => one.textContent())).toContain(
      'no batch none',
    )
    // A browser notes each answer that is a 404.
    expect(opened?.problems.splice(0)).toEqual([
      expect.stringContaining('404'),
      expect.anything(),
      expect.anything(),
    ])
  })
})

describe('with the keyboard alone', () => {
  test('one gets from the address bar to the tokens of an episode', async () => {
    const page = await visit('/')
    await page.keyboard.press('Tab')
    expect(await focused(page)).toBe('Skip to the content')
    await tabTo(page, 'step-40')
    await page.keyboard.press('Enter')
    await page.waitForSelector('.group')
    await tabTo(page, /^g0 /)
    await page.keyboard.press('Enter')
    await page.waitForSelector('table')
    await tabTo(page, 'e0')
    await page.keyboard.press('Enter')
    await page.waitForSelector('.turn')
    await tabTo(page, 'Tokens')
    await page.keyboard.press('Enter')
    await page.waitForSelector('.tape')
  })

  test('what the dashboard shows is chosen', async () => {
    const page = await visit('/dash')
    await tabTo(page, 'Environment: all')
    await page.keyboard.press('Enter')
    await page.waitForSelector('details.picker[open] input')
    await page.keyboard.press('Tab')
    await page.keyboard.press('Space')
    await page.waitForURL((url) => url.searchParams.get('env') === 'arithmetic')
    await page.keyboard.press('Escape')
    expect(await focused(page)).toBe('Environment: arithmetic')
    expect(await page.locator('details.picker[open]').count()).toBe(0)
  })

  test('focus stays where it is while a running batch is drawn anew', async () => {
    const page = await visit('/batches/step-42')
    const before = await page.evaluate(
      `(() => { const link = document.querySelector('.crumbs a'); link.focus(); return link.href })()`,
    )
    // Drawn anew, the link is another one, without this mark.
    await page.evaluate(`document.querySelector('.crumbs a').dataset.old = ''`)
    await house.api.lease('step-42', { max: 1, lease_s: 60, wait_s: 30 })
    await page.waitForSelector('.crumbs a:not([data-old])')
    expect(await page.evaluate('document.activeElement.href')).toBe(before)
  })
})

async function get(path: string) {
  return JSON.parse(await (await fetch(house.url + path)).text())
}

function focused(page: Page): Promise<string> {
  return page.evaluate('document.activeElement.textContent') as Promise<string>
}

async function tabTo(page: Page, wanted: string | RegExp): Promise<void> {
  for (let presses = 0; presses < 80; presses++) {
    const text = await focused(page)
    if (typeof wanted === 'string' ? text === wanted : wanted.test(text)) return
    await page.keyboard.press('Tab')
  }
  throw new Error(`no focus on ${wanted} within 80 presses`)
}
