#!/usr/bin/env node
// The command line: every verb with its flags. Start reading here; serve.ts puts the server together.
import { Command, InvalidArgumentError, Option } from 'commander'
import { PaddockError } from '../protocol/errors.ts'
import type { JsonObject } from '../protocol/json.ts'
import { LENIENCIES, THINKING_MODES, TOOL_FORMATS } from '../protocol/parse-codes.ts'
import type { DoctorFlags } from './commands/doctor.ts'
import type { EvalOptions } from './commands/eval.ts'
import type { ReplayFlags } from './commands/run-replay.ts'
import { VERSION } from './version.ts'

// Each verb is imported when it runs: `paddock parse` must not wait for a server's libraries.

interface ConfigFlags {
  config?: string
  host?: string
  port?: string
  threads?: string
  maxEpisodes?: string
  logLevel?: string
  strict?: boolean
  set?: string[]
}

/** Flags that stand for one setting each. They are checked as every other origin of settings is. */
const SETTINGS = {
  host: 'server.host',
  port: 'server.port',
  threads: 'runtime.threads',
  maxEpisodes: 'runtime.max_episodes',
  logLevel: 'log.level',
  strict: 'strict_packs',
} as const

async function configOf(file: string | undefined, flags: ConfigFlags) {
  const { loadConfig } = await import('./config.ts')
  const { mergeSettings, parseAssignment } = await import('./config-layers.ts')
  const named = Object.entries(SETTINGS).flatMap(([flag, path]) => {
    const text = flags[flag as keyof typeof SETTINGS]
    return text === undefined ? [] : [`${path}=${text}`]
  })
  const settings = [...named, ...(flags.set ?? [])]
    .map(parseAssignment)
    .reduce<JsonObject>((base, over) => mergeSettings(base, over) as JsonObject, {})
  return loadConfig({ file: file ?? flags.config, env: process.env, flags: settings })
}

interface TaskFlags {
  config?: string
  environment: string
}

async function taskOf(name: string, { config, environment }: TaskFlags) {
  const { namedTask } = await import('./commands/named-task.ts')
  return namedTask(name, environment, await configOf(config, {}))
}

function withConfigFlags(command: Command): Command {
  return command
    .argument('[file]', 'settings; default: paddock.yaml of the working folder')
    .option('-c, --config <file>', 'the same')
    .option('--host <address>', 'address to listen on (127.0.0.1)')
    .option('--port <number>', 'port to listen on; 0 takes a free one (8420)')
    .option('--strict', 'do not start where a task of a pack fails the gate')
    .option('--threads <number>', 'worker threads (one less than there are cores)')
    .option('--max-episodes <number>', 'episodes that are played at once (64)')
    .option('--log-level <level>', 'fatal, error, warn, info, debug, trace or silent (info)')
    .option('--set <path=value...>', 'any other setting, as --set runtime.heap_mb=1024')
}

/** Of verbs whose answer has one form: a script may ask all of them alike. */
const ALWAYS_JSON = 'JSON, as it answers in any case'

function example(text: string): string {
  return `\nExample:\n  ${text}\n`
}

function numberUpTo(limit: number): (text: string) => number {
  return (text) => {
    if (/^\d+$/.test(text) && Number(text) <= limit) return Number(text)
    throw new InvalidArgumentError(`Expected a whole number from 0 to ${limit}.`)
  }
}

function temperature(text: string): number {
  if (/^\d+(\.\d+)?$/.test(text) && Number(text) <= 5) return Number(text)
  throw new InvalidArgumentError('Expected a number from 0 to 5.')
}

function names(text: string): string[] {
  return text.split(',').filter((name) => name !== '')
}

function numbers(text: string): number[] {
  if (/^\d+(,\d+)*$/.test(text)) return text.split(',').map(Number)
  throw new InvalidArgumentError('Expected numbers with commas between, as 1,8.')
}

