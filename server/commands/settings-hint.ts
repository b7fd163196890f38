// What to type where settings have no environment of a name: the paddock.yaml nearby that has it, or what one needs.
import { readFile } from 'node:fs/promises'
import { dirname, join, relative, resolve } from 'node:path'
import { parse } from 'yaml'
import { isPlainObject } from '../../protocol/json.ts'

/** End of a sentence. `path` is of a task file or pack whose environment it is. */
export async function settingsHint(environment: string, path: string): Promise<string> {
  const file = await settingsWith(environment, resolve(path))
  return file
    ? `its module is named in ${file}: add -c ${file}`
    : 'add -c FILE with a paddock.yaml that names its module under environments'
}

/** The nearest paddock.yaml in the folders above that names the environment's module, as it is typed here. */
async function settingsWith(environment: string, path: string): Promise<string | null> {
  for (let folder = path; ; folder = dirname(folder)) {
    const file = join(folder, 'paddock.yaml')
    if (names(environment, await readFile(file, 'utf8').catch(() => null)))
      return relative('', file)
    if (folder === dirname(folder)) return null
  }
}

function names(environment: string, yaml: string | null): boolean {
  if (yaml === null) return false
  try {
    const settings: unknown = parse(yaml)
    const modules = isPlainObject(settings) ? settings.environments : null
    return isPlainObject(modules) && Object.hasOwn(modules, environment)
  } catch {
    // What cannot be read names nothing; whoever gives it with -c is told why.
    return false
  }
}
