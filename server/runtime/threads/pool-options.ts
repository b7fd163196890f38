// What the thread pool of a configuration and its packs is started with.
import { pathToFileURL } from 'node:url'
import type { Config } from '../../config.ts'
import { gradersOf, type Pack } from '../packs/packs.ts'
import type { PoolOptions } from './pool.ts'

export function poolOptions(
  { environments, backends, runtime }: Config,
  packs: readonly Pack[],
): PoolOptions {
  return {
    threads: runtime.threads,
    maxTurnSeconds: runtime.max_turn_s,
    heapMb: runtime.heap_mb,
    environments: Object.fromEntries(
      Object.entries(environments).map(([name, path]) => [name, pathToFileURL(path).href]),
    ),
    graders: gradersOf(packs),
    models: Object.fromEntries(
      Object.entries(backends).flatMap(([name, { model_dir }]) =>
        model_dir === undefined ? [] : [[name, model_dir]],
      ),
    ),
  }
}
