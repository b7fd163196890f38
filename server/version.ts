// The version of the package, as its package.json says it.
import { readFileSync } from 'node:fs'
import { fromSource } from './from-source.ts'

/** Built files lie one folder deeper (dist/) than their sources. */
const packageFile = new URL(fromSource ? '../package.json' : '../../package.json', import.meta.url)

export const VERSION = (JSON.parse(readFileSync(packageFile, 'utf8')) as { version: string })
  .version
