// Takes the pictures of docs/screenshots: every page, wide and narrow, light and dark. `pnpm screenshots [PAGE…]`
import { mkdir } from 'node:fs/promises'
import { openBrowser, openPage } from './browser.testkit.ts'
import { openGallery } from './gallery.testkit.ts'

const FOLDER = new URL('../../docs/screenshots/', import.meta.url)

/** A picture shows the first of a long page. */
const MOST_PIXELS = 1150

const PAGES = {
  overview: '/',
  batch: '/batches/step-40',
  group: '/groups/step-40.g0',
  episode: '/episodes/step-40.g0.e1',
  tokens: '/episodes/step-40.g0.e1#tokens',
  dash: '/dash',
}

const only = process.argv.slice(2)
const house = await openGallery()
const browser = await openBrowser()
try {
  await mkdir(FOLDER, { recursive: true })
  for (const width of [1280, 390])
    for (const scheme of ['light', 'dark'] as const) {
      const { context, page, problems } = await openPage(browser, house.url, { width, scheme })
      for (const [name, path] of Object.entries(PAGES)) {
        if (only.length > 0 && !only.includes(name)) continue
        await page.goto('about:blank')
        await page.goto(path)
        await page.waitForSelector('main[data-drawn]')
        const height = Number(await page.evaluate('document.documentElement.scrollHeight'))
        const clip = { x: 0, y: 0, width, height: Math.min(height, MOST_PIXELS) }
        const file = new URL(`${name}-${width}-${scheme}.png`, FOLDER).pathname
        await page.screenshot({ path: file, clip, fullPage: true })
      }
      if (problems.length > 0) throw new Error(problems.join('\n'))
      await context.close()
    }
} finally {
  await browser.close()
  await house.close()
}