const program = new Command('paddock')
  .description('A rollout and reward server for reinforcement learning on tool-using agents.')
  .version(VERSION)
  .option('--verbose', 'show where an error comes from')
  .addHelpText(
    'after',
    '\nSettings come from paddock.yaml, then PADDOCK_* (PADDOCK_SERVER__PORT=9000), then flags.',
  )

withConfigFlags(program.command('serve'))
  .description('Serve HTTP and WebSocket until SIGTERM.')
  .option('--json', 'one line on standard output says where it listens', false)
  .addHelpText('after', example('paddock serve paddock.yaml --port 9000'))
  .action(async (file: string | undefined, { json, ...flags }: ConfigFlags & { json: boolean }) => {
    const config = await configOf(file, flags)
    const { runServe } = await import('./commands/serve.ts')
    await runServe(config, json)
  })

withConfigFlags(program.command('config'))
  .description('Print the settings that serve would use, secrets masked.')
  .option('--json', 'JSON instead of YAML', false)
  .addHelpText('after', example('PADDOCK_SERVER__PORT=9000 paddock config'))
  .action(async (file: string | undefined, { json, ...flags }: ConfigFlags & { json: boolean }) => {
    const config = await configOf(file, flags)
    const { runConfig } = await import('./commands/config.ts')
    runConfig(config, json)
  })

program
  .command('parse')
  .description('Parse tool calls: JSON Lines {id, format, tools, text} in, {id, calls, …} out.')
  .option('--json', ALWAYS_JSON)
  .addHelpText(
    'after',
    `
A line may also say "thinking" (${THINKING_MODES.join(', ')}), "finish_reason" (stop, length), "chunks" (the text in
pieces, in its stead) and "leniencies" (${LENIENCIES.join(', ')}); formats are ${TOOL_FORMATS.join(', ')}.
${example(`echo '{"id":"1","format":"hermes","tools":[],"text":"hello"}' | paddock parse`)}`,
  )
  .action(async () => {
    const { parse } = await import('./commands/parse.ts')
    await parse()
  })

program
  .command('advantages')
  .description(
    'Compute advantages: JSON Lines {name, estimator, settings, input} in, {name, …} out.',
  )
  .option('--json', ALWAYS_JSON)
  .addHelpText(
    'after',
    example(
      `echo '{"name":"a","estimator":"grpo","settings":{},"input":{"rewards":[1,0],"groups":["g","g"]}}' | paddock advantages`,
    ),
  )
  .action(async () => {
    const { advantages } = await import('./commands/advantages.ts')
    await advantages()
  })

program
  .command('validate')
  .description(
    'Put tasks through the gate: JSON Lines {task, ok, problems} out, exit code 1 if one fails.',
  )
  .argument('<path...>', 'a task file, or the folder of a pack')
  .option('-c, --config <file>', 'settings, for their environments; default: paddock.yaml')
  .option('--environment <name>', 'whose tasks single files are', 'office')
  .option('--json', ALWAYS_JSON)
  .addHelpText('after', example('paddock validate tasks/one.json packs/mine'))
  .action(async (paths: string[], flags: { config?: string; environment: string }) => {
    const { environments } = await configOf(flags.config, {})
    const { validate } = await import('./commands/validate.ts')
    process.exitCode = await validate(paths, { environments, environment: flags.environment })
  })

program
  .command('replay')
  .description('Play a transcript, or a stored episode, through its task: one JSON object out.')
  .argument('[task]', "a task file, or the id of a task in the packs; default: the episode's own")
  .option('--transcript <name|file>', 'a transcript of the task, or a JSON file {steps}')
  .option('--episode <id|file>', 'a stored episode: compared turn by turn with what was stored')
  .option('--ledger <folder>', 'the ledger that has it; default: ledger.path of the settings')
  .option('--server <url>', 'the running server that has it')
  .option('--to-turn <number>', 'turns of the episode to play at most', numberUpTo(100_000))
  .option('-c, --config <file>', 'settings, for their packs; default: paddock.yaml')
  .option('--environment <name>', 'whose task a file is', 'office')
  .option('--seed <number>', "default: the task's own", numberUpTo(Number.MAX_SAFE_INTEGER))
  .option('--json', ALWAYS_JSON)
  .addHelpText(
    'after',
    example(
      'paddock replay dev-04-interview-slot --transcript correct\n  paddock replay --episode episode.json',
    ),
  )
  .action(async (name: string | undefined, flags: ReplayFlags & { config?: string }) => {
    const { runReplay } = await import('./commands/run-replay.ts')
    process.exitCode = await runReplay(name, flags, await configOf(flags.config, {}))
  })

