// Where settings come from: a YAML file, environment variables, flags; each read into the file's form, and their merge.
import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { PaddockError } from '../protocol/errors.ts'
import { isPlainObject, type JsonObject, type JsonValue } from '../protocol/json.ts'
import { pathText, schemaAt } from './schema-issues.ts'
import { settingsSchema } from './settings.ts'
import { parseYamlTree } from './yaml-tree.ts'

/** The settings of one origin; `name` says what a setting is called there, null where it does not come from there. */
export interface Layer {
  settings: JsonObject
  name(keys: readonly PropertyKey[]): string | null
}

/** `file` undefined: `paddock.yaml` of the working folder if there is one; null: no file. */
export function fileLayer(file: string | null | undefined, cwd: string): Layer {
  const path = resolve(cwd, file ?? 'paddock.yaml')
  const text = file === null ? null : readText(path, file !== undefined)
  const settings = text === null ? {} : parseFile(path, text)
  return {
    settings: absolutePaths(settings, dirname(path)),
    name: (keys) => (has(settings, keys) ? path : null),
  }
}

/**
 * `PADDOCK_SERVER__PORT` is `server.port`. Variables that `fileSettings` names as the place of a secret are left out,
 * and so are those that Kubernetes makes for a Service called paddock (`PADDOCK_PORT=tcp://…`).
 */
export function envLayer(
  env: Record<string, string | undefined>,
  cwd: string,
  fileSettings: JsonObject,
): Layer {
  const secrets = secretVariables(fileSettings)
  const names = new Map<string, string>()
  let settings: JsonValue = {}
  for (const [name, text] of Object.entries(env)) {
    if (!name.startsWith('PADDOCK_') || text === undefined) continue
    if (secrets.has(name) || isServiceLink(name, text)) continue
    const keys = name.slice('PADDOCK_'.length).toLowerCase().split('__')
    names.set(pathText(keys), name)
    settings = mergeSettings(settings, nest(keys, readSetting(keys, text)))
  }
  return {
    settings: absolutePaths(settings as JsonObject, cwd),
    name: (keys) => {
      const set = prefixes(keys).find((prefix) => names.has(prefix))
      return set === undefined ? null : names.get(set)!
    },
  }
}

export function flagLayer(flags: JsonObject, cwd: string): Layer {
  return {
    settings: absolutePaths(flags, cwd),
    name: (keys) => (has(flags, keys) ? 'command line' : null),
  }
}

/** `server.port=9000` as `{server: {port: 9000}}`. Throws PaddockError `invalid_config` without an equals sign. */
export function parseAssignment(text: string): JsonObject {
  const equals = text.indexOf('=')
  if (equals < 1)
    throw new PaddockError(
      'invalid_config',
      `--set ${text}: expected path=value, as --set runtime.threads=2`,
    )
  const keys = text.slice(0, equals).split('.')
  return nest(keys, readSetting(keys, text.slice(equals + 1)))
}

/** Objects are merged key by key; anything else of `over` takes the place of what `base` has. */
export function mergeSettings(base: JsonValue, over: JsonValue): JsonValue {
  if (!isPlainObject(base) || !isPlainObject(over)) return over
  const merged = new Map<string, JsonValue>(Object.entries(base as JsonObject))
  for (const [key, value] of Object.entries(over as JsonObject)) {
    const below = merged.get(key)
    merged.set(key, below === undefined ? value : mergeSettings(below, value))
  }
  return Object.fromEntries(merged)
}

/** Text of a variable or flag as the type that its setting has; left as text where it does not fit, for the schema to refuse. */
function readSetting(keys: readonly string[], text: string): JsonValue {
  const type = schemaAt(settingsSchema, keys)?._zod.def.type
  if (type === 'number' && /^[+-]?\d+(\.\d+)?$/.test(text)) return Number(text)
  if (type === 'boolean' && (text === 'true' || text === 'false')) return text === 'true'
  if (type === 'array' && !text.trimStart().startsWith('['))
    return text.split(',').map((item) => item.trim())
  if (type !== 'array' && type !== 'object' && type !== 'record') return text
  try {
    return parseYamlTree(text) as JsonValue
  } catch {
    return text
  }
}

function readText(path: string, required: boolean): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (!required && code === 'ENOENT') return null
    throw new PaddockError('invalid_config', `${path}: expected a file of settings: ${message}`, {
      cause: error,
    })
  }
}

function parseFile(path: string, text: string): JsonObject {
  let settings: unknown
  try {
    settings = parseYamlTree(text) ?? {}
  } catch (error) {
    const { message } = error as Error
    throw new PaddockError('invalid_config', `${path}: expected YAML: ${message}`, { cause: error })
  }
  if (isPlainObject(settings)) return settings as JsonObject
  throw new PaddockError(
    'invalid_config',
    `${path}: expected a mapping at the top, as "server: {port: 8420}"`,
  )
}

/** The settings with every path made absolute; what has the wrong type is left for the schema to refuse. */
function absolutePaths(settings: JsonObject, folder: string): JsonObject {
  // An empty one would be the folder itself.
  const absolute = (value: JsonValue) =>
    typeof value === 'string' && value !== '' ? resolve(folder, value) : value
  const members = (value: JsonValue, change: (member: JsonValue) => JsonValue): JsonValue =>
    isPlainObject(value)
      ? Object.fromEntries(
          Object.entries(value).map(([key, member]) => [key, change(member as JsonValue)]),
        )
      : value
  const withPath = (key: string) => (owner: JsonValue) =>
    isPlainObject(owner) && Object.hasOwn(owner, key)
      ? ({ ...owner, [key]: absolute(owner[key] as JsonValue) } as JsonObject)
      : owner
  const changes: Record<string, (value: JsonValue) => JsonValue> = {
    packs: (packs) => (Array.isArray(packs) ? packs.map(absolute) : packs),
    ledger: withPath('path'),
    environments: (environments) => members(environments, absolute),
    backends: (backends) => members(backends, withPath('model_dir')),
    dialects: (dialects) => members(dialects, withPath('data_dir')),
  }
  return Object.fromEntries(
    Object.entries(settings).map(([key, value]) => [
      key,
      Object.hasOwn(changes, key) ? changes[key]!(value) : value,
    ]),
  )
}

function secretVariables(settings: JsonObject): Set<string> {
  const names = new Set<string>()
  JSON.stringify(settings, (key, value: unknown) => {
    if (/^(token|api_key|value)_env$/.test(key) && typeof value === 'string') names.add(value)
    return value
  })
  return names
}

function isServiceLink(name: string, text: string): boolean {
  if (/^PADDOCK_SERVICE_(HOST|PORT)(_|$)/.test(name)) return true
  return /^PADDOCK_PORT_\d+_(TCP|UDP|SCTP)(_|$)/.test(name) || /^(tcp|udp|sctp):\/\//.test(text)
}

function nest(keys: readonly string[], value: JsonValue): JsonObject {
  const [key = '', ...rest] = keys
  return Object.fromEntries([[key, rest.length === 0 ? value : nest(rest, value)]])
}

/** `a.b.c`, `a.b`, `a`. */
function prefixes(keys: readonly PropertyKey[]): string[] {
  return keys.map((_, dropped) => pathText(keys.slice(0, keys.length - dropped)))
}

function has(value: JsonValue | undefined, keys: readonly PropertyKey[]): boolean {
  const [key, ...rest] = keys
  if (key === undefined) return true
  if (Array.isArray(value)) return has(value[Number(key)], rest)
  if (!isPlainObject(value) || !Object.hasOwn(value, key)) return false
  return has((value as JsonObject)[String(key)], rest)
}
