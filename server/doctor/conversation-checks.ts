// What becomes of conversations: tools shown, calls readable, thoughts kept, nothing changed on the way. Pure.
import type { ToolFormat } from '../../protocol/parse-codes.ts'
import { DRIFT_CAUSES } from '../../protocol/turn-counts.ts'
import { isFault } from './engine-checks.ts'
import type { Evidence, SampleEpisode } from './evidence.ts'
import { found, healthy, notChecked, type Verdict } from './findings.ts'

const NO_ANSWER = 'no answer to judge by'
const NOT_ASKED = 'not played: no episode was asked for'
const NOT_YET = 'not played: first mend what was found'

/** Fields by which a reply shows that the engine parsed it. */
const PARSED_FIELDS = ['tool_calls', 'reasoning_content', 'reasoning', 'content', 'finish_reason']

export function checkParsers({ toolTurns, warm }: Evidence): Verdict {
  const probes = [...toolTurns.map(({ probe }) => probe), ...warm]
  const parsed = probes.flatMap(
    ({ strict, loose }) =>
      [strict, loose]
        .filter(isFault)
        .find(
          ({ kind, field }) => kind === 'contract_violation' && PARSED_FIELDS.includes(field),
        ) ?? [],
  )
  const [first] = parsed
  if (first)
    return found(
      'tags_eaten',
      `${parsed.length} of ${probes.length} answers: ${first.field}: ${first.message}`,
    )
  if (probes.every(({ loose }) => isFault(loose))) return notChecked(NO_ANSWER)
  return healthy('answers come as they were sampled')
}

export function checkToolFormat({ toolTurns, subject }: Evidence): Verdict {
  const read = toolTurns.flatMap(({ calls }) => calls ?? [])
  if (read.length === 0) return notChecked(NO_ANSWER)
  const total = (format: ToolFormat) => read.reduce((sum, calls) => sum + (calls[format] ?? 0), 0)
  const ours = total(subject.toolFormat)
  const formats = Object.keys(read[0] as object) as ToolFormat[]
  const best = formats.reduce((a, b) => (total(b) > total(a) ? b : a), subject.toolFormat)
  if (best !== subject.toolFormat)
    return found(
      'other_tool_format',
      `${read.length} answers hold ${total(best)} calls as ${best} and ${ours} as ${subject.toolFormat}`,
    )
  if (ours === 0) return notChecked(`no call in ${read.length} answers`)
  return healthy(`${ours} calls in ${read.length} answers, as ${subject.toolFormat}`)
}

export function checkTools({ toolTurns }: Evidence): Verdict {
  const missing = toolTurns.find((turn) => (turn.missing ?? []).length > 0)
  if (missing)
    return found(
      'tools_missing',
      `${missing.task}: the prompt lacks ${missing.missing?.join(', ')}`,
    )
  const weighed = toolTurns.filter((turn) => turn.promptTokens !== null && turn.bareTokens !== null)
  const bare = weighed.find(({ promptTokens, bareTokens }) => promptTokens! <= bareTokens!)
  if (bare)
    return found(
      'tools_missing',
      `${bare.task}: with tools and without, the prompt has ${bare.promptTokens} tokens`,
    )
  const seen = toolTurns.some((turn) => turn.missing !== null) || weighed.length > 0
  return seen ? healthy('the prompt lists them') : notChecked(NO_ANSWER)
}

export function checkReasoning({ reasoning, subject, toolTurns }: Evidence): Verdict {
  const thinking = toolTurns.filter(({ thinks }) => thinks === true).length
  if (subject.thinking === 'none' && thinking > 0)
    return found('thinking_unsaid', `${thinking} of ${toolTurns.length} answers hold <think>`)
  if (subject.thinking === 'none') return notChecked('the policy is not said to think')
  if (subject.mode === 'tokens') return healthy('the tape keeps what was sampled')
  const { beforeTool = null, beforeUser = null } = reasoning ?? {}
  if (beforeTool === false) return found('reasoning_dropped', 'lost where a tool result follows')
  if (beforeUser === false) return found('reasoning_dropped', 'lost where a user message follows')
  if (beforeTool === null && beforeUser === null)
    return notChecked('the prompt’s ids are not known: set model_dir')
  return healthy('the next prompt holds what was thought')
}

