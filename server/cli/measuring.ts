// Verbs: what examines: the doctor, the torture and the benches.
import { type Command, Option } from 'commander'
import type { DoctorFlags } from '../commands/doctor.ts'
import type { MeasureOptions } from '../commands/measure.ts'
import { configOf, example, names, numberUpTo, temperature } from './flags.ts'

export function addMeasuring(program: Command): void {
  addDoctor(program)
  addBench(program)
  addTorture(program)
}

function addDoctor(program: Command): void {
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
      const { runDoctor } = await import('../commands/doctor.ts')
      process.exitCode = await runDoctor(() => configOf(file, {}), flags)
    })
}

/** Benches of one part each, in this process: what they tell, how long they measure by default. */
const IN_PROCESS = [
  {
    name: 'advantages',
    what: 'Groups, samples and steps a second of every estimator, on one core.',
    ms: 200,
    run: async (options: MeasureOptions) =>
      (await import('../commands/bench-advantages.ts')).benchAdvantages(options),
  },
  {
    name: 'parser',
    what: 'MB/s of the tool-call parser, whole and in chunks, and ids/s of the tokenizer.',
    ms: 200,
    run: async (options: MeasureOptions) =>
      (await import('../commands/bench-parser.ts')).benchParser(options),
  },
  {
    name: 'envs',
    what: 'Resets and steps a second of the office, in process and through the pool.',
    ms: 500,
    run: async (options: MeasureOptions) =>
      (await import('../commands/bench-envs.ts')).benchEnvs(options),
  },
]

function addBench(program: Command): void {
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
        const { benchTurns } = await import('../commands/bench-turns.ts')
        const given = Object.entries(flags).flatMap(([name, value]) =>
          value === true ? [`--${name}`] : [`--${name}`, String(value)],
        )
        await benchTurns(given)
      },
    )

  for (const { name, what, ms, run } of IN_PROCESS)
    bench
      .command(name)
      .description(what)
      .option('--rounds <number>', 'how often its ways take turns', numberUpTo(1000), 5)
      .option('--ms <number>', 'least length of each measurement', numberUpTo(60_000), ms)
      .option('--json', 'one JSON object instead of a table', false)
      .addHelpText('after', example(`paddock bench ${name} --rounds 3`))
      .action(({ rounds, ms, json }: { rounds: number; ms: number; json: boolean }) =>
        run({ rounds: Math.max(1, rounds), milliseconds: ms, json }),
      )
}

function addTorture(program: Command): void {
  program
    .command('torture')
    .description(
      'Kill a server of its own at random under load; exit code 1 where anything is lost.',
    )
    .option('--kills <number>', 'how often it is killed', numberUpTo(100_000), 100)
    .option(
      '--seconds <number>',
      'all is over after so long; default: when the kills are done',
      numberUpTo(1e6),
    )
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
        seconds?: number
        minKills: number
        seed?: number
        fault?: 'eio' | 'full'
        json: boolean
      }) => {
        const { runTorture } = await import('../commands/torture.ts')
        const seed = flags.seed ?? Math.floor(Math.random() * 2 ** 31)
        const { seconds = 1e6, fault = null } = flags
        process.exitCode = await runTorture({ ...flags, seconds, seed, fault })
      },
    )
}
