// Takes the pictures of docs/screenshots: every page, wide and narrow, light and dark. `pnpm screenshots [PAGE…]`
import { mkdir } from 'node:fs/promises'
import { openBrowser, openPage } from './browser.testkit.ts'
import { openGallery } from './gallery.testkit.ts'

const FOLDER = new URL('../../docs/screenshots/', import.meta.url)

/** A picture shows the first of a long page. */
const MOST_PIXELS = 1150

/** What a picture of a place shows before it. */
const BEFORE = 350

interface Shot {
  path: string
  /** The place where the picture is; else the top. */
  at?: string
}

const PAGES: Record<string, Shot> = {
  overview: { path: '/' },
  batch: { path: '/batches/step-40' },
  group: { path: '/groups/step-40.g0' },
  episode: { path: '/episodes/step-40.g0.e1' },
  tokens: { path: '/episodes/step-40.g0.e1#tokens' },
  grade: { path: '/episodes/step-40.g0.e1#grade' },
  cut: { path: '/episodes/step-39.g0.e0#tokens', at: '.cut' },
  dash: { path: '/dash' },
}

const only = process.argv.slice(2)
const house = await openGallery()
const browser = await openBrowser()
try {
  await mkdir(FOLDER, { recursive: true })
  for (const width of [1280, 390])
    for (const scheme of ['light', 'dark'] as const) {
      const { context, page, problems } = await openPage(browser, house.url, { width, scheme })
      for (const [name, { path, at }] of Object.entries(PAGES)) {
        if (only.length > 0 && !only.includes(name)) continue
        await page.goto('about:blank')
        await page.goto(path)
        await page.waitForSelector('main[data-drawn]')
        const height = Number(await page.evaluate('document.documentElement.scrollHeight'))
        const box = at ? await page.locator(at).first().boundingBox() : null
        const y = Math.max(0, (box?.y ?? 0) - BEFORE)
        const clip = { x: 0, y, width, height: Math.min(height - y, MOST_PIXELS) }
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
