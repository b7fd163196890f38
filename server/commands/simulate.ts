// `paddock simulate`: the policy simulator as a process of its own, playing the transcripts of the configured packs.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { PaddockError } from '../../protocol/errors.ts'
import { oneSentence } from '../cli/failures.ts'
import type { Config } from '../config.ts'
import { fromSource } from '../from-source.ts'
import { withScripts } from '../runtime/packs/scripts.ts'

const program = fileURLToPath(
  new URL(`../../bench/simulator/main.${fromSource ? 'ts' : 'js'}`, import.meta.url),
)

/**
 * `args` go to the simulator as they are; without `--scripts` they are made from the packs. Ends as the child ends; with
 * `json` its refusal is thrown in place of its own words.
 */
export async function simulate(
  config: Config,
  args: readonly string[],
  json = false,
): Promise<void> {
  if (args.includes('--scripts')) await runSimulator(args, json)
  else await withScripts(config, (scripts) => runSimulator(['--scripts', scripts, ...args], json))
}

/** The simulator's own list of flags. */
export function simulatorHelp(): Promise<void> {
  return runSimulator(['--help'])
}

async function runSimulator(args: readonly string[], json = false): Promise<void> {
  const loader = fromSource ? ['--import', 'tsx'] : []
  // The channel closes when this process is gone, and the simulator ends itself then.
  const stdio = ['inherit', 'inherit', json ? 'pipe' : 'inherit', 'ipc'] as const
  const child = spawn(process.execPath, [...loader, program, ...args], { stdio: [...stdio] })
  const said = child.stderr ? text(child.stderr) : ''
  let asked = false
  for (const signal of ['SIGTERM', 'SIGINT'] as const)
    process.on(signal, () => {
      asked = true
      child.kill(signal)
    })
  const [code] = (await once(child, 'exit')) as [number | null]
  if (json && code) throw new PaddockError('invalid_request', oneSentence(await said))
  process.exitCode = code ?? (asked ? 0 : 1)
}
