// Verbs: what runs until it is told to end: the server, the demo and the simulator.
import type { Command } from 'commander'
import {
  ALWAYS_JSON,
  type ConfigFlags,
  configOf,
  example,
  numberUpTo,
  withConfigFlags,
} from './flags.ts'

export function addServing(program: Command): void {
  addServe(program)
  addConfig(program)
  addDemo(program)
  addSimulate(program)
}

function addServe(program: Command): void {
  withConfigFlags(program.command('serve'))
    .description('Serve HTTP and WebSocket until SIGTERM.')
    .option('--json', 'one line on standard output says where it listens', false)
    .addHelpText('after', example('paddock serve paddock.yaml --port 9000'))
    .action(
      async (file: string | undefined, { json, ...flags }: ConfigFlags & { json: boolean }) => {
        const config = await configOf(file, flags)
        const { runServe } = await import('../commands/serve.ts')
        await runServe(config, json)
      },
    )
}

function addConfig(program: Command): void {
  withConfigFlags(program.command('config'))
    .description('Print the settings that serve would use, secrets masked.')
    .option('--json', 'JSON instead of YAML', false)
    .addHelpText('after', example('PADDOCK_SERVER__PORT=9000 paddock config'))
    .action(
      async (file: string | undefined, { json, ...flags }: ConfigFlags & { json: boolean }) => {
        const config = await configOf(file, flags)
        const { runConfig } = await import('../commands/config.ts')
        runConfig(config, json)
      },
    )
}

function addDemo(program: Command): void {
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
        const { loadConfig } = await import('../config.ts')
        const log = { level: flags.logLevel }
        const { createLog } = await import('../log.ts')
        const { demo } = await import('../commands/demo.ts')
        const { keep, port, duration = null, json } = flags
        const options = { keep, port, duration, json }
        await demo(options, createLog(loadConfig({ file: null, flags: { log } })))
      },
    )
}

function addSimulate(program: Command): void {
  program
    .command('simulate')
    .description('Run the policy simulator on the transcripts of the configured packs.')
    .option('-c, --config <file>', 'settings; default: paddock.yaml of the working folder')
    .option('--simulator-help', 'list the flags of the simulator, which takes every other flag')
    .allowUnknownOption()
    .allowExcessArguments()
    .option('--json', ALWAYS_JSON)
    .addHelpText('after', example('paddock simulate --port 8000 --fault 500=0.1'))
    .action(
      async (
        flags: { config?: string; simulatorHelp?: boolean; json?: true },
        command: Command,
      ) => {
        const { simulate, simulatorHelp } = await import('../commands/simulate.ts')
        if (flags.simulatorHelp) return simulatorHelp()
        await simulate(await configOf(flags.config, {}), command.args, flags.json)
      },
    )
}
