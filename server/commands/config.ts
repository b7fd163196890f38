// `paddock config`: the settings that the server would use, secrets masked.
import { type Config, printConfig } from '../config.ts'

export function runConfig(config: Config): void {
  process.stdout.write(printConfig(config))
}
