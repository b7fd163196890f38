// Public reports of pages that told another number than the API: the mean reward, in the browser.
import type { Browser } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { openBrowser, openPage } from '../pages/browser.testkit.ts'
import type { House } from '../testkit/house.testkit.ts'
import { CUTS, openUnevenHouse, SHORT_AND_FLAT } from './uneven.testkit.ts'

let browser: Browser
const houses: House[] = []
beforeAll(async () => {
  browser = await openBrowser()
}, 60_000)
afterEach(() => Promise.all(houses.splice(0).map((house) => house.close())))
afterAll(() => browser.close())

async function seen(house: House, path: string): Promise<string> {
  const { page, context } = await openPage(browser, house.url)
  await page.goto(path)
  await page.waitForSelector('main[data-drawn]')
  const text = (await page.locator('main').textContent()) ?? ''
  await context.close()
  return text
}

async function opened(): Promise<House> {
  const house = await openUnevenHouse()
  houses.push(house)
  return house
}

test('M01: the pages have the mean over episodes, however many turns and samples these have', async () => {
  const house = await opened()
  await house.setFaults(...CUTS)
  const tasks = [{ task: 'uneven/sand' }, { task: 'uneven/clay' }]
  const { progress } = await house.run({ tasks, group_size: 5, mode: 'eval' })
  expect(progress.episodes.mean_reward).toBeCloseTo(0.4, 12)
  expect(await seen(house, '/')).toContain('mean reward 0.4 over episodes')
  const page = await seen(house, `/batches/${progress.id}`)
  expect(page).toMatch(/mean reward over episodes0\.4/)
})

test('M03: the pages say over what each mean is, with the numbers of the API', async () => {
  const house = await opened()
  const { progress } = await house.run(SHORT_AND_FLAT)
  expect(progress.episodes.mean_reward).toBe(0.2)
  expect(progress.groups.mean_group_reward).toBe(0.5)
  expect(await seen(house, '/')).toContain('mean reward 0.2 over episodes')
  const page = await seen(house, `/batches/${progress.id}`)
  expect(page).toMatch(/mean reward over episodes0\.2/)
  expect(page).toMatch(/mean reward over groups0\.5/)
})
