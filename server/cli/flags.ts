// Flags that several verbs share, and how their text is read.
import { type Command, InvalidArgumentError } from 'commander'
import type { JsonObject } from '../../protocol/json.ts'

export interface ConfigFlags {
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

export async function configOf(file: string | undefined, flags: ConfigFlags) {
  const { loadConfig } = await import('../config.ts')
  const { mergeSettings, parseAssignment } = await import('../config-layers.ts')
  const named = Object.entries(SETTINGS).flatMap(([flag, path]) => {
    const text = flags[flag as keyof typeof SETTINGS]
    return text === undefined ? [] : [`${path}=${text}`]
  })
  const settings = [...named, ...(flags.set ?? [])]
    .map(parseAssignment)
    .reduce<JsonObject>((base, over) => mergeSettings(base, over) as JsonObject, {})
  return loadConfig({ file: file ?? flags.config, env: process.env, flags: settings })
}

export interface TaskFlags {
  config?: string
  environment: string
}

export async function taskOf(name: string, { config, environment }: TaskFlags) {
  const { namedTask } = await import('../commands/named-task.ts')
  return namedTask(name, environment, await configOf(config, {}))
}

export function withConfigFlags(command: Command): Command {
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
export const ALWAYS_JSON = 'JSON, as it answers in any case'

export function example(text: string): string {
  return `\nExample:\n  ${text}\n`
}

export function numberUpTo(limit: number): (text: string) => number {
  return (text) => {
    if (/^\d+$/.test(text) && Number(text) <= limit) return Number(text)
    throw new InvalidArgumentError(`Expected a whole number from 0 to ${limit}.`)
  }
}

export function temperature(text: string): number {
  if (/^\d+(\.\d+)?$/.test(text) && Number(text) <= 5) return Number(text)
  throw new InvalidArgumentError('Expected a number from 0 to 5.')
}

export function names(text: string): string[] {
  return text.split(',').filter((name) => name !== '')
}

export function numbers(text: string): number[] {
  if (/^\d+(,\d+)*$/.test(text)) return text.split(',').map(Number)
  throw new InvalidArgumentError('Expected numbers with commas between, as 1,8.')
}
