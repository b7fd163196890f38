// Debian's Chromium for tests of the pages: every request is seen, and one that would leave the machine is refused.
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'

export interface Look {
  width?: number
  scheme?: 'light' | 'dark'
}

export interface OpenPage {
  page: Page
  /** Hosts of everything that was asked for. */
  hosts: Set<string>
  /** What the page wrote as an error, and what it threw. */
  problems: string[]
}

export function openBrowser(): Promise<Browser> {
  // As root, in a container, Chromium has no sandbox of its own; what it opens is our own server.
  const args = [
    '--no-sandbox',
    '--disable-background-networking',
    '--disable-component-update',
    // A container's /dev/shm is small, and a page that finds it full is gone.
    '--disable-dev-shm-usage',
  ]
  return chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args })
}

export async function openPage(
  browser: Browser,
  url: string,
  { width = 1280, scheme = 'light' }: Look = {},
): Promise<OpenPage & { context: BrowserContext }> {
  const context = await browser.newContext({
    viewport: { width, height: width < 600 ? 844 : 800 },
    colorScheme: scheme,
    reducedMotion: 'reduce',
    baseURL: url,
  })
  const page = await context.newPage()
  page.setDefaultTimeout(30_000)
  const hosts = new Set<string>()
  const problems: string[] = []
  await context.route('**', (route) => {
    const { host } = new URL(route.request().url())
    hosts.add(host)
    return host === new URL(url).host ? route.continue() : route.abort()
  })
  page.on('pageerror', (error) => problems.push(error.message))
  page.on('console', (message) => {
    if (message.type() === 'error') problems.push(message.text())
  })
  return { context, page, hosts, problems }
}
