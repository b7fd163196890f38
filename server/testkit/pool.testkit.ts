// A pool whose threads have the lab alone, or a module that is written for one test.
import { pathToFileURL } from 'node:url'
import { createPool, type Pool, type PoolOptions } from '../runtime/threads/pool.ts'

/** `lab` is the module's path. No thread is lost to its limit but where a test sets one: a busy machine is slow. */
export function labPool(lab: string, some: Partial<PoolOptions> = {}): Pool {
  return createPool({
    threads: 1,
    maxTurnSeconds: 60,
    heapMb: 96,
    environments: { lab: pathToFileURL(lab).href },
    models: {},
    ...some,
  })
}
