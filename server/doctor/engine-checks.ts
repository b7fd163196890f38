// What the engine's replies say of it: is it alive, complete, sampled as asked. Pure: evidence in, a verdict out.
import type { Completion, PolicyReply, ReplyFault } from '../../rollout/policy/dialect.ts'
import type { EndpointProbe, EngineFacts, Evidence, Probe, Subject } from './evidence.ts'
import { type FindingCode, found, healthy, notChecked, type Verdict } from './findings.ts'

const NO_REPLY = 'no reply to judge by'

export function checkEndpoint({ endpoints, engine, subject }: Evidence): Verdict {
  for (const endpoint of endpoints) {
    const finding = endpointFinding(endpoint, engine, subject)
    if (finding) return finding
  }
  const urls = endpoints.map(({ url }) => url).join(', ')
  const came = endpoints.every(({ loose }) => isCompletion(loose))
  return healthy(came ? `${urls}: one token came` : `${urls} answers`)
}

function endpointFinding(
  { url, listens, answer, loose }: EndpointProbe,
  { models }: EngineFacts,
  { model, dialect }: Subject,
): Verdict | null {
  if (answer.kind === 'failure') {
    const said = answer.reason || 'nothing came in time'
    if (!listens) return found('endpoint_dead', `${url} does not answer: ${said}`)
    return found('endpoint_silent', `${url} answers, but asked for one token: ${said}`)
  }
  if (answer.status < 400 || loose?.kind === 'context_length') return null
  const said = loose && isFault(loose) ? loose.message : `status ${answer.status}`
  if (models && !models.includes(model))
    return found('model_unknown', `${url} serves ${models.join(', ')}, not ${model}`)
  if (answer.status === 404) return found('other_dialect', `${url}, asked as ${dialect}: ${said}`)
  return found('endpoint_refuses', `${url}: ${said}`)
}

export function checkDialect({ engine: { kind, release }, subject }: Evidence): Verdict {
  const { dialect, mode } = subject
  if (kind !== null && kind !== (dialect === 'sglang' ? 'sglang' : 'vllm'))
    return found('other_dialect', `it is ${kind} by its routes, and is asked as ${dialect}`)
  return healthy(`${dialect} in mode ${mode}, ${release ?? 'release not told'}`)
}

export function checkReplies({ warm }: Evidence): Verdict {
  const faults = warm.flatMap(({ strict }) => (isFault(strict) ? [strict] : []))
  const [fault] = faults
  if (warm.length === 0 || fault?.kind === 'context_length') return notChecked(NO_REPLY)
  if (!fault) return healthy(`${warm.length} replies with ids and log-probabilities, side by side`)
  const field = fault.field ? `${fault.field}: ` : ''
  return found(
    codeOf(fault),
    `${faults.length} of ${warm.length} replies: ${field}${fault.message}`,
  )
}

const ID_FIELDS = ['token_ids', 'output_ids', 'prompt_token_ids']
const SEED_FIELDS = ['seed', 'sampling_seed']
const TEMPERATURE_FIELDS = ['temperature', 'top_p']

function codeOf({ field, problem }: ReplyFault): FindingCode {
  if (problem === 'length') return 'lengths_differ'
  if (problem === 'absent' && ID_FIELDS.includes(field)) return 'no_token_ids'
  if (problem === 'absent' && field.includes('logprobs')) return 'no_logprobs'
  // An engine that echoes what it sampled with.
  if (TEMPERATURE_FIELDS.includes(field)) return 'temperature_ignored'
  if (SEED_FIELDS.includes(field)) return 'seed_ignored'
  return 'reply_broken'
}

/** Two values of one token after the same ids count as the same where they differ by less than this part. */
const SAME_SHARE = 0.1
/** A token that was nearly certain says nothing: its value is about 0 at any temperature. */
const TELLING_LOGPROB = -0.02

/**
 * `raw` values are of the distribution before the temperature: the same token after the same ids has the same one at any
 * temperature (PrimeIntellect-ai/prime-rl#697). The softmax is not linear, so nothing can be divided out.
 */
export function checkLogprobsMode(evidence: Evidence): Verdict {
  const { warm, cool, subject } = evidence
  if (checkTemperature(evidence).status === 'finding')
    return notChecked('the temperature does not act')
  const read = [completions(warm), completions(cool)] as const
  if (read.some((replies) => replies.length === 0))
    return notChecked('no reply with ids and log-probabilities at both temperatures')
  const pairs = comparable(...read)
  if (pairs.length === 0)
    return notChecked('no token came at both temperatures that was not nearly certain')
  const same = pairs.filter(([a, b]) => Math.abs(a - b) <= SAME_SHARE * Math.max(-a, -b)).length
  const mode = same * 2 > pairs.length ? 'raw' : 'processed'
  const told = `${same} of ${pairs.length} log-probabilities are the same at temperatures 1 and 0.5`
  if (mode === subject.logprobsMode) return healthy(`${mode}, as the settings say`)
  if (mode === 'raw') return found('raw_logprobs', told)
  if (subject.logprobsMode === 'raw')
    return found('logprobs_mode_differs', `${told}, and the settings say raw`)
  return healthy('processed: of the distribution that was sampled from')
}

