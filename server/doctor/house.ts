// What the doctor examines on our side: the engine with its environments and model files, and a pack behind its gate.
import { pathToFileURL } from 'node:url'
import type { Environment, Task } from '../../envs/environment.ts'
import { PaddockError } from '../../protocol/errors.ts'
import type { JsonObject } from '../../protocol/json.ts'
import { nearestName } from '../../reward/nearest.ts'
import { generateSpecs } from '../commands/environments.ts'
import type { Config } from '../config.ts'
import { gradersOf, type Pack, readPacks } from '../runtime/packs/packs.ts'
import { type LoadedEngine, loadEngine } from '../runtime/threads/engine.ts'
import type { Evidence } from './evidence.ts'

export interface House {
  engine: LoadedEngine
  environment: Environment
  pack: Evidence['pack']
  /** Tasks of the pack that pass the gate. */
  tasks: readonly Task[]
}

/** `models`: model folders by backend. Throws PaddockError `not_found` for an unknown pack, `invalid_config` for a bad folder. */
export async function loadHouse(
  config: Pick<Config, 'packs' | 'shipped_packs' | 'environments'>,
  packName: string,
  models: Record<string, string>,
): Promise<House> {
  const packs = await readPacks(config)
  const pack = packOf(packs, packName)
  const modules = Object.entries(config.environments).map(([name, path]) => [
    name,
    pathToFileURL(path).href,
  ])
  const environments = Object.fromEntries(modules)
  const engine = await loadEngine({ environments, graders: gradersOf(packs), models })
  return { engine, environment: engine.environment(pack.environment), ...gate(pack, engine) }
}

function packOf(packs: readonly Pack[], name: string): Pack {
  const pack = packs.find((one) => one.name === name)
  if (pack) return pack
  const names = packs.map((one) => one.name)
  throw new PaddockError('not_found', `no pack ${name}; the nearest is ${nearestName(name, names)}`)
}

/** The whole gate over the pack, as `paddock validate` runs it. */
function gate(pack: Pack, engine: LoadedEngine): Pick<House, 'tasks' | 'pack'> {
  const environment = engine.environment(pack.environment)
  const refused: Evidence['pack']['refused'] = []
  const tasks: Task[] = []
  const judgeSpec = (spec: JsonObject) => {
    const id = `${pack.name}/${String(spec.id)}`
    const [problem] = environment.problems(spec, 'full')
    if (problem) refused.push({ id, problem: problem.message })
    else tasks.push({ id, environment: pack.environment, spec })
  }
  for (const file of pack.files) {
    if ('spec' in file) judgeSpec(file.spec)
    else refused.push({ id: `${pack.name}/${file.file}`, problem: file.problem.message })
  }
  for (const spec of generateSpecs(pack, engine.environments)) judgeSpec(spec)
  return { tasks, pack: { name: pack.name, tasks: tasks.length + refused.length, refused } }
}
