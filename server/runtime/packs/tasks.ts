// The tasks that can be asked for by id: those of the packs, checked once by their environment.
import { hash } from 'node:crypto'
import type { Task, TaskDescription, TaskProblem } from '../../../envs/environment.ts'
import type { Gate } from '../../../protocol/batch.ts'
import type { RewardContract } from '../../../protocol/contract.ts'
import { PaddockError } from '../../../protocol/errors.ts'
import { digest, type JsonObject } from '../../../protocol/json.ts'
import { contractLabel } from '../../../reward/contract.ts'
import type { TaskSummary } from '../../service.ts'
import type { Jobs } from '../threads/jobs.ts'
import { type Pool, WorkerLost } from '../threads/pool.ts'
import type { Pack } from './packs.ts'
import { specId } from './spec-id.ts'

/** A task that can be played. */
export interface KnownTask {
  task: Task
  description: TaskDescription
  /** The environment's own. */
  contract: RewardContract
  /** Custom graders that it may name, with their hashes, in one digest. */
  graders: string
}

export interface TaskCatalogue {
  summaries(pack?: string): TaskSummary[]
  /** Throws `not_found`, with the pack's name where that is what is unknown. */
  get(id: string): KnownTask
  /** Checks an inline spec; throws `invalid_task` with the first problem and its path. */
  inline(environment: string, spec: JsonObject, path: string, gate: Gate): Promise<KnownTask>
  /** Tasks of packs that cannot be played, each with its first problem; they are left out. */
  refused: { id: string; problem: string }[]
  specs(): { task: Task }[]
  /** Content hash of a pack; null for one that is not there. */
  packHash(pack: string): string | null
}

/** Playing the reference path of a task and its probes takes some 10 ms. */
const TASKS_PER_INSPECTION = 8
/** Inline specs that have passed; each batch of a run mostly brings the same ones. */
const MAX_PASSED_SPECS = 10_000

/** Generates, checks and indexes the tasks of all packs in the pool's threads. */
export async function loadTasks(packs: readonly Pack[], pool: Pool): Promise<TaskCatalogue> {
  const contracts = await pool.run('environments', null)
  const known = new Map<string, KnownTask>()
  const refused: TaskCatalogue['refused'] = []
  /** Inline specs that have passed, by the hash of what was checked. */
  const passed = new Map<string, { id: string; description: TaskDescription }>()
  const allGraders = gradersDigest(packs)
  for (const pack of packs) {
    const contract = contractOf(contracts, pack.environment, `pack ${pack.name}`)
    for (const file of pack.files)
      if ('problem' in file)
        refused.push({ id: `${pack.name}/${file.file}`, problem: file.problem.message })
    const graders = gradersDigest([pack])
    const tasks = (await specsOf(pack, pool)).map((spec) => ({
      environment: pack.environment,
      id: `${pack.name}/${specId(spec)}`,
      spec,
    }))
    const checked = await inspectAll(tasks, pool)
    for (const [index, task] of tasks.entries()) {
      const { problems = [], description = null } = checked[index] ?? {}
      if (description && !known.has(task.id))
        known.set(task.id, { task, description, contract, graders })
      else refused.push({ id: task.id, problem: problems[0]?.message ?? 'its id occurs twice' })
    }
  }

  return {
    summaries: (pack) =>
      [...known.values()].flatMap(({ task, description, contract }) => {
        const [of = ''] = task.id.split('/')
        if (pack !== undefined && of !== pack) return []
        const { environment, id } = task
        return {
          id,
          pack: of,
          environment,
          title: description.title,
          contract: contractLabel(contract),
        }
      }),
    get(id) {
      const found = known.get(id)
      if (found) return found
      const [pack = ''] = id.split('/')
      const packNames = [...new Set([...known.keys()].map((key) => key.split('/')[0]))]
      const hint = packNames.includes(pack)
        ? `GET /v1/tasks?pack=${pack} lists the tasks of this pack`
        : `there are the packs ${packNames.join(', ')}`
      throw new PaddockError('not_found', `no task ${id}; ${hint}`)
    },
    async inline(environment, spec, path, gate) {
      const contract = contractOf(contracts, environment, path)
      // As text: a spec of many keys is slow to copy, and sorting its keys is the thread's work.
      const text = JSON.stringify(spec)
      const asked = hash('sha256', `${environment} ${gate} ${text}`)
      const before = passed.get(asked)
      const known = ({ id, description }: { id: string; description: TaskDescription }) => ({
        task: { id, environment, spec },
        description,
        contract,
        graders: allGraders,
      })
      if (before) return known(before)
      const job = { environment, text, gate }
      const { id, problems, description } = await pool.run('check', job).catch((cause) => {
        if (!(cause instanceof WorkerLost)) throw cause
        const message = `environment ${environment} could not check the spec: ${cause.message}`
        throw new PaddockError('invalid_task', message, { path, cause })
      })
      const [problem] = problems
      if (problem)
        throw new PaddockError('invalid_task', sentenceOf(problem), {
          path: [path, problem.path].filter(Boolean).join('.'),
        })
      if (!description)
        throw new PaddockError('invalid_task', 'the spec has no description', { path })
      if (passed.size >= MAX_PASSED_SPECS) passed.clear()
      passed.set(asked, { id, description })
      return known({ id, description })
    },
    refused,
    specs: () => [...known.values()],
    packHash: (pack) => packs.find(({ name }) => name === pack)?.hash ?? null,
  }
}

function gradersDigest(packs: readonly Pack[]): string {
  return digest(packs.flatMap(({ graders }) => Object.values(graders).map(({ hash }) => hash)))
}

async function specsOf({ environment, generated, files }: Pack, pool: Pool): Promise<JsonObject[]> {
  if (generated) return pool.run('generate', { environment, ...generated })
  return files.flatMap((file) => ('spec' in file ? [file.spec] : []))
}

/** Checks tasks on all threads at once, a few to a job: a job has the time limit of a turn. */
async function inspectAll(tasks: readonly Task[], pool: Pool) {
  const jobs: Task[][] = []
  for (let at = 0; at < tasks.length; at += TASKS_PER_INSPECTION)
    jobs.push(tasks.slice(at, at + TASKS_PER_INSPECTION))
  return (await Promise.all(jobs.map((some) => inspectSome(some, pool)))).flat()
}

type Inspected = Jobs['inspect']['out'][number]

/** Where a job fails its tasks are checked one by one, and the one that fails is told instead of keeping the others. */
async function inspectSome(tasks: readonly Task[], pool: Pool): Promise<Inspected[]> {
  try {
    return await pool.run('inspect', { tasks, gate: 'load' })
  } catch (error) {
    if (tasks.length > 1)
      return (await Promise.all(tasks.map((task) => inspectSome([task], pool)))).flat()
    if (!(error instanceof WorkerLost || error instanceof PaddockError)) throw error
    const message = `environment ${tasks[0]?.environment} could not check the spec: ${error.message}`
    const problem = { rule: 'V10', path: '', expected: 'a check that ends', found: error.message }
    return [{ problems: [{ ...problem, message }], description: null }]
  }
}

/** Names the rule, which users' environments may leave out of their sentence. */
const sentenceOf = ({ rule, message }: TaskProblem): string =>
  message.startsWith(rule) ? message : `${rule}: ${message}`

function contractOf(contracts: Record<string, RewardContract>, environment: string, path: string) {
  const contract = Object.hasOwn(contracts, environment) ? contracts[environment] : undefined
  if (contract) return contract
  const names = Object.keys(contracts).join(', ')
  throw new PaddockError('invalid_task', `no environment ${environment}; there are ${names}`, {
    path,
  })
}