/** Of the sample episodes: each prompt must begin with all that was sampled before it. */
export function checkTape({ episodes, subject }: Evidence): Verdict {
  if (!episodes) return notChecked(NOT_YET)
  if (episodes.played.length === 0) return notChecked(NOT_ASKED)
  const taped = episodes.played.filter(({ samples }) => samples > 0)
  if (taped.length === 0 && !subject.modelDir) return notChecked('no model_dir, no tape')
  if (taped.length === 0) {
    const [{ task, outcome }] = episodes.played as [SampleEpisode]
    return notChecked(`no episode has a tape; ${task}: ${outcome}`)
  }
  const cuts = DRIFT_CAUSES.flatMap((cause) => {
    const count = taped.reduce((sum, { drift }) => sum + (drift[cause] ?? 0), 0)
    return count > 0 ? `${count} by ${cause}` : []
  })
  if (cuts.length === 0) return healthy(`${taped.length} episodes, each one unbroken chain`)
  const told = cuts.join(', ')
  return found('prompt_drift', `chains of ${taped.length} episodes are cut: ${told}`)
}

export function checkRoundTrip({ roundTrip, warm }: Evidence): Verdict {
  if (warm.every(({ strict, loose }) => isFault(strict) && isFault(loose)))
    return notChecked(NO_ANSWER)
  if (roundTrip.length === 0) return notChecked('it needs model_dir or mode chat')
  const broken = roundTrip.find(({ difference }) => difference !== null)
  if (broken) return found('round_trip', `${broken.step}: ${broken.difference}`)
  return healthy(
    `names, types and ids are the same after ${roundTrip.map((s) => s.step).join(', ')}`,
  )
}

export function checkPack({ pack }: Evidence): Verdict {
  const [first] = pack.refused
  if (!first) return healthy(`${pack.tasks} tasks of ${pack.name} pass the gate`)
  return found(
    'pack_refused',
    `${pack.refused.length} of ${pack.tasks} tasks of ${pack.name}; ${first.id}: ${first.problem}`,
  )
}

export function checkContract({ contract }: Evidence): Verdict {
  if (contract.problem !== null) return found('contract_mismatch', contract.problem)
  if (contract.reads.length === 0) return notChecked(`${contract.label}; say --reads`)
  return healthy(`${contract.label} has ${contract.reads.join(', ')}`)
}

export function checkLedger({ ledger }: Evidence): Verdict {
  const { path, problem, freeBytes, minFreeBytes } = ledger
  if (path === null) return notChecked('no ledger.path: batches live as long as the process')
  if (problem !== null) return found('ledger_broken', `${path}: ${problem}`)
  if (freeBytes < minFreeBytes)
    return found('ledger_full', `${path}: ${freeBytes} bytes free, ${minFreeBytes} are wanted`)
  return healthy(`${path} is written, synced and read back`)
}

/** A few unscored episodes are a policy's everyday; half of them are a fault. */
const MAX_UNSCORED_SHARE = 0.5

export function checkEpisodes({ episodes, subject }: Evidence): Verdict {
  if (!episodes) return notChecked(NOT_YET)
  const { played } = episodes
  if (played.length === 0) return notChecked(NOT_ASKED)
  const unscored = played.filter(({ scored }) => !scored)
  if (unscored.length > MAX_UNSCORED_SHARE * played.length) {
    const [{ outcome, reason, task }] = unscored as [SampleEpisode]
    return found(
      'episodes_fail',
      `${unscored.length} of ${played.length} have no reward; ${task}: ${outcome}: ${reason ?? 'no reason was told'}`,
    )
  }
  const tokens = mean(played, (one) => one.promptTokens + one.completionTokens)
  const sampled = mean(played, (one) => one.completionTokens)
  const rounds = subject.batchEpisodes / played.length
  const cost = `${million(tokens * subject.batchEpisodes)} tokens (${million(sampled * subject.batchEpisodes)} sampled)`
  return healthy(
    `${played.length} played, ${played.length - unscored.length} scored; ${subject.batchEpisodes} episodes would cost ${cost} and ${seconds(episodes.wallSeconds * rounds)}, ${played.length} at a time`,
  )
}

function mean(played: readonly SampleEpisode[], value: (one: SampleEpisode) => number): number {
  return played.reduce((sum, one) => sum + value(one), 0) / played.length
}

const million = (count: number): string =>
  count < 1e6 ? String(Math.round(count)) : `${plain(count / 1e6, 3)} M`

const seconds = (count: number): string =>
  count < 120 ? `${plain(count, 2)} s` : `${Math.round(count / 60)} min`

/** Never in powers of ten; below 1 with one decimal. */
const plain = (count: number, digits: number): string =>
  count < 1
    ? count.toFixed(1)
    : count < 10 ** (digits - 1)
      ? count.toPrecision(digits)
      : String(Math.round(count))