program
  .command('play')
  .description('Play a task yourself, in the place of the policy, and see how it is graded.')
  .argument('<task>', 'a task file, or the id of a task in the packs')
  .option('-c, --config <file>', 'settings, for their packs; default: paddock.yaml')
  .option('--environment <name>', 'whose task a file is', 'office')
  .option('--json', 'JSON Lines instead of text', false)
  .addHelpText('after', example('paddock play dev-04-interview-slot'))
  .action(async (name: string, flags: TaskFlags & { json: boolean }) => {
    const { playTask } = await import('./commands/play.ts')
    await playTask(await taskOf(name, flags), undefined, flags.json)
  })

program
  .command('new')
  .description('Start something new from a scaffold.')
  .command('task')
  .description('Write a task of the office that passes the gate, to be changed into another.')
  .argument('<id>', 'a to z, 0 to 9 and hyphens')
  .option('--dir <folder>', 'where to write <id>.json', '.')
  .option('--json', 'JSON that says where it is', false)
  .addHelpText('after', example('paddock new task refund-duplicates --dir packs/mine/tasks'))
  .action(async (id: string, flags: { dir: string; json: boolean }) => {
    const { newTask } = await import('./commands/new-task.ts')
    await newTask(id, flags)
  })

program
  .command('render')
  .description(
    "Render conversations with a model's own chat template: JSON Lines in, {id, text, ids} out.",
  )
  .option('--model-dir <folder>', 'model folder of lines that name none')
  .option('--json', ALWAYS_JSON)
  .addHelpText(
    'after',
    example(
      `echo '{"id":"1","messages":[{"role":"user","content":"hi"}]}' | paddock render --model-dir m`,
    ),
  )
  .action(async (flags: { modelDir?: string }) => {
    const { render } = await import('./commands/render.ts')
    process.exitCode = await render(flags.modelDir ?? null)
  })

program
  .command('simulate')
  .description('Run the policy simulator on the transcripts of the configured packs.')
  .option('-c, --config <file>', 'settings; default: paddock.yaml of the working folder')
  .option('--simulator-help', 'list the flags of the simulator, which takes every other flag')
  .allowUnknownOption()
  .allowExcessArguments()
  .option('--json', ALWAYS_JSON)
  .addHelpText('after', example('paddock simulate --port 8000 --fault 500=0.1'))
  .action(async (flags: { config?: string; simulatorHelp?: boolean }, command: Command) => {
    const { simulate, simulatorHelp } = await import('./commands/simulate.ts')
    if (flags.simulatorHelp) return simulatorHelp()
    await simulate(await configOf(flags.config, {}), command.args)
  })

program
  .command('demo')
  .description('Start a server and a simulator, run two batches, show what came out.')
  .option('--keep', 'leave both running, and print one JSON line that says where', false)
  .option('--port <number>', 'port of the server; 0 takes a free one', numberUpTo(65_535), 0)
  .option('--duration <seconds>', 'with --keep: end by itself after so long', numberUpTo(1e6))
  .option('--log-level <level>', 'what goes to standard error', 'warn')
  .option('--json', 'one JSON object instead of the table', false)
  .addHelpText('after', example('paddock demo --keep --port 8420'))
  .action(
    async (flags: {
      keep: boolean
      port: number
      duration?: number
      logLevel: string
      json: boolean
    }) => {
      const { loadConfig } = await import('./config.ts')
      const log = { level: flags.logLevel }
      const { createLog } = await import('./log.ts')
      const { demo } = await import('./commands/demo.ts')
      const { keep, port, duration = null, json } = flags
      const options = { keep, port, duration, json }
      await demo(options, createLog(loadConfig({ file: null, flags: { log } })))
    },
  )

