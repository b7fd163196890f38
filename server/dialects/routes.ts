// The routes of all trainers that speak wire forms of their own.
import type { Config } from '../config.ts'
import type { Route } from '../routes/route.ts'
import type { Service } from '../service.ts'

export function dialectRoutes(_service: Service, _config: Config): Route[] {
  return []
}
