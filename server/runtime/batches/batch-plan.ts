// A batch request turned into what can be played: every name resolved, every mismatch refused with a sentence.
import type { BatchRequest } from '../../../protocol/batch.ts'
import type { RewardContract } from '../../../protocol/contract.ts'
import { PaddockError } from '../../../protocol/errors.ts'
import type { JsonObject } from '../../../protocol/json.ts'
import { bindEstimator } from '../../../reward/bind-estimator.ts'
import { bindConsumer, checkContract, contractLabel } from '../../../reward/contract.ts'
import { chooseEstimator } from '../../../reward/estimators.ts'
import { nearestName } from '../../../reward/nearest.ts'
import type { AskPlan } from '../../../rollout/asking/asking.ts'
import type { PolicyPlan } from '../../../rollout/episode.ts'
import { dialects } from '../../../rollout/policy/dialects.ts'
import type { Backend } from '../../config.ts'
import { type AskSettings, planAsks } from '../asking/ask-plan.ts'
import type { KnownTask, TaskCatalogue } from '../packs/tasks.ts'

export interface BatchPlan {
  id: string
  request: BatchRequest
  contract: RewardContract
  contractLabel: string
  estimatorSettings: unknown
  /** Whether advantages can only be known when the last group is over. */
  seesBatch: boolean
  minScored: number
  policy: PolicyPlan
  /** Absent where nobody may be asked beside the policy. */
  asked?: AskPlan
  tasks: { known: KnownTask; seed: number; metadata: JsonObject }[]
}

export interface PlanWorld {
  backends: Record<string, Backend>
  /** Hosts of engines that a batch may name; the backends' own addresses always may be. */
  engineHosts: readonly string[]
  tasks: TaskCatalogue
  asks: AskSettings
}

/** Where the two stand in a batch request. */
const SETTINGS_PATH = { estimator: 'advantage.estimator', settings: 'advantage.settings' }

/** Episodes that one batch may ask for. */
const MAX_EPISODES = 100_000

/** Throws `not_found`, `invalid_task`, `invalid_request` or `contract_mismatch`, each with the path of what is wrong. */
export async function planBatch(
  id: string,
  request: BatchRequest,
  world: PlanWorld,
): Promise<BatchPlan> {
  const episodes = request.tasks.length * request.group_size
  if (episodes > MAX_EPISODES)
    refuse(
      `expected at most ${MAX_EPISODES} episodes (tasks × group_size), got ${episodes}; split the batch`,
      'tasks',
    )
  const policy = planPolicy(id, request, world)
  const asked = planAsks(request, world.asks)
  const tasks = await resolveTasks(request, world.tasks)
  const contract = chooseContract(request, tasks)
  bindConsumer(contract, request.reward)
  const { estimator, settings } = request.advantage
  bindEstimator(contract, estimator, settings)
  const chosen = chooseEstimator(estimator, settings, SETTINGS_PATH)
  const seesBatch = chosen.estimator.seesBatch?.(chosen.settings) ?? false
  if (request.advantage.window !== undefined && !seesBatch)
    refuse(
      `${estimator} with these settings looks at one group alone and whitens over none; leave window out`,
      'advantage.window',
    )
  const minScored = request.groups.min_scored ?? request.group_size
  for (const [value, path] of [
    [minScored, 'groups.min_scored'],
    [request.groups.enough ?? 1, 'groups.enough'],
  ] as const)
    if (value > request.group_size)
      refuse(`expected at most the group size of ${request.group_size}, got ${value}`, path)
  return {
    id,
    request,
    contract,
    contractLabel: contractLabel(contract),
    estimatorSettings: chosen.settings,
    seesBatch,
    minScored,
    policy,
    ...(Object.keys(asked).length > 0 && { asked }),
    tasks,
  }
}

function planPolicy(
  id: string,
  request: BatchRequest,
  { backends, engineHosts }: PlanWorld,
): PolicyPlan {
  const { policy } = request
  if (policy.url !== undefined) checkEngine(policy.url, backends, engineHosts)
  const backend = Object.hasOwn(backends, policy.backend) ? backends[policy.backend] : undefined
  if (!backend) {
    const names = Object.keys(backends)
    const known =
      names.length > 0
        ? `there are ${names.join(', ')}`
        : 'none is configured: name one under backends: in paddock.yaml'
    throw new PaddockError('invalid_request', `no backend ${policy.backend}; ${known}`, {
      path: 'policy.backend',
    })
  }
  const { modes } = dialects[backend.dialect]
  if (!modes.includes(policy.mode))
    refuse(
      `backend ${policy.backend} speaks ${backend.dialect}, which is asked in mode ${modes.join(' or ')}, not ${policy.mode}`,
      'policy.mode',
    )
  if (policy.mode === 'tokens' && backend.model_dir === undefined)
    refuse(
      `mode tokens needs the model's files: set backends.${policy.backend}.model_dir`,
      'policy.mode',
    )
  if (policy.control_tokens === 'plain' && policy.mode !== 'tokens')
    refuse(
      'plain needs mode tokens: in mode chat the backend makes control ids of what an observation spells out',
      'policy.control_tokens',
    )
  const { seed, ...sampling } = policy.sampling
  if (request.mode === 'train' && sampling.temperature <= 0 && request.group_size > 1)
    refuse(
      'expected a temperature above 0 in mode train: greedy decoding makes every episode of a group the same',
      'policy.sampling.temperature',
    )
  return {
    dialect: backend.dialect,
    backend: policy.backend,
    ...(policy.url !== undefined && { url: policy.url }),
    model: policy.model ?? backend.model,
    mode: policy.mode,
    stream: backend.stream,
    firstPrompt: backend.first_prompt,
    toolFormat: policy.tool_format ?? backend.tool_format ?? 'hermes',
    thinking: policy.thinking ?? backend.thinking ?? 'none',
    leniencies: policy.leniencies,
    sampling,
    version: policy.version ?? null,
    seedBase: seed === undefined ? id : String(seed),
    chatTemplateKwargs: policy.chat_template_kwargs,
    controlTokens: policy.control_tokens,
    ...(backend.logprobs_mode !== 'unknown' && { logprobsMode: backend.logprobs_mode }),
  }
}

