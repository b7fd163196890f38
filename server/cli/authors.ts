// Verbs: what authors of tasks use: gate, replay, a game played by hand, a scaffold.
import type { Command } from 'commander'
import type { ReplayFlags } from '../commands/run-replay.ts'
import { ALWAYS_JSON, configOf, example, numberUpTo, type TaskFlags, taskOf } from './flags.ts'

export function addAuthors(program: Command): void {
  addValidate(program)
  addReplay(program)
  addPlay(program)
  addNew(program)
}

function addValidate(program: Command): void {
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
      const { validate } = await import('../commands/validate.ts')
      process.exitCode = await validate(paths, { environments, environment: flags.environment })
    })
}

function addReplay(program: Command): void {
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
      const { runReplay } = await import('../commands/run-replay.ts')
      process.exitCode = await runReplay(name, flags, await configOf(flags.config, {}))
    })
}

function addPlay(program: Command): void {
  program
    .command('play')
    .description('Play a task yourself, in the place of the policy, and see how it is graded.')
    .argument('<task>', 'a task file, or the id of a task in the packs')
    .option('-c, --config <file>', 'settings, for their packs; default: paddock.yaml')
    .option('--environment <name>', 'whose task a file is', 'office')
    .option('--json', 'JSON Lines instead of text', false)
    .addHelpText('after', example('paddock play dev-04-interview-slot'))
    .action(async (name: string, flags: TaskFlags & { json: boolean }) => {
      const { playTask } = await import('../commands/play.ts')
      await playTask(await taskOf(name, flags), undefined, flags.json)
    })
}

function addNew(program: Command): void {
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
      const { newTask } = await import('../commands/new-task.ts')
      await newTask(id, flags)
    })
}
