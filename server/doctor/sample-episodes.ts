// A few whole episodes in this process, against the real backend: what they come to and what they cost.
import type { Environment, Task } from '../../envs/environment.ts'
import type { RewardContract } from '../../protocol/contract.ts'
import { isScored } from '../../protocol/outcomes.ts'
import type { Engine, EpisodePlan, PolicyPlan } from '../../rollout/episode.ts'
import { advance, begin, conclude } from '../../rollout/turn.ts'
import type { Asker } from './asker.ts'
import type { Evidence, SampleEpisode } from './evidence.ts'

interface Stage {
  engine: Engine
  environment: Environment
  contract: RewardContract
  policy: PolicyPlan
  limits: { maxTurns: number; maxTokens: number }
}

/** All at once. Those that need somebody beside the policy (a judge, a user played by a model) are left out. */
export async function sampleEpisodes(
  tasks: readonly Task[],
  stage: Stage,
  asker: Pick<Asker, 'post'>,
): Promise<Evidence['episodes']> {
  const started = performance.now()
  const played = await Promise.all(
    tasks.map((task, index) => play(planOf(task, index, stage), stage.engine, asker)),
  )
  const wallSeconds = (performance.now() - started) / 1000
  return { played: played.filter((one) => one !== null), wallSeconds }
}

function planOf(
  task: Task,
  index: number,
  { environment, contract, policy, limits }: Stage,
): EpisodePlan {
  const description = environment.describe(task)
  const { seed } = task.spec
  return {
    episode: `doctor.${index}`,
    batch: 'doctor',
    group: 'doctor',
    groupIndex: index,
    index: 0,
    attempt: 1,
    task,
    seed: Number.isSafeInteger(seed) ? (seed as number) : 0,
    policy,
    contract,
    limits: {
      maxTurns: Math.min(limits.maxTurns, description.limits.max_turns ?? limits.maxTurns),
      maxTokens: limits.maxTokens,
    },
    onParseError: description.on_parse_error ?? 'feedback',
  }
}

async function play(
  plan: EpisodePlan,
  engine: Engine,
  asker: Pick<Asker, 'post'>,
): Promise<SampleEpisode | null> {
  const started = performance.now()
  let result = begin(plan, engine)
  while (result.kind === 'request') {
    const { state, request } = result
    if (request.kind !== 'policy') return null
    const answer = await asker.post(request)
    result =
      answer.kind === 'reply'
        ? advance(state, answer, engine)
        : conclude(state, answer.outcome, answer.reason, engine)
  }
  const { header } = result.sealed
  return {
    task: plan.task.id,
    outcome: header.outcome,
    reason: header.reason,
    scored: isScored(header.outcome),
    turns: header.turns.length,
    samples: new Set(header.turns.flatMap(({ sample }) => sample ?? [])).size,
    promptTokens: header.prompt_tokens,
    completionTokens: header.completion_tokens,
    seconds: (performance.now() - started) / 1000,
    drift: header.drift,
  }
}
