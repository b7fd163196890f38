// The pages in a real browser: what they show, that nothing leaves the machine, that anyone can use them.
import { createRequire } from 'node:module'
import type { Browser, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
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
