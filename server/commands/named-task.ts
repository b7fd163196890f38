// The task that a command line names: a file, or where there is no such file, the id of a task in the packs.
import { stat } from 'node:fs/promises'
import type { Environment, Task } from '../../envs/environment.ts'
import type { GraderBook } from '../../envs/graded.ts'
import { PaddockError } from '../../protocol/errors.ts'
import type { JsonObject } from '../../protocol/json.ts'
import { nearestName } from '../../reward/nearest.ts'
import type { Config } from '../config.ts'
import { createGradersNow } from '../runtime/asking/graders-now.ts'
import { gradersOf, type Pack, packAround, readPacks } from '../runtime/packs/packs.ts'
import { readTaskFile } from '../runtime/packs/task-file.ts'
import { generateSpecs, loadEnvironments } from './environments.ts'
import { settingsHint } from './settings-hint.ts'

export interface NamedTask {
  task: Task
  environment: Environment
  /** Those of the configuration's packs, and of the pack that a file lies in. */
  graders: GraderBook
}

/**
 * `name` is a path, `<pack>/<id>`, or the bare id where one pack has it. `environment` is that of a file. Throws
 * `not_found` with the nearest id, and `invalid_task` with the first problem of a task that cannot be played.
 */
export async function namedTask(
  name: string,
  environment: string,
  config: Config,
): Promise<NamedTask> {
  const packs = await readPacks(config)
  const around = await packAround(name)
  const sources = gradersOf(around ? [...packs, around] : packs)
  const known = await loadEnvironments(config.environments, sources)
  const own = around?.environment ?? environment
  const task = (await taskOfFile(name, own)) ?? taskOfPacks(name, packs, known)
  const world = known.get(task.environment)
  if (!world) {
    const names = [...known.keys()].join(', ')
    const hint = await settingsHint(task.environment, name)
    throw new PaddockError(
      'not_found',
      `no environment ${task.environment}; there are ${names}; ${hint}`,
    )
  }
  return { task, environment: world, graders: createGradersNow(sources) }
}

async function taskOfFile(path: string, environment: string): Promise<Task | null> {
  const exists = await stat(path).then(
    (facts) => facts.isFile(),
    () => false,
  )
  if (!exists) return null
  const file = await readTaskFile(path, path)
  if ('problem' in file) throw new PaddockError('invalid_task', file.problem.message)
  const { id } = file.spec
  return { id: typeof id === 'string' ? id : path, environment, spec: file.spec }
}

function taskOfPacks(
  name: string,
  packs: readonly Pack[],
  known: ReadonlyMap<string, Environment>,
): Task {
  const tasks = packs.flatMap((pack) => {
    const specs: JsonObject[] = pack.generated
      ? generateSpecs(pack, known)
      : pack.files.flatMap((file) => ('spec' in file ? [file.spec] : []))
    const { environment } = pack
    return specs.map((spec): Task => ({ id: `${pack.name}/${String(spec.id)}`, environment, spec }))
  })
  const found = tasks.filter(({ id }) => id === name || id.endsWith(`/${name}`))
  const [task] = found
  if (found.length === 1 && task) return task
  const ids = tasks.map(({ id }) => id)
  const hint =
    found.length > 1
      ? `several packs have it: ${found.map(({ id }) => id).join(', ')}`
      : `the nearest is ${nearestName(name, ids)}`
  throw new PaddockError(
    'not_found',
    `${name} is neither a task file nor the id of a task; ${hint}`,
  )
}
