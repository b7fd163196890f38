// Verbs: what asks a running server or looks into its ledger.
import type { Command } from 'commander'
import type { EvalOptions } from '../commands/eval.ts'
import { ALWAYS_JSON, example, numbers, numberUpTo, temperature } from './flags.ts'

export function addRunning(program: Command): void {
  addEval(program)
  addExplain(program)
  addLedger(program)
}

function addEval(program: Command): void {
  program
    .command('eval')
    .description(
      'Play tasks on a running server and say how often they are solved: pass@k, pass^k.',
    )
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
    .option('--tasks', 'a line each task too')
    .option('--json [file]', 'JSON instead of the table, or beside it in a file')
    .addHelpText('after', example('paddock eval office --episodes 8 --k 1,4,8'))
    .action(async (names: string[], flags: EvalOptions) => {
      const { evaluate } = await import('../commands/eval.ts')
      const token = flags.token ?? process.env.PADDOCK_TOKEN
      process.exitCode = await evaluate(names, { ...flags, token })
    })
}

function addExplain(program: Command): void {
  program
    .command('explain')
    .description('Say why each advantage of a finished group is what it is.')
    .argument('<group|file>', 'the id of a group, or a .json file with what a lease answered')
    .option('--url <url>', 'the server', 'http://127.0.0.1:8420')
    .option('--token <token>', 'its bearer token; default: PADDOCK_TOKEN')
    .option('--json', 'one JSON object a group')
    .addHelpText('after', example('paddock explain step-41.g0'))
    .action(async (what: string, flags: { url: string; token?: string; json?: true }) => {
      const { explain } = await import('../commands/explain.ts')
      await explain(what, { ...flags, token: flags.token ?? process.env.PADDOCK_TOKEN })
    })
}

function addLedger(program: Command): void {
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
      const { listLedger } = await import('../commands/ledger.ts')
      await listLedger(folder)
    })

  ledger
    .command('show')
    .description('A batch with how its groups stand, a group or an episode, as JSON.')
    .argument('<folder>', 'ledger.path of the settings')
    .argument('<id>', 'its id')
    .option('--json', ALWAYS_JSON)
    .addHelpText('after', example('paddock ledger show runs/ledger step-41.g0.e3'))
    .action(async (folder: string, id: string) => {
      const { showLedger } = await import('../commands/ledger.ts')
      await showLedger(folder, id)
    })

  ledger
    .command('verify')
    .description('Check every record; exit code 1 where one is not what was written.')
    .argument('<folder>', 'ledger.path of the settings')
    .option('--json', ALWAYS_JSON)
    .addHelpText('after', example('paddock ledger verify runs/ledger'))
    .action(async (folder: string) => {
      const { verifyLedger } = await import('../commands/ledger.ts')
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
      const { compactLedger } = await import('../commands/ledger.ts')
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
      const { exportLedger } = await import('../commands/ledger.ts')
      await exportLedger(folder, { out, batch: batch ?? null })
    })
}