/** What a request may make the server call is what its settings say: a backend's address, or a host of the list. */
function checkEngine(
  url: string,
  backends: Record<string, Backend>,
  hosts: readonly string[],
): void {
  const { origin, hostname } = new URL(url)
  const configured = Object.values(backends).some(({ urls }) =>
    urls.some((one) => new URL(one).origin === origin),
  )
  const name = hostname.replace(/^\[(.*)\]$/, '$1')
  if (configured || hosts.includes(name)) return
  refuse(
    `the host ${name} is none that may be asked: add it to dialects.engine_hosts, or name a backend's address`,
    'policy.url',
  )
}

async function resolveTasks(
  request: BatchRequest,
  catalogue: TaskCatalogue,
): Promise<BatchPlan['tasks']> {
  return Promise.all(
    request.tasks.map(async (asked, index) => {
      const path = `tasks[${index}]`
      if (asked.task !== undefined && asked.environment !== undefined)
        refuse(
          'environment goes with an inline spec; a task of a pack has its own',
          `${path}.environment`,
        )
      const known = asked.spec
        ? await catalogue.inline(
            asked.environment ?? 'office',
            asked.spec,
            `${path}.spec`,
            request.gate,
          )
        : fromPack(catalogue, asked.task ?? '', `${path}.task`)
      const ownSeed = known.task.spec.seed
      const seed = asked.seed ?? (Number.isSafeInteger(ownSeed) ? (ownSeed as number) : 0)
      return { known, seed, metadata: asked.metadata }
    }),
  )
}

function fromPack(catalogue: TaskCatalogue, id: string, path: string): KnownTask {
  try {
    return catalogue.get(id)
  } catch (error) {
    // In a batch the unknown name is a mistake in the body, not in the address.
    if (error instanceof PaddockError)
      throw new PaddockError('invalid_request', error.message, { path })
    throw error
  }
}

/** The contract that the batch names, which must be what every environment of it fills. */
function chooseContract(request: BatchRequest, tasks: BatchPlan['tasks']): RewardContract {
  const asked = request.reward.contract
  const own = new Map(tasks.map(({ known }) => [contractLabel(known.contract), known.contract]))
  const [first] = own.values()
  if (!first)
    throw new PaddockError('invalid_request', 'expected at least one task', { path: 'tasks' })
  if (typeof asked === 'object') {
    checkContract(asked)
    // A reward model fills what the batch says, whatever the environments' graders write.
    if (request.reward.source) return asked
    for (const contract of own.values()) refuseOtherFields(asked, contract)
    return asked
  }
  if (own.size > 1)
    throw new PaddockError(
      'contract_mismatch',
      `the tasks' environments fill ${[...own.keys()].join(' and ')}; one batch has one contract: split it by environment`,
      { path: 'tasks' },
    )
  const name = `${first.name}@${first.version}`
  if (asked !== undefined && asked !== name && asked !== contractLabel(first))
    throw new PaddockError(
      'contract_mismatch',
      `no contract ${asked}: the environment of these tasks fills ${name}; name that, or leave reward.contract out`,
      { path: 'reward.contract' },
    )
  return first
}

/** A contract of the batch's own must have exactly the fields that the grader writes. */
function refuseOtherFields(asked: RewardContract, filled: RewardContract): void {
  const [names, written] = [Object.keys(asked.fields), Object.keys(filled.fields)]
  const lacking = written.find((name) => !names.includes(name))
  const extra = names.find((name) => !written.includes(name))
  const wrong = lacking ?? extra
  if (wrong === undefined) return
  const sentence =
    lacking !== undefined
      ? `the grader writes ${lacking}, which contract ${asked.name} does not declare`
      : `contract ${asked.name} declares ${extra}, which the grader never writes; the nearest is ${nearestName(wrong, written)}`
  throw new PaddockError('contract_mismatch', sentence, { path: `reward.contract.fields.${wrong}` })
}

function refuse(message: string, path: string): never {
  throw new PaddockError('invalid_request', message, { path })
}
