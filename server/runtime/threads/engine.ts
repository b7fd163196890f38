// The engine of one thread: environments by name and chat models by backend, read from disk before the first turn.
import { arithmetic } from '../../../envs/arithmetic/arithmetic.ts'
import type { Environment } from '../../../envs/environment.ts'
import { officeWith } from '../../../envs/office/office.ts'
import { withDeclarations } from '../../../envs/task-declaration.ts'
import { rewardContractSchema } from '../../../protocol/contract.ts'
import { PaddockError } from '../../../protocol/errors.ts'
import { isPlainObject } from '../../../protocol/json.ts'
import { ON_PARSE_ERROR } from '../../../protocol/parse-codes.ts'
import { checkContract } from '../../../reward/contract.ts'
import type { ChatModel } from '../../../rollout/chat/chat-model.ts'
import { createChatModel } from '../../../rollout/chat/qwen-chat-model.ts'
import type { Engine } from '../../../rollout/episode.ts'
import { textOf } from '../../../rollout/guarded-environment.ts'
import { createGradersNow } from '../asking/graders-now.ts'
import type { WorkerSetup } from './jobs.ts'
import { readModelFolder } from './model-folder.ts'
import type { EnvironmentClock } from './timed-environment.ts'

export type LoadedEngine = Engine & { environments: ReadonlyMap<string, Environment> }

/** Loads everything a turn may need; fails with a sentence that names the module or the folder. `timed` measures environments. */
export async function loadEngine(
  setup: WorkerSetup,
  timed: EnvironmentClock['timed'] = (_, environment) => environment,
): Promise<LoadedEngine> {
  const environments = new Map<string, Environment>([
    ['arithmetic', withDeclarations(arithmetic as Environment)],
    ['office', withDeclarations(officeWith(createGradersNow(setup.graders ?? {})) as Environment)],
  ])
  for (const [name, url] of Object.entries(setup.environments))
    environments.set(name, withDeclarations(await loadEnvironment(name, url)))
  for (const [name, environment] of environments) environments.set(name, timed(name, environment))
  const models = new Map<string, ChatModel>()
  const byFolder = new Map<string, ChatModel>()
  for (const [backend, folder] of Object.entries(setup.models)) {
    const model =
      byFolder.get(folder) ??
      createChatModel(await readModelFolder(`backends.${backend}.model_dir`, folder))
    byFolder.set(folder, model)
    models.set(backend, model)
  }
  return {
    environments,
    environment(name) {
      const environment = environments.get(name)
      if (!environment) throw new PaddockError('invalid_task', `no environment ${name}`)
      return environment
    },
    chatModel: (backend) => models.get(backend) ?? null,
  }
}

const REQUIRED = [
  'problems',
  'describe',
  'reset',
  'open',
  'tools',
  'step',
  'hear',
  'reply',
  'grade',
  'anchor',
] as const

async function loadEnvironment(name: string, url: string): Promise<Environment> {
  let module: { default?: Environment }
  try {
    module = await import(url)
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new PaddockError(
      'invalid_config',
      `environment ${name}: ${url} cannot be loaded: ${why}`,
      { cause },
    )
  }
  return checkedEnvironment(name, url, module.default)
}

/** A user's module may be written without types: what it exports is checked once, here, and named where it is wrong. */
function checkedEnvironment(name: string, url: string, exported: unknown): Environment {
  const refuse = (what: string): never => {
    throw new PaddockError('invalid_config', `environment ${name} (${url}): ${what}`)
  }
  if (!isPlainObject(exported)) return refuse('the default export must be an Environment object')
  const environment = exported as unknown as Environment
  const missing = REQUIRED.filter((method) => typeof environment[method] !== 'function')
  if (missing.length > 0)
    refuse(
      `an Environment has the functions ${REQUIRED.join(', ')}; ${missing.join(', ')} is missing`,
    )
  const contract = rewardContractSchema.safeParse(environment.contract)
  if (!contract.success) {
    const [issue] = contract.error.issues
    return refuse(`${['contract', ...(issue?.path ?? [])].join('.')}: ${issue?.message}`)
  }
  try {
    checkContract(contract.data)
  } catch (error) {
    const { path, message } = error as PaddockError
    refuse(`contract${path && `.${path}`}: ${message}`)
  }
  return { ...described(name, environment), contract: contract.data }
}

function isProblem(problem: unknown): boolean {
  return (
    isPlainObject(problem) &&
    ['rule', 'path', 'message'].every((key) => typeof problem[key] === 'string')
  )
}

/** What `problems` and `describe` throw or leave out is a task that cannot be played, told at load or at submit. */
function described(name: string, environment: Environment): Environment {
  const refuse = (method: string, what: string, cause?: unknown): never => {
    throw new PaddockError('invalid_task', `${name}.${method} ${what}`, { cause })
  }
  const call = <T>(method: string, run: () => T): T => {
    try {
      return run()
    } catch (cause) {
      return refuse(method, `threw: ${textOf(cause)}`, cause)
    }
  }
  return {
    ...environment,
    problems(spec, gate) {
      const problems = call('problems', () => environment.problems(spec, gate))
      if (!Array.isArray(problems) || !problems.every(isProblem))
        return refuse('problems', 'must return a list of {rule, path, message}, all text')
      return problems
    },
    describe(task) {
      const description: unknown = call('describe', () => environment.describe(task))
      if (!isPlainObject(description) || typeof description.title !== 'string')
        return refuse('describe', 'must return {title, limits}')
      const limits: Record<string, unknown> = isPlainObject(description.limits)
        ? description.limits
        : {}
      for (const name of ['max_turns', 'max_calls'])
        if (
          limits[name] !== undefined &&
          !(Number.isSafeInteger(limits[name]) && Number(limits[name]) >= 1)
        )
          refuse(
            'describe',
            `must return limits.${name} as a whole number from 1, got ${limits[name]}`,
          )
      const rule = description.on_parse_error
      if (rule !== undefined && !ON_PARSE_ERROR.some((known) => known === rule))
        refuse(
          'describe',
          `must return on_parse_error as one of ${ON_PARSE_ERROR.join(', ')}, got ${textOf(rule)}`,
        )
      return { ...description, title: description.title, limits }
    },
  }
}
