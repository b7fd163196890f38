// The server's settings: paddock.yaml < environment PADDOCK_* < flags, checked, completed, and printed without secrets.
import { BlockList, isIP } from 'node:net'
import { stringify as toYaml } from 'yaml'
import { PaddockError } from '../protocol/errors.ts'
import type { JsonObject, JsonValue } from '../protocol/json.ts'
import { nearestName } from '../reward/nearest.ts'
import { envLayer, fileLayer, flagLayer, type Layer, mergeSettings } from './config-layers.ts'
import { createReach } from './runtime/asking/reach.ts'
import { checkSchema, type SchemaIssue } from './schema-issues.ts'
import { type Role, type Settings, settingsSchema } from './settings.ts'

interface AccessToken {
  token: string
  roles: Role[]
}

/** `url` is one of `urls` here. */
export type Backend = Omit<Settings['backends'][string], 'api_key_env' | 'url' | 'urls'> & {
  urls: string[]
}

/** The settings as the server uses them: paths absolute, secrets read from the environment. */
export interface Config extends Omit<Settings, 'server' | 'backends' | 'callbacks'> {
  server: Omit<Settings['server'], 'token' | 'tokens'> & { tokens: AccessToken[] }
  backends: Record<string, Backend>
  callbacks: { allow: string[]; headers: { host: string; name: string; value: string }[] }
}

export interface ConfigSources {
  /** Path of the file; undefined takes `paddock.yaml` of the working folder where there is one, null takes none. */
  file?: string | null
  env?: Environment
  /** Settings in the file's form that win over the others. */
  flags?: JsonObject
  /** The working folder. */
  cwd?: string
}

type Environment = Record<string, string | undefined>

/**
 * Reads, merges and checks the settings. Relative paths start at the file's folder, those of variables and flags at
 * the working folder. Throws PaddockError `invalid_config` with a line for each thing that is wrong.
 */
export function loadConfig({
  file,
  env = {},
  flags = {},
  cwd = process.cwd(),
}: ConfigSources): Config {
  const fromFile = fileLayer(file, cwd)
  const layers = [fromFile, envLayer(env, cwd, fromFile.settings), flagLayer(flags, cwd)]
  const merged = layers.reduce<JsonValue>((base, { settings }) => mergeSettings(base, settings), {})
  const checked = checkSchema(settingsSchema, merged)
  if (!checked.ok) throw refusal(checked.issues, layers)
  const config: Config = {
    ...checked.value,
    server: resolveServer(checked.value.server, env),
    backends: resolveBackends(checked.value.backends, env),
    callbacks: resolveCallbacks(checked.value, env),
  }
  refuseOpenDoor(config)
  refuseUnknownBackends(config)
  createReach(config.reward.allow, 'reward.allow')
  return config
}

/** The settings as YAML, in the form of a paddock.yaml, with every secret masked. */
export function printConfig(config: Config): string {
  const tokens = config.server.tokens.map((entry) => ({ ...entry, token: MASK }))
  const backends = Object.entries(config.backends).map(([name, backend]) => [
    name,
    {
      ...backend,
      urls: backend.urls.map(maskUrl),
      ...(backend.api_key !== undefined && { api_key: MASK }),
    },
  ])
  return toYaml({
    ...config,
    server: { ...config.server, tokens },
    backends: Object.fromEntries(backends),
    callbacks: {
      ...config.callbacks,
      headers: config.callbacks.headers.map((header) => ({ ...header, value: MASK })),
    },
  })
}

/** Every secret value of the settings, for the redaction of logs. */
export function configSecrets(config: Config): string[] {
  const backends = Object.values(config.backends)
  const keys = backends.map((backend) => backend.api_key ?? '')
  const passwords = backends.flatMap(({ urls }) => urls.map((url) => new URL(url).password))
  const tokens = config.server.tokens.map((entry) => entry.token)
  const headers = config.callbacks.headers.map((header) => header.value)
  return [...tokens, ...keys, ...passwords, ...headers].filter((secret) => secret !== '')
}

/** True for addresses that only this machine reaches. A name other than localhost counts as reachable. */
export function isLoopback(host: string): boolean {
  const version = isIP(host)
  if (version === 0) return host.toLowerCase() === 'localhost'
  return LOOPBACK.check(host, version === 6 ? 'ipv6' : 'ipv4')
}

const LOOPBACK = new BlockList()
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4')
LOOPBACK.addAddress('::1', 'ipv6')

