// For those who run the server: alive, ready, metrics.

import { requireRole } from '../access.ts'
import type { App, Edge } from './route.ts'

/** Alive means that the process answers; it looks at nothing else. The only paths that ask for no token. */
export function mountAlive(app: App): void {
  for (const path of ['/healthz', '/health'])
    app.get(path, (context) => {
      context.set('route', path)
      return context.json({ status: 'ok' })
    })
}

/** Ready means that a batch would be admitted now; else 503 with the reasons. */
export function mountReadiness(app: App, { service }: Edge): void {
  app.get('/readyz', (context) => {
    context.set('route', '/readyz')
    const reasons = service.notReady()
    if (reasons.length === 0) return context.json({ status: 'ready', reasons })
    return context.json({ status: 'not ready', reasons }, 503, { 'retry-after': '10' })
  })
}

export function mountMetrics(app: App, { service }: Edge): void {
  app.get('/metrics', async (context) => {
    context.set('route', '/metrics')
    requireRole(context.get('roles'), ['metrics'])
    // Whoever does not ask for OpenMetrics gets the form that every tool reads.
    const wanted = context.req.header('accept')?.includes('application/openmetrics-text')
    const { contentType, text } = await service.metrics(wanted ? 'openmetrics' : 'plain')
    return context.body(text, 200, { 'content-type': contentType })
  })
}
