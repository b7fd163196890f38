// The routes of all trainers that speak wire forms of their own.
import type { Edge, Route } from '../routes/route.ts'
import { polarRoutes } from './polar.ts'
import { createPolarTasks } from './polar-tasks.ts'
import { remoteRmRoute } from './remote-rm.ts'
import { createSlimeBuffer } from './slime-buffer.ts'
import { slimeRoutes } from './slime-routes.ts'

/** Begins at once to look after what the dialects' trainers have asked for before a restart. */
export function dialectRoutes(edge: Edge): Route[] {
  const { service, config } = edge
  const { slime } = config.dialects
  const now = () => Date.now() / 1000
  return [
    ...slimeRoutes(createSlimeBuffer(service, config), slime.open),
    remoteRmRoute(slime),
    ...polarRoutes(service, config, createPolarTasks({ ...edge, now })),
  ]
}
