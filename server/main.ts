#!/usr/bin/env node
// The command line. Start reading here: cli/ has the verbs with their flags, serve.ts puts the server together.
import { Command } from 'commander'
import { addAuthors } from './cli/authors.ts'
import { tellFailure, usageOutput, wantsJson } from './cli/failures.ts'
import { addMeasuring } from './cli/measuring.ts'
import { addPipes } from './cli/pipes.ts'
import { addRunning } from './cli/running.ts'
import { addServing } from './cli/serving.ts'
import { VERSION } from './version.ts'

// Whoever reads may have seen enough: `paddock ledger ls … | head`.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0)
  throw error
})

const json = wantsJson(process.argv)

const program = new Command('paddock')
  .description('A rollout and reward server for reinforcement learning on tool-using agents.')
  .version(VERSION)
  .option('--verbose', 'show where an error comes from')
  .configureOutput(usageOutput(json))
  .addHelpText(
    'after',
    '\nSettings come from paddock.yaml, then PADDOCK_* (PADDOCK_SERVER__PORT=9000), then flags.',
  )

// Each verb imports what it needs when it runs: `paddock parse` must not wait for a server's libraries.
addServing(program)
addPipes(program)
addAuthors(program)
addRunning(program)
addMeasuring(program)

try {
  await program.parseAsync()
} catch (error) {
  const verbose = program.opts<{ verbose?: boolean }>().verbose === true
  tellFailure(error, { json, verbose })
  // One that the verb has chosen before it failed.
  process.exit(process.exitCode || 1)
}