/** Values of the same token behind the same ids, of every pair of completions. */
function comparable(a: readonly Completion[], b: readonly Completion[]): [number, number][] {
  const byPrefix = new Map<string, number>()
  for (const { ids, logprobs } of a)
    ids?.forEach((_, at) => {
      byPrefix.set(prefixKey(ids, at), logprobs?.[at] ?? 0)
    })
  const pairs = new Map<string, [number, number]>()
  for (const { ids, logprobs } of b)
    ids?.forEach((_, at) => {
      const key = prefixKey(ids, at)
      const warm = byPrefix.get(key)
      const cool = logprobs?.[at]
      if (warm === undefined || cool === undefined || warm > TELLING_LOGPROB) return
      pairs.set(key, [warm, cool])
    })
  return [...pairs.values()]
}

const prefixKey = (ids: Int32Array, at: number): string => ids.subarray(0, at + 1).join()

export function checkVersion({ warm, engine, subject }: Evidence): Verdict {
  const readable = warm.flatMap(({ strict, loose }) => [strict, loose]).filter(isCompletion)
  const version = readable.find((one) => one.version !== null)?.version
  if (version !== undefined) return healthy(`every reply tells its version: ${version}`)
  if (engine.weightVersion !== null)
    return healthy(
      subject.weightInfo
        ? `asked around each completion, the engine tells its version: ${engine.weightVersion}`
        : `asked for, the engine tells its version: ${engine.weightVersion}; no reply does: without weight_info samples have no version`,
    )
  if (readable.length === 0) return notChecked(NO_REPLY)
  return found('no_version', 'neither replies nor the engine tell the version of the weights')
}

export function checkTemperature({ warm, greedy }: Evidence): Verdict {
  const said = sayings(warm)
  if (said.length < 2) return notChecked(NO_REPLY)
  const distinct = new Set(said).size
  if (distinct > 1) return healthy(`${distinct} different completions with ${said.length} seeds`)
  const [cold] = greedy ? sayings([greedy]) : []
  if (cold !== undefined && cold !== said[0]) return healthy('0 and 1 give different completions')
  const all = said.length === 2 ? 'both' : `all ${said.length}`
  const too = cold === undefined ? '' : ', and so is that at temperature 0'
  return found('temperature_ignored', `${all} completions at temperature 1 are the same${too}`)
}

export function checkSeed({ warm, again, greedy }: Evidence): Verdict {
  const said = sayings(warm)
  const [repeated] = again ? sayings([again]) : []
  if (said.length < 2 || repeated === undefined) return notChecked(NO_REPLY)
  if (new Set(said).size === 1) {
    const [cold] = greedy ? sayings([greedy]) : []
    if (cold === undefined || cold === said[0]) return notChecked('nothing varies by which to tell')
    return found('seed_ignored', `${said.length} seeds gave one and the same completion`)
  }
  if (repeated === said[0]) return healthy('the same seed gives the same completion')
  return found('seed_ignored', 'the same seed gave two different completions')
}

export function checkContext({ engine, subject, toolTurns, warm, endpoints }: Evidence): Verdict {
  const probes = [...warm, ...toolTurns.map(({ probe }) => probe)]
  const replies = [...endpoints, ...probes].map(({ loose }) => loose)
  const refused = replies.find((reply) => reply?.kind === 'context_length')
  if (refused && isFault(refused))
    return found('context_short', `a first prompt does not fit: ${refused.message}`)
  const { maxModelLen } = engine
  if (maxModelLen === null) return notChecked('the engine does not tell its context length')
  const { episodeTokens } = subject
  const prompts = toolTurns.flatMap(({ promptTokens }) => promptTokens ?? [])
  if (prompts.length === 0)
    return maxModelLen < episodeTokens
      ? found('context_short', `${maxModelLen} tokens, but an episode may sample ${episodeTokens}`)
      : notChecked(
          `${maxModelLen} tokens hold the ${episodeTokens} that an episode may sample; how long a first prompt is was not told`,
        )
  const prompt = Math.max(...prompts)
  const need = prompt + episodeTokens
  const sum = `${prompt} of the first prompt and ${episodeTokens} that an episode may sample`
  return maxModelLen < need
    ? found('context_short', `${maxModelLen} tokens, but ${sum} make ${need}`)
    : healthy(`${maxModelLen} tokens hold ${sum}`)
}

/** What NTP keeps is far below it, and so is the rounding of the header to seconds with a slow reply. */
const MAX_SKEW_S = 30

export function checkClock({ endpoints }: Evidence): Verdict {
  const told = endpoints.flatMap(({ url, skewSeconds: skew }) =>
    skew === null ? [] : [{ url, skew }],
  )
  if (told.length === 0) return notChecked('the backend tells no Date')
  const worst = told.reduce((a, b) => (Math.abs(b.skew) > Math.abs(a.skew) ? b : a))
  const off = Math.round(Math.abs(worst.skew))
  if (off <= MAX_SKEW_S) return healthy(`within ${MAX_SKEW_S} s of ours`)
  const side = worst.skew > 0 ? 'behind' : 'ahead of'
  return found('clock_skew', `the clock of ${worst.url} is ${off} s ${side} ours`)
}

/** What was said in each probe: its ids, or where there are none its text. */
function sayings(probes: readonly Probe[]): string[] {
  return probes.flatMap(({ strict, loose }) => {
    if (isCompletion(strict) && strict.ids) return strict.ids.join()
    return isCompletion(loose) && loose.content !== null ? loose.content : []
  })
}

function completions(probes: readonly Probe[]): Completion[] {
  return probes.flatMap(({ strict }) => (isCompletion(strict) ? strict : []))
}

export function isCompletion(reply: PolicyReply | null): reply is Completion {
  return reply?.kind === 'completion'
}

export function isFault(reply: PolicyReply): reply is ReplyFault {
  return reply.kind !== 'completion'
}
