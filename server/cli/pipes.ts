// Verbs: what reads JSON Lines and answers each: the pure cores without a server.
import type { Command } from 'commander'
import { LENIENCIES, THINKING_MODES, TOOL_FORMATS } from '../../protocol/parse-codes.ts'
import { ALWAYS_JSON, example } from './flags.ts'

export function addPipes(program: Command): void {
  addParse(program)
  addAdvantages(program)
  addRender(program)
}

function addParse(program: Command): void {
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
      const { parse } = await import('../commands/parse.ts')
      await parse()
    })
}

function addAdvantages(program: Command): void {
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
      const { advantages } = await import('../commands/advantages.ts')
      await advantages()
    })
}

function addRender(program: Command): void {
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
      const { render } = await import('../commands/render.ts')
      process.exitCode = await render(flags.modelDir ?? null)
    })
}