function refuseUnknownBackends(config: Config): void {
  for (const kind of ['judge', 'user'] as const) {
    const backend = config[kind]?.backend
    if (backend === undefined || Object.hasOwn(config.backends, backend)) continue
    const names = Object.keys(config.backends).join(', ') || 'none'
    throw new PaddockError(
      'invalid_config',
      `${kind}.backend: expected one of the backends (${names}), found ${backend}`,
      { path: `${kind}.backend` },
    )
  }
}

function refuseOpenDoor(config: Config): void {
  const { host, tokens } = config.server
  if (isLoopback(host) || tokens.length > 0) return
  throw new PaddockError(
    'invalid_config',
    `server.host ${host} is reached from other machines: expected a bearer token, found none; set PADDOCK_SERVER__TOKEN (to the output of "openssl rand -hex 32", for one) or server.tokens in paddock.yaml, or keep host 127.0.0.1`,
    { path: 'server.tokens' },
  )
}

function resolveServer(server: Settings['server'], env: Environment): Config['server'] {
  const { token, tokens, host, ...rest } = server
  const single = token === undefined ? [] : [{ token, roles: ['admin' as const] }]
  const listed = tokens.map((entry, index) => ({
    token: entry.token ?? secret(env, entry.token_env, `server.tokens[${index}].token_env`),
    roles: entry.roles,
  }))
  // Node listens on an IPv6 address without the brackets that it has in a URL.
  return { ...rest, host: host.replace(/^\[(.*)\]$/, '$1'), tokens: [...single, ...listed] }
}

function resolveBackends(backends: Settings['backends'], env: Environment): Config['backends'] {
  return Object.fromEntries(
    Object.entries(backends).map(([name, { api_key_env, url, urls, ...backend }]) => [
      name,
      {
        ...backend,
        urls: urls ?? [url as string],
        ...(api_key_env !== undefined && {
          api_key: secret(env, api_key_env, `backends.${name}.api_key_env`),
        }),
      },
    ]),
  )
}

/** Throws PaddockError `invalid_config` for an entry that is no host, address or network. */
function resolveCallbacks({ callbacks, server }: Settings, env: Environment): Config['callbacks'] {
  const allow = callbacks.allow ?? (isLoopback(server.host) ? ['localhost'] : [])
  createReach(allow, 'callbacks.allow')
  const headers = callbacks.headers.map(({ value_env, value, ...header }, index) => ({
    ...header,
    value: value ?? secret(env, value_env, `callbacks.headers[${index}].value_env`),
  }))
  return { allow, headers }
}

function secret(env: Environment, name: string | undefined, path: string): string {
  const value = name === undefined ? undefined : env[name]
  if (value) return value
  throw new PaddockError(
    'invalid_config',
    `${path}: expected the environment variable ${name} to hold a secret, found ${value === '' ? 'an empty one' : 'none'}`,
    { path },
  )
}

function refusal(issues: SchemaIssue[], layers: readonly Layer[]): PaddockError {
  const lines = issues.map((issue) => {
    const origin = originOf(issue.keys, layers) ?? originOf(issue.keys.slice(0, -1), layers)
    const from = origin === null ? '' : `${origin}: `
    return `${from}${issue.path || 'settings'}: ${withoutSecret(issue)}${elsewhere(issue)}`
  })
  const path = issues[0]?.path ?? ''
  return new PaddockError('invalid_config', lines.join('\n'), { path })
}

function originOf(keys: readonly PropertyKey[], layers: readonly Layer[]): string | null {
  return layers.findLast((layer) => layer.name(keys) !== null)?.name(keys) ?? null
}

function withoutSecret({ keys, message }: SchemaIssue): string {
  const secret = keys.slice(-2).some((key) => /^(token|api_key|urls?|value)$/.test(String(key)))
  return secret ? message.replace(/, found (?!nothing).*/s, '') : message
}

/** For a setting given one level too high (PADDOCK_PORT): where a setting of that name is. */
function elsewhere(issue: SchemaIssue): string {
  if (!issue.message.startsWith('unknown key') || issue.keys.length !== 1) return ''
  const sections = Object.entries(settingsSchema.shape).flatMap(([section, schema]) => {
    const shape = (schema as { def?: { innerType?: { shape?: object } } }).def?.innerType?.shape
    return Object.keys(shape ?? {}).map((key) => ({ key, path: `${section}.${key}` }))
  })
  const key = nearestName(
    String(issue.keys[0]),
    sections.map((entry) => entry.key),
  )
  const paths = sections.filter((entry) => entry.key === key).map((entry) => entry.path)
  return paths.length > 0 ? `; there is ${paths.join(' and ')}` : ''
}

const MASK = '********'

function maskUrl(text: string): string {
  const url = new URL(text)
  if (url.username === '' && url.password === '') return text
  url.username = url.username && MASK
  url.password = url.password && MASK
  return url.href
}
