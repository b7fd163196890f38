// The pages that people open: one shell for every address, its modules and styles, and the chart library from node_modules.
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import type { App } from '../routes/route.ts'

/** Every address that shows a page; which one, the browser decides by its path. */
const ADDRESSES = ['/', '/batches/:id', '/groups/:id', '/episodes/:id', '/dash']

const SHELL = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Paddock</title>
<link rel="icon" href="/assets/icon.svg">
<link rel="stylesheet" href="/assets/uPlot.min.css">
<link rel="stylesheet" href="/assets/style.css">
<script type="module" src="/assets/app.js"></script>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header>
<a class="home" href="/">Paddock</a>
<nav aria-label="Pages"><a href="/">Batches</a><a href="/dash">Dashboard</a><a href="/docs">API</a></nav>
<span id="status"></span>
<button id="forget" type="button" hidden>Forget token</button>
</header>
<main id="main" tabindex="-1"><noscript>These pages are drawn by JavaScript; /openapi.json says what the server answers without it.</noscript></main>
</body>
</html>
`

const TEXT = 'text/javascript; charset=utf-8'
const STYLE = 'text/css; charset=utf-8'

const OWN: Record<string, string> = {
  'api.js': TEXT,
  'app.js': TEXT,
  'batch.js': TEXT,
  'chart.js': TEXT,
  'dash.js': TEXT,
  'dash-view.js': TEXT,
  'dom.js': TEXT,
  'episode.js': TEXT,
  'figures.js': TEXT,
  'format.js': TEXT,
  'grade.js': TEXT,
  'group.js': TEXT,
  'lines.js': TEXT,
  'overview.js': TEXT,
  'parts.js': TEXT,
  'tokens.js': TEXT,
  'turn.js': TEXT,
  'style.css': STYLE,
  'icon.svg': 'image/svg+xml',
}

/** What the command line reads too. */
const SHARED: Record<string, string> = { 'figure.js': TEXT }

const LIBRARY: Record<string, string> = { 'uPlot.esm.js': TEXT, 'uPlot.min.css': STYLE }

/** No inline script or style, no other host: what a model wrote could do nothing even if it were read as markup. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

const HEADERS = {
  'content-security-policy': POLICY,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-cache',
}

/** The pages hold no data: what they show they ask the routes for, with the token that the reader gives them. */
export function mountPages(app: App): void {
  for (const address of ADDRESSES)
    app.get(address, (context) => {
      context.set('route', address)
      return context.html(SHELL, 200, HEADERS)
    })
  const assets = [
    ...Object.entries(OWN).map(([name, type]) => ({
      name,
      type,
      read: () => readOwn(`client/${name}`),
    })),
    ...Object.entries(SHARED).map(([name, type]) => ({
      name,
      type,
      read: () => readOwn(`../../protocol/${name}`),
    })),
    ...Object.entries(LIBRARY).map(([name, type]) => ({ name, type, read: () => readUplot(name) })),
  ]
  for (const { name, type, read } of assets)
    app.get(`/assets/${name}`, async (context) => {
      context.set('route', '/assets')
      return context.body(await read(), 200, { ...HEADERS, 'content-type': type })
    })
}

/** Read anew each time, as the pages are rare. */
function readOwn(path: string): Promise<Uint8Array<ArrayBuffer>> {
  return readFile(new URL(path, import.meta.url))
}

function readUplot(name: string): Promise<Uint8Array<ArrayBuffer>> {
  return readFile(createRequire(import.meta.url).resolve(`uplot/dist/${name}`))
}
