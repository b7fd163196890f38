// The routes of all trainers that speak wire forms of their own.
import type { Config } from '../config.ts'
import type { Route } from '../routes/route.ts'
import type { Service } from '../service.ts'
import { remoteRmRoute } from './remote-rm.ts'
import { createSlimeBuffer } from './slime-buffer.ts'
import { slimeRoutes } from './slime-routes.ts'

export function dialectRoutes(service: Service, config: Config): Route[] {
  const { slime } = config.dialects
  return [...slimeRoutes(createSlimeBuffer(service, config), slime.open), remoteRmRoute(slime)]
}
