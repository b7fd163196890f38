// The simulator's command line: its flags, and the options they come to.
import { readFile } from 'node:fs/promises'
import { Command, InvalidArgumentError, Option } from 'commander'
import { FAULTS, type FaultKind, type FaultRule } from './faults.ts'
import { type Latency, parseLatency } from './latency.ts'
import { DEFAULTS, type SimulatorOptions } from './options.ts'
import type { Mix } from './policy/plan.ts'
import { parseScripts, type Script } from './policy/script.ts'

/** The command with its flags; it parses nothing by itself. */
export function createProgram(): Command {
  const { style } = DEFAULTS
  const program = new Command('simulator')
    .description('A policy endpoint that speaks vLLM and SGLang and plays scripts.')
    .option('--host <host>', 'address to listen on', DEFAULTS.host)
    .option('--port <number>', 'port to listen on; 0 takes a free one', integer, DEFAULTS.port)
    .option('--model <name>', 'name of the served model', DEFAULTS.model)
    .option('--model-dir <folder>', "folder with tokenizer and template (default: npm's Qwen3)")
    .option('--max-model-len <n>', 'prompt and completion tokens', integer, DEFAULTS.maxModelLen)
    .option('--version <version>', 'weight version', DEFAULTS.weightVersion)
    .option('--seed <number>', 'seed of the simulator itself', integer, DEFAULTS.seed)
    .option('--fallback-seed <number>', 'of requests without one (default: a random one)', integer)
    .option('--scripts <file>', 'JSON Lines: {match, transcripts: {name: {steps}}}')
    .option('--marker <regex>', "finds the task's id in the prompt (first group)")
    .option('--thinking', 'write a <think> block in each turn', style.thinking)
    .option('--prepared', 'answer repeated requests from prepared bytes', DEFAULTS.prepared)
    .option('--record', 'keep the sampled ids for /simulator/stats', DEFAULTS.record)
  program.addOption(
    new Option('--format <form>', 'tag form of calls')
      .choices(['hermes', 'qwen3-coder'])
      .default(style.format),
  )
  program.addOption(
    new Option('--logprobs-mode <mode>', 'of the untempered distribution, or the sampled one')
      .choices(['raw', 'processed'])
      .default(DEFAULTS.logprobsMode),
  )
  program.addOption(
    new Option('--mix <weights>', 'of transcripts by name, and of malformed, truncated, prose')
      .argParser(mix)
      .default(style.mix, 'correct=1'),
  )
  program.addOption(
    new Option('--latency <ms>', '0, fixed:MS or lognormal:MEDIAN_MS,SIGMA')
      .argParser(latency)
      .default(DEFAULTS.latency, '0'),
  )
  return addFaultFlags(program)
}

function addFaultFlags(program: Command): Command {
  const kinds = Object.entries(FAULTS).map(([kind, what]) => `  ${kind.padEnd(12)}${what}`)
  return program
    .addHelpText('after', `\nFaults:\n${kinds.join('\n')}`)
    .option('--fault <kind=rate>', 'repeatable; the kinds are below', fault, [])
    .option('--fault-match <text>', 'faults hit only conversations that contain this')
    .option('--fault-turns <numbers>', 'faults hit only these turns, as 1,2', integers)
    .option('--fault-after <number>', 'tokens before an abort, bytes before a cut', integer)
    .option('--fault-times <number>', 'faults hit the first so many equal requests', integer)
}

/** The flags' values as commander gives them. */
interface Flags extends Omit<SimulatorOptions, 'scripts' | 'marker' | 'style' | 'faults'> {
  version: string
  scripts?: string
  marker?: string
  format: SimulatorOptions['style']['format']
  thinking: boolean
  mix: Mix
  fault: FaultRule[]
  faultMatch?: string
  faultTurns?: number[]
  faultAfter?: number
  faultTimes?: number
}

/** Reads the arguments behind the program's name; what does not parse, commander reports. Reads the scripts' file. */
export async function readOptions(
  program: Command,
  argv: readonly string[],
): Promise<SimulatorOptions> {
  const flags = program.parse(argv, { from: 'user' }).opts<Flags>()
  const { host, port, model, maxModelLen, seed, logprobsMode, latency, prepared, record } = flags
  const { format, thinking, mix } = flags
  const target = {
    ...(flags.faultMatch !== undefined && { match: flags.faultMatch }),
    ...(flags.faultTurns && { turns: flags.faultTurns }),
    ...(flags.faultAfter !== undefined && { after: flags.faultAfter }),
    ...(flags.faultTimes !== undefined && { times: flags.faultTimes }),
  }
  const scripts = flags.scripts ? parseScripts(await readFile(flags.scripts, 'utf8')) : []
  if (program.getOptionValueSource('mix') === 'cli') refuseUnknownNames(mix, scripts)
  return {
    ...{ host, port, model, maxModelLen, seed, logprobsMode, latency, prepared, record },
    modelDir: flags.modelDir ?? null,
    weightVersion: flags.version,
    fallbackSeed: flags.fallbackSeed ?? null,
    scripts,
    marker: flags.marker === undefined ? null : new RegExp(flags.marker),
    style: { format, thinking, mix },
    faults: flags.fault.map((rule) => ({ ...rule, ...target })),
  }
}

/** Without scripts there is nothing to compare with. */
function refuseUnknownNames(mix: Mix, scripts: readonly Script[]): void {
  if (scripts.length === 0) return
  const played = new Set(scripts.flatMap(({ transcripts }) => Object.keys(transcripts)))
  const known = [...played, 'malformed', 'truncated', 'prose']
  const unknown = Object.keys(mix).filter((name) => !known.includes(name))
  if (unknown.length > 0)
    throw new Error(`--mix: expected ${known.join(', ')}; got ${unknown.join(', ')}`)
}

function integer(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError('expected a whole number from 0.')
  return Number(text)
}

function integers(text: string): number[] {
  return text.split(',').map(integer)
}

function weight(text: string): [name: string, value: number] {
  const [, name, value] = /^([^=]+)=(\d+(?:\.\d+)?)$/.exec(text) ?? []
  if (name === undefined) throw new InvalidArgumentError(`"${text}": expected name=weight.`)
  return [name, Number(value)]
}

function mix(text: string): Mix {
  return Object.fromEntries(text.split(',').map(weight))
}

function latency(text: string): Latency {
  try {
    return parseLatency(text)
  } catch (error) {
    throw new InvalidArgumentError(error instanceof Error ? error.message : String(error))
  }
}

/** A kind alone hits every request. */
function fault(text: string, before: FaultRule[]): FaultRule[] {
  const [kind, rate] = text.includes('=') ? weight(text) : [text, 1]
  if (!isFaultKind(kind) || rate > 1)
    throw new InvalidArgumentError('expected KIND=RATE with a rate up to 1.')
  return [...before, { kind, rate }]
}

function isFaultKind(text: string): text is FaultKind {
  return Object.hasOwn(FAULTS, text)
}
