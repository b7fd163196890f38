// The API reference at /docs: swagger-ui out of node_modules, with nothing loaded from any other host.
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import type { App } from '../routes/route.ts'

const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Paddock API</title>
<link rel="icon" href="/docs/favicon-32x32.png">
<link rel="stylesheet" href="/docs/swagger-ui.css">
</head>
<body>
<div id="docs"></div>
<script src="/docs/swagger-ui-bundle.js"></script>
<script src="/docs/start.js"></script>
</body>
</html>
`

const START = `SwaggerUIBundle({
  url: '/openapi.json',
  dom_id: '#docs',
  deepLinking: true,
  docExpansion: 'list',
  defaultModelsExpandDepth: 0,
  tryItOutEnabled: false,
  // The validator badge would ask a host outside.
  validatorUrl: null,
})
`

const TYPES = {
  'swagger-ui.css': 'text/css; charset=utf-8',
  'swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
  'favicon-32x32.png': 'image/png',
}

// swagger-ui sets style attributes and draws its icons as data: images.
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

const HEADERS = {
  'content-security-policy': POLICY,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
}

export function mountDocs(app: App): void {
  app.get('/docs', (context) => {
    context.set('route', '/docs')
    return context.html(PAGE, 200, HEADERS)
  })
  app.get('/docs/start.js', (context) => {
    context.set('route', '/docs')
    return context.body(START, 200, {
      ...HEADERS,
      'content-type': 'text/javascript; charset=utf-8',
    })
  })
  for (const [name, type] of Object.entries(TYPES)) {
    app.get(`/docs/${name}`, async (context) => {
      context.set('route', '/docs')
      return context.body(await readAsset(name), 200, {
        ...HEADERS,
        'content-type': type,
        'cache-control': 'private, max-age=3600',
      })
    })
  }
}

/** Read anew each time: the page is rare, and 1.5 MB need not stay in memory. */
function readAsset(name: string): Promise<Uint8Array<ArrayBuffer>> {
  return readFile(createRequire(import.meta.url).resolve(`swagger-ui-dist/${name}`))
}
