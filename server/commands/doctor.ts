// `paddock doctor`: examines a backend, a pack and a trainer's reads before GPU time is spent.
import { PaddockError } from '../../protocol/errors.ts'
import { dialects } from '../../rollout/policy/dialects.ts'
import type { Backend, Config } from '../config.ts'
import { type Asker, createAsker } from '../doctor/asker.ts'
import { judge } from '../doctor/checks.ts'
import { servedModel } from '../doctor/engine-facts.ts'
import type { Subject } from '../doctor/evidence.ts'
import { examine } from '../doctor/examine.ts'
import { loadHouse } from '../doctor/house.ts'
import { findingsOf, reportJson, reportText } from '../doctor/report.ts'
import type { Streams } from './streams.ts'

/** As the command line gives them. */
export type DoctorFlags = Omit<DoctorOptions, 'batchEpisodes'> & { batch: number }

export interface DoctorOptions {
  backend: string
  /** An address in the place of the backend's own, or where none is configured. */
  url?: string | undefined
  dialect?: Backend['dialect'] | undefined
  model?: string | undefined
  modelDir?: string | undefined
  mode?: Subject['mode'] | undefined
  pack: string
  reads: readonly string[]
  temperature: number
  maxTokens: number
  episodeTokens: number
  episodes: number
  batchEpisodes: number
  /** Of one completion, seconds. */
  timeout: number
  json?: true | undefined
}

/**
 * Writes the report, and to standard error what it waits for. Gives the exit code: 1 with findings. Throws PaddockError
 * where it is not said whom to examine.
 */
export async function doctor(
  config: Config,
  options: DoctorOptions,
  { stdout, stderr }: Streams = process,
): Promise<number> {
  const backend = backendOf(config, options)
  const mode = modeOf(backend, options.mode)
  const [first, ...others] = backend.urls.map((url) =>
    createAsker(options.backend, backend, options.timeout * 1000, url),
  )
  const askers = [first as Asker, ...others] as const
  const say = (what: string) => stderr.write(`${what} …\n`)
  say(`putting the pack ${options.pack} through the gate`)
  const models = backend.model_dir === undefined ? {} : { [options.backend]: backend.model_dir }
  const house = await loadHouse(config, options.pack, models)
  const subject = await subjectOf({ ...backend, mode }, options, askers[0])
  const found = await examine(
    {
      ...{ ...house, subject, askers, reads: options.reads, ledger: config.ledger },
      temperature: options.temperature,
      answerTokens: options.maxTokens,
      maxTurns: MAX_TURNS,
      episodes: options.episodes,
    },
    say,
  )
  const results = judge(found)
  const colour = (stdout as { isTTY?: boolean }).isTTY === true
  stdout.write(options.json ? reportJson(found, results) : reportText(results, colour))
  return findingsOf(results).length > 0 ? 1 : 0
}

/** The exit code of the command line: 2 where settings or flags are wrong. */
export async function runDoctor(
  readConfig: () => Promise<Config>,
  { batch, ...flags }: DoctorFlags,
): Promise<number> {
  try {
    return await doctor(await readConfig(), { ...flags, batchEpisodes: batch })
  } catch (error) {
    if (error instanceof PaddockError) process.exitCode = 2
    throw error
  }
}

/** The default of a batch's `limits.max_turns`. */
const MAX_TURNS = 20

function backendOf(config: Config, { backend: name, url, ...given }: DoctorOptions): Backend {
  const known = Object.hasOwn(config.backends, name) ? config.backends[name] : undefined
  if (!known && url === undefined) {
    const names = Object.keys(config.backends).join(', ') || 'none'
    throw new PaddockError(
      'invalid_config',
      `expected one of the backends of paddock.yaml (${names}), got ${name}; name one with --backend, or an engine with --url`,
    )
  }
  const base: Backend = known ?? { ...UNCONFIGURED, urls: [] }
  return {
    ...(url === undefined ? base : elsewhere(base, url)),
    ...(given.dialect !== undefined && { dialect: given.dialect }),
    ...(given.model !== undefined && { model: given.model }),
    ...(given.modelDir !== undefined && { model_dir: given.modelDir }),
  }
}

/** The backend at another address, which does not see the backend's key. */
function elsewhere({ api_key, ...base }: Backend, url: string): Backend {
  const { origin } = new URL(checkedUrl(url))
  const trusted = base.urls.some((one) => new URL(one).origin === origin)
  return { ...base, urls: [url], ...(trusted && api_key !== undefined && { api_key }) }
}

/** Where nothing is said: chat, or the only mode that the dialect has. */
function modeOf({ dialect, model_dir }: Backend, asked: Subject['mode'] | undefined) {
  const modes: readonly Subject['mode'][] = dialects[dialect].modes
  const mode = asked ?? (modes[0] as Subject['mode'])
  if (!modes.includes(mode))
    throw new PaddockError('invalid_config', `${dialect} is not asked in mode ${mode}`)
  if (mode === 'tokens' && model_dir === undefined)
    throw new PaddockError(
      'invalid_config',
      'mode tokens needs the model’s files: give --model-dir',
    )
  return mode
}

/** As the settings complete a backend that says only where it is. */
const UNCONFIGURED: Omit<Backend, 'urls'> = {
  dialect: 'vllm',
  model: '',
  first_prompt: 'template',
  stream: false,
  weight_info: false,
  cache_salt: true,
  logprobs_mode: 'unknown',
}

function checkedUrl(text: string): string {
  if (URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)) return text
  throw new PaddockError('invalid_config', `expected an http or https URL, got ${text}`)
}

async function subjectOf(
  backend: Backend & Pick<Subject, 'mode'>,
  { backend: name, episodeTokens, batchEpisodes }: DoctorOptions,
  asker: Asker,
): Promise<Subject> {
  return {
    backend: name,
    dialect: backend.dialect,
    mode: backend.mode,
    stream: backend.stream,
    firstPrompt: backend.first_prompt,
    model: backend.model || ((await servedModel(asker)) ?? 'unknown'),
    toolFormat: backend.tool_format ?? 'hermes',
    thinking: backend.thinking ?? 'none',
    logprobsMode: backend.logprobs_mode,
    modelDir: backend.model_dir !== undefined,
    weightInfo: backend.weight_info,
    episodeTokens,
    batchEpisodes,
  }
}
