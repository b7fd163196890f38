// `paddock config`: the settings that the server would use, secrets masked.
import { parse } from 'yaml'
import { type Config, printConfig } from '../config.ts'

/** YAML, or the same as JSON. */
export function runConfig(config: Config, json: boolean): void {
  const yaml = printConfig(config)
  process.stdout.write(json ? `${JSON.stringify(parse(yaml))}\n` : yaml)
}
