// A server with tokens: the page asks for one, keeps it in this tab alone, and the routes stay shut without it.
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createApp } from '../app.ts'
import { loadConfig } from '../config.ts'
import { type Listener, listen } from '../listen.ts'
import { createStubService } from '../stub-service.testkit.ts'
import { openBrowser, openPage } from './browser.testkit.ts'

let browser: Browser
let listener: Listener
beforeAll(async () => {
  const tokens = [{ token: 'right', roles: ['lease'] }]
  const app = createApp(
    createStubService(),
    loadConfig({ file: null, flags: { server: { tokens } } }),
  )
  listener = await listen({ fetch: app.fetch, host: '127.0.0.1', port: 0, maxConnections: 50 })
  browser = await openBrowser()
}, 60_000)
afterAll(async () => {
  await browser.close()
  await listener.close(0)
})

test('a wrong token is refused with a sentence, the right one opens the pages until it is forgotten', async () => {
  const { page, context } = await openPage(browser, listener.url)
  await page.goto('/')
  await page.fill('#token', 'wrong')
  await page.keyboard.press('Enter')
  await page.waitForSelector('.problem:has-text("none that this server knows")')
  await page.fill('#token', 'right')
  await page.keyboard.press('Enter')
  await page.waitForSelector('text=No batch yet')
  expect(await page.evaluate('localStorage.length')).toBe(0)
  expect(await context.cookies()).toEqual([])
  // This token may not read metrics: the figures are left out, the batches are there.
  expect(await page.locator('.figures').count()).toBe(0)
  await page.click('#forget')
  await page.waitForSelector('#token')
  await context.close()
})