program
  .command('eval')
  .description('Play tasks on a running server and say how often they are solved: pass@k, pass^k.')
  .argument('<name...>', 'tasks, or packs for all of theirs')
  .option('--url <url>', 'the server', 'http://127.0.0.1:8420')
  .option('--token <token>', 'its bearer token; default: PADDOCK_TOKEN')
  .option('--episodes <number>', 'episodes of each task', numberUpTo(1024), 8)
  .option('--backend <name>', 'the policy', 'main')
  .option('--temperature <number>', 'of its sampling', temperature, 1)
  .option('--max-tokens <number>', 'of one answer', numberUpTo(1_000_000), 1024)
  .option('--k <numbers>', 'as 1,4,8; default: 1 and the number of episodes', numbers)
  .option('--threshold <reward>', 'a trial passes from here on (0.75)', Number)
  .option('--seed <number>', 'of the sampling and of the intervals', numberUpTo(2 ** 31), 0)
  .option('--json [file]', 'JSON instead of the table, or beside it in a file')
  .addHelpText('after', example('paddock eval office arithmetic/sum-0 --episodes 8 --k 1,4,8'))
  .action(async (names: string[], flags: EvalOptions) => {
    const { evaluate } = await import('./commands/eval.ts')
    const token = flags.token ?? process.env.PADDOCK_TOKEN
    process.exitCode = await evaluate(names, { ...flags, token })
  })

program
  .command('doctor')
  .description(
    'Examine a backend, a pack and what a trainer reads, before GPU time is spent; exit code 1 with findings.',
  )
  .argument('[file]', 'settings; default: paddock.yaml of the working folder')
  .option('--backend <name>', 'which of the backends', 'main')
  .option('--url <url>', 'an engine in its place, or without any settings')
  .addOption(
    new Option('--dialect <name>', "default: the backend's, else vllm").choices([
      'vllm',
      'vllm-generate',
      'sglang',
    ]),
  )
  .option('--model <name>', "default: the backend's, else the one that is served")
  .option('--model-dir <folder>', "its tokenizer and template; default: the backend's")
  .addOption(
    new Option('--mode <mode>', "how batches will ask; default: the dialect's first").choices([
      'chat',
      'tokens',
    ]),
  )
  .option('--pack <name>', 'whose tasks are played', 'office')
  .option('--reads <fields>', 'reward fields that the trainer reads, as score,safety', names, [])
  .option('--temperature <number>', 'of the episodes', temperature, 1)
  .option('--max-tokens <number>', 'of one answer', numberUpTo(1_000_000), 1024)
  .option('--episode-tokens <number>', 'sampled in one episode', numberUpTo(10_000_000), 16_384)
  .option('--episodes <number>', 'that are played for the estimate', numberUpTo(1000), 10)
  .option('--batch <episodes>', 'of the batch whose cost is estimated', numberUpTo(1e7), 256)
  .option('--timeout <seconds>', 'of one completion', numberUpTo(3600), 60)
  .option('--json', 'one JSON object instead of the lines')
  .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : 2))
  .addHelpText(
    'after',
    example('paddock doctor paddock.yaml --backend main --pack office --reads score'),
  )
  .action(async (file: string | undefined, flags: DoctorFlags) => {
    const { runDoctor } = await import('./commands/doctor.ts')
    process.exitCode = await runDoctor(() => configOf(file, {}), flags)
  })

