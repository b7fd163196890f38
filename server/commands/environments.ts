// Environments and packs for commands that play in their own process, without a server's threads.
import { pathToFileURL } from 'node:url'
import type { Environment } from '../../envs/environment.ts'
import { PaddockError } from '../../protocol/errors.ts'
import type { JsonObject } from '../../protocol/json.ts'
import type { GraderSource } from '../runtime/asking/grader-setup.ts'
import type { Pack } from '../runtime/packs/packs.ts'
import { loadEngine } from '../runtime/threads/engine.ts'

/** The shipped environments and those of a configuration (name to module path). */
export async function loadEnvironments(
  modules: Record<string, string>,
  graders: Record<string, GraderSource> = {},
): Promise<ReadonlyMap<string, Environment>> {
  const environments = Object.fromEntries(
    Object.entries(modules).map(([name, path]) => [name, pathToFileURL(path).href]),
  )
  return (await loadEngine({ environments, models: {}, graders })).environments
}

/** The specs that a pack's environment makes; none where it reads them from files. */
export function generateSpecs(
  { name, environment, generated }: Pack,
  known: ReadonlyMap<string, Environment>,
): JsonObject[] {
  if (!generated) return []
  const generate = known.get(environment)?.generate
  if (!generate)
    throw new PaddockError(
      'invalid_config',
      `pack ${name}: expected an environment that generates tasks, got ${environment}`,
    )
  const { count, seed } = generated
  return Array.from({ length: count }, (_, index) => generate(index, seed))
}