program
  .command('explain')
  .description('Say why each advantage of a finished group is what it is.')
  .argument('<group|file>', 'the id of a group, or a .json file with what a lease answered')
  .option('--url <url>', 'the server', 'http://127.0.0.1:8420')
  .option('--token <token>', 'its bearer token; default: PADDOCK_TOKEN')
  .option('--json', 'one JSON object a group')
  .addHelpText('after', example('paddock explain step-41.g0'))
  .action(async (what: string, flags: { url: string; token?: string; json?: true }) => {
    const { explain } = await import('./commands/explain.ts')
    await explain(what, { ...flags, token: flags.token ?? process.env.PADDOCK_TOKEN })
  })

const bench = program
  .command('bench')
  .description('Measure one part of the house beside the least that the same work costs.')

bench
  .command('turns', { isDefault: true })
  .description('Turns and episodes a second against a simulator without latency.')
  .option('--seconds <number>', 'length of each measurement (8)', numberUpTo(3600))
  .option('--rounds <number>', 'how often server and bare loop take turns (3)', numberUpTo(1000))
  .option('--concurrency <number>', 'requests in flight in the bare loop (64)', numberUpTo(1024))
  .option('--json', 'one JSON object a pack instead of a table')
  .addHelpText('after', example('paddock bench turns --seconds 4 --rounds 2'))
  .action(
    async (flags: { seconds?: number; rounds?: number; concurrency?: number; json?: true }) => {
      const { benchTurns } = await import('./commands/bench-turns.ts')
      const given = Object.entries(flags).flatMap(([name, value]) =>
        value === true ? [`--${name}`] : [`--${name}`, String(value)],
      )
      await benchTurns(given)
    },
  )

bench
  .command('advantages')
  .description('Groups, samples and steps a second of every estimator, on one core.')
  .option('--rounds <number>', 'how often estimator and bare loop take turns', numberUpTo(1000), 5)
  .option('--ms <number>', 'least length of each measurement', numberUpTo(60_000), 200)
  .option('--json', 'one JSON object instead of a table', false)
  .addHelpText('after', example('paddock bench advantages --rounds 3'))
  .action(async ({ rounds, ms, json }: { rounds: number; ms: number; json: boolean }) => {
    const { benchAdvantages } = await import('./commands/bench-advantages.ts')
    await benchAdvantages({ rounds: Math.max(1, rounds), milliseconds: ms, json })
  })

bench
  .command('parser')
  .description('MB/s of the tool-call parser, whole and in chunks, and ids/s of the tokenizer.')
  .option('--rounds <number>', 'how often the ways of reading take turns', numberUpTo(1000), 5)
  .option('--ms <number>', 'least length of each measurement', numberUpTo(60_000), 200)
  .option('--json', 'one JSON object instead of a table', false)
  .addHelpText('after', example('paddock bench parser --rounds 3'))
  .action(async ({ rounds, ms, json }: { rounds: number; ms: number; json: boolean }) => {
    const { benchParser } = await import('./commands/bench-parser.ts')
    await benchParser({ rounds: Math.max(1, rounds), milliseconds: ms, json })
  })

bench
  .command('envs')
  .description('Resets and steps a second of the office, in process and through the pool.')
  .option('--rounds <number>', 'how often the ways take turns', numberUpTo(1000), 5)
  .option('--ms <number>', 'least length of each measurement', numberUpTo(60_000), 500)
  .option('--json', 'one JSON object instead of a table', false)
  .addHelpText('after', example('paddock bench envs --rounds 3'))
  .action(async ({ rounds, ms, json }: { rounds: number; ms: number; json: boolean }) => {
    const { benchEnvs } = await import('./commands/bench-envs.ts')
    await benchEnvs({ rounds: Math.max(1, rounds), milliseconds: ms, json })
  })

const ledger = program
  .command('ledger')
  .description("Look into a ledger's folder, check it, make it smaller, take its episodes out.")

ledger
  .command('ls')
  .description('One JSON line a batch: its groups by how they stand.')
  .argument('<folder>', 'ledger.path of the settings')
  .option('--json', ALWAYS_JSON)
  .addHelpText('after', example('paddock ledger ls runs/ledger'))
  .action(async (folder: string) => {
    const { listLedger } = await import('./commands/ledger.ts')
    await listLedger(folder)
  })

ledger
  .command('show')
  .description('A batch, a group or an episode as JSON.')
  .argument('<folder>', 'ledger.path of the settings')
  .argument('<id>', 'its id')
  .option('--json', ALWAYS_JSON)
  .addHelpText('after', example('paddock ledger show runs/ledger step-41.g0.e3'))
  .action(async (folder: string, id: string) => {
    const { showLedger } = await import('./commands/ledger.ts')
    await showLedger(folder, id)
  })

ledger
  .command('verify')
  .description('Check every record; exit code 1 where one is not what was written.')
  .argument('<folder>', 'ledger.path of the settings')
  .option('--json', ALWAYS_JSON)
  .addHelpText('after', example('paddock ledger verify runs/ledger'))
  .action(async (folder: string) => {
    const { verifyLedger } = await import('./commands/ledger.ts')
    process.exitCode = (await verifyLedger(folder)) ? 0 : 1
  })

ledger
  .command('compact')
  .description(
    'Write the folder anew without the room of what has gone; the server must be stopped.',
  )
  .argument('<folder>', 'ledger.path of the settings')
  .option('--json', ALWAYS_JSON)
  .addHelpText('after', example('paddock ledger compact runs/ledger'))
  .action(async (folder: string) => {
    const { compactLedger } = await import('./commands/ledger.ts')
    await compactLedger(folder)
  })

ledger
  .command('export')
  .description('Finished episodes as JSON Lines, one row each, as `datasets` loads them.')
  .argument('<folder>', 'ledger.path of the settings')
  .requiredOption('--out <file>', 'where to write them: .parquet, else JSON Lines')
  .option('--batch <id>', 'those of one batch')
  .option('--json', ALWAYS_JSON)
  .addHelpText('after', example('paddock ledger export runs/ledger --out episodes-00000.jsonl'))
  .action(async (folder: string, { out, batch }: { out: string; batch?: string }) => {
    const { exportLedger } = await import('./commands/ledger.ts')
    await exportLedger(folder, { out, batch: batch ?? null })
  })

program
  .command('torture')
  .description('Kill a server of its own at random under load; exit code 1 where anything is lost.')
  .option('--kills <number>', 'how often it is killed (100)', numberUpTo(100_000), 100)
  .option('--seconds <number>', 'all is over after so long', numberUpTo(1e6), 1e6)
  .option('--min-kills <number>', 'exit code 1 where fewer are done by then', numberUpTo(1e5), 0)
  .option('--seed <number>', 'of the moments; default: another each time', numberUpTo(2 ** 31))
  .addOption(
    new Option(
      '--fault <kind>',
      'let it end by a failing fsync (needs libfiu) or a full disk (root)',
    ).choices(['eio', 'full']),
  )
  .option('--json', 'one JSON object instead of the report', false)
  .addHelpText('after', example('paddock torture --kills 40 --seed 7'))
  .action(
    async (flags: {
      kills: number
      seconds: number
      minKills: number
      seed?: number
      fault?: 'eio' | 'full'
      json: boolean
    }) => {
      const { runTorture } = await import('./commands/torture.ts')
      const seed = flags.seed ?? Math.floor(Math.random() * 2 ** 31)
      process.exitCode = await runTorture({ ...flags, seed, fault: flags.fault ?? null })
    },
  )

try {
  await program.parseAsync()
} catch (error) {
  const verbose = program.opts<{ verbose?: boolean }>().verbose === true
  process.stderr.write(`paddock: ${describe(error, verbose)}\n`)
  process.exit(1)
}

function describe(error: unknown, verbose: boolean): string {
  if (!(error instanceof Error)) return String(error)
  if (verbose) return error.stack ?? error.message
  return error instanceof PaddockError
    ? error.message
    : `${error.message} (--verbose shows where it comes from)`
}
