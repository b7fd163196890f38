// Settings: their order of origin, their checks, and what is printed of them.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { PaddockError } from '../protocol/errors.ts'
import { type ConfigSources, configSecrets, isLoopback, loadConfig, printConfig } from './config.ts'
import { parseAssignment } from './config-layers.ts'

const folder = mkdtempSync(join(tmpdir(), 'paddock-config-'))
afterAll(() => rmSync(folder, { recursive: true }))

let files = 0
function file(text: string): string {
  const path = join(folder, `${files++}.yaml`)
  writeFileSync(path, text)
  return path
}

function refusalOf(sources: ConfigSources): PaddockError {
  try {
    loadConfig(sources)
  } catch (error) {
    if (error instanceof PaddockError) return error
    throw error
  }
  throw new Error('expected the settings to be refused')
}

describe('order of origins', () => {
  test('defaults listen on loopback, port 8420', () => {
    const config = loadConfig({ file: null })
    expect(config.server).toMatchObject({ host: '127.0.0.1', port: 8420, tokens: [] })
    expect(config.runtime.max_episodes).toBe(64)
    expect(config.runtime.threads).toBeGreaterThanOrEqual(1)
    expect(config.shipped_packs).toBe(true)
  })

  test('a flag wins over a variable, a variable over the file, the file over the default', () => {
    const path = file('server: {port: 1}\nruntime: {threads: 1, heap_mb: 100}\nlog: {level: warn}')
    const config = loadConfig({
      file: path,
      env: { PADDOCK_SERVER__PORT: '2', PADDOCK_RUNTIME__THREADS: '2' },
      flags: { server: { port: 3 } },
    })
    expect(config.server.port).toBe(3)
    expect(config.runtime).toMatchObject({ threads: 2, heap_mb: 100, max_episodes: 64 })
    expect(config.log.level).toBe('warn')
  })

  test('paddock.yaml of the working folder is read when no file is named', () => {
    const cwd = join(folder, 'work')
    mkdirSync(cwd)
    expect(loadConfig({ cwd }).server.port).toBe(8420)
    writeFileSync(join(cwd, 'paddock.yaml'), 'server: {port: 7}')
    expect(loadConfig({ cwd }).server.port).toBe(7)
    expect(loadConfig({ cwd, file: null }).server.port).toBe(8420)
  })

  test('a setting of a backend can come from a variable while the rest stands in the file', () => {
    const path = file('backends: {main: {dialect: vllm, url: "http://127.0.0.1:8000", model: m}}')
    const config = loadConfig({ file: path, env: { PADDOCK_BACKENDS__MAIN__URL: 'http://b:1' } })
    expect(config.backends.main).toMatchObject({
      dialect: 'vllm',
      urls: ['http://b:1'],
      model: 'm',
    })
  })
})

test.each([
  ['PADDOCK_SERVER__TOKEN', '12345', (c: Config) => c.server.tokens[0]?.token, '12345'],
  ['PADDOCK_SHIPPED_PACKS', 'false', (c: Config) => c.shipped_packs, false],
  ['PADDOCK_PACKS', '/a, /b', (c: Config) => c.packs, ['/a', '/b']],
  ['PADDOCK_PACKS', '["/a,b"]', (c: Config) => c.packs, ['/a,b']],
  ['PADDOCK_RUNTIME__MAX_TURN_S', '0.5', (c: Config) => c.runtime.max_turn_s, 0.5],
  ['PADDOCK_RUNTIME', '{threads: 3}', (c: Config) => c.runtime.threads, 3],
])('the variable %s=%s is read as the type of its setting', (name, text, pick, expected) => {
  expect(pick(loadConfig({ file: null, env: { [name]: text } }))).toEqual(expected)
})
type Config = ReturnType<typeof loadConfig>

test.each([
  ['ledger.path', { ledger: { path: '' } }],
  ['packs[0]', { packs: [''] }],
  ['environments.mine', { environments: { mine: '' } }],
  ['dialects.slime.data_dir', { dialects: { slime: { data_dir: '' } } }],
])('an empty path is refused and not taken for the working folder: %s', (path, flags) => {
  expect(() => loadConfig({ file: null, flags })).toThrow(path)
})

test('relative paths start at the folder of the file, those of a variable at the working folder', () => {
  const path = file(
    'packs: [packs/mine]\nenvironments: {mine: ./env.js}\nbackends: {main: {dialect: vllm, url: "http://b", model: m, model_dir: models/q}}',
  )
  const config = loadConfig({ file: path, cwd: '/' })
  expect(config.packs).toEqual([join(folder, 'packs/mine')])
  expect(config.environments).toEqual({ mine: join(folder, 'env.js') })
  expect(config.backends.main?.model_dir).toBe(join(folder, 'models/q'))
  expect(loadConfig({ file: null, env: { PADDOCK_PACKS: 'p' }, cwd: '/srv' }).packs).toEqual([
    '/srv/p',
  ])
})

describe('refusals', () => {
  test.each([
    ['server: {port: 70000}', 'server.port', ['at most 65535', 'found 70000']],
    ['server: {port: "80"}', 'server.port', ['a finite number', 'found "80"']],
    ['server: {prot: 80}', 'server.prot', ['unknown key "prot"', 'did you mean port?']],
    ['sever: {port: 80}', 'sever', ['did you mean server?']],
    ['port: 80', 'port', ['there is server.port']],
    [
      'backends: {main: {dialect: trt, url: "http://b", model: m}}',
      'backends.main.dialect',
      ['one of vllm, vllm-generate, sglang', 'found "trt"'],
    ],
    [
      'backends: {main: {dialect: vllm, url: "file:///etc/passwd", model: m}}',
      'backends.main.url',
      ['http or https'],
    ],
    ['backends: {main: {dialect: vllm, model: m}}', 'backends.main.url', ['found nothing']],
    [
      'backends: {main: {dialect: vllm, url: "http://a", urls: ["http://b"], model: m}}',
      'backends.main.urls',
      ['not both'],
    ],
    [
      'backends: {main: {dialect: vllm, url: "http://a", model: m, token_gap_timeout_s: 1}}',
      'backends.main.stream',
      ['stream: true'],
    ],
    ['backends: {-b: {dialect: vllm}}', 'backends.-b', ['an id is']],
    ['runtime: {threads: 1.5}', 'runtime.threads', ['an integer', 'found 1.5']],
    ['server: {tokens: [{roles: [lease]}]}', 'server.tokens[0]', ['exactly one of token']],
    ['server: {tokens: [{token: a, roles: [root]}]}', 'server.tokens[0].roles[0]', ['submit']],
    ['log: {level: loud}', 'log.level', ['found "loud"']],
    ['runtime: {threads: 0}', 'runtime.threads', ['at least 1', 'found 0']],
    ['server: {host: ""}', 'server.host', ['at least 1 character']],
  ])('%s names the path, what was expected and what was found', (text, path, words) => {
    const path_ = file(text)
    const error = refusalOf({ file: path_ })
    expect(error.code).toBe('invalid_config')
    expect(error.path).toBe(path)
    expect(error.message).toContain(`${path_}: ${path}: `)
    for (const word of words) expect(error.message).toContain(word)
  })

  test('every wrong setting has its line, with the origin that it came from', () => {
    const path = file('server: {port: -1}\nlog: {levle: info}')
    const error = refusalOf({ file: path, env: { PADDOCK_RUNTIME__THREADS: 'many' } })
    expect(error.message.split('\n')).toHaveLength(3)
    expect(error.message).toContain(
      'PADDOCK_RUNTIME__THREADS: runtime.threads: expected a finite number',
    )
  })

  test.each([
    ['server: [', 'YAML'],
    ['- a', 'a mapping'],
    ['server: {port: 1, port: 2}', 'unique'],
  ])('a file that is no mapping is refused: %s', (text, word) => {
    expect(refusalOf({ file: file(text) }).message).toContain(word)
  })

  test('a file that was named must be there', () => {
    expect(refusalOf({ file: '/nowhere/paddock.yaml' }).message).toContain('/nowhere/paddock.yaml')
  })

  test('an unknown variable is refused; those that Kubernetes makes are not ours', () => {
    const links = {
      PADDOCK_SERVICE_HOST: '10.0.0.1',
      PADDOCK_SERVICE_PORT_HTTP: '8420',
      PADDOCK_PORT: 'tcp://10.0.0.1:8420',
      PADDOCK_PORT_8420_TCP_ADDR: '10.0.0.1',
    }
    expect(loadConfig({ file: null, env: links }).server.port).toBe(8420)
    const error = refusalOf({ file: null, env: { PADDOCK_PORT: '9000' } })
    expect(error.message).toContain('PADDOCK_PORT: port: unknown key')
    expect(error.message).toContain('there is server.port')
  })

  test('--set takes path=value', () => {
    expect(parseAssignment('runtime.threads=2')).toEqual({ runtime: { threads: 2 } })
    expect(parseAssignment('server.token=a=b')).toEqual({ server: { token: 'a=b' } })
    expect(() => parseAssignment('runtime.threads')).toThrow('expected path=value')
  })
})

describe('who may reach it', () => {
  test.each([
    ['127.0.0.1', true],
    ['127.9.9.9', true],
    ['::1', true],
    ['::ffff:127.0.0.1', true],
    ['localhost', true],
    ['0.0.0.0', false],
    ['::', false],
    ['10.0.0.1', false],
    ['localhost.example', false],
    ['127.1', false],
  ])('%s is loopback: %s', (host, expected) => {
    expect(isLoopback(host)).toBe(expected)
  })

  test.each(['0.0.0.0', '[::]', 'gpu-7'])('%s needs a token', (host) => {
    const error = refusalOf({ file: null, flags: { server: { host } } })
    expect(error.path).toBe('server.tokens')
    expect(error.message).toContain('PADDOCK_SERVER__TOKEN')
    const env = { PADDOCK_SERVER__TOKEN: 'a-token-of-some-length' }
    const config = loadConfig({ file: null, flags: { server: { host } }, env })
    expect(config.server.host).toBe(host.replace(/[[\]]/g, ''))
  })
})

describe('secrets', () => {
  const path = file(`
server:
  tokens: [{token_env: PADDOCK_TRAINER_TOKEN, roles: [lease]}, {token: canary-two}]
backends:
  main: {dialect: vllm, url: "http://user:canary-three@b:1/x", model: m, api_key_env: KEY}`)
  const env = { PADDOCK_TRAINER_TOKEN: 'canary-one', KEY: 'canary-four' }

  test('they may stand in variables that the file names', () => {
    const config = loadConfig({ file: path, env })
    expect(config.server.tokens).toEqual([
      { token: 'canary-one', roles: ['lease'] },
      { token: 'canary-two', roles: ['admin'] },
    ])
    expect(config.backends.main?.api_key).toBe('canary-four')
    expect(configSecrets(config).sort()).toEqual([
      'canary-four',
      'canary-one',
      'canary-three',
      'canary-two',
    ])
    expect(refusalOf({ file: path, env: { KEY: 'k' } }).message).toContain('PADDOCK_TRAINER_TOKEN')
  })

  test('the passwords of all endpoints are masked, and what is printed can be read again', () => {
    const urls = ['http://u:canary-five@a:1', 'http://u:canary-six@b:1']
    const flags = { backends: { main: { dialect: 'vllm', model: 'm', urls } } }
    const config = loadConfig({ file: null, flags })
    expect(configSecrets(config)).toEqual(['canary-five', 'canary-six'])
    const printed = parse(printConfig(config))
    expect(JSON.stringify(printed)).not.toContain('canary')
    expect(loadConfig({ file: null, flags: printed }).backends.main?.urls).toHaveLength(2)
    const wrong = { backends: { main: { ...flags.backends.main, urls: ['canary-seven'] } } }
    expect(refusalOf({ file: null, flags: wrong }).message).not.toContain('canary')
  })

  test('none is printed, and what is printed is valid YAML', () => {
    const printed = printConfig(loadConfig({ file: path, env }))
    expect(printed).not.toContain('canary')
    expect(parse(printed).backends.main).toMatchObject({ model: 'm', api_key: '********' })
  })

  test('a secret of the wrong type is not told in the error', () => {
    const wrong = file('server: {tokens: [{token: [canary-five]}]}')
    expect(refusalOf({ file: wrong }).message).not.toContain('canary')
    const number = file('server: {token: 1234567890}')
    expect(refusalOf({ file: number }).message).not.toContain('1234567890')
  })
})

test.each([
  ['server: &a\n  host: 127.0.0.1\n  me: *a\n', 'server.me'],
  ['packs: &a\n  - *a\n', 'packs[0]'],
  ['reward: &a\n  deep: {deeper: [*a]}\n', 'reward.deep.deeper[0]'],
])('an anchor that stands in itself is refused by its place: %j', (text, place) => {
  const path = file(text)
  const { code, message } = refusalOf({ file: path })
  expect(code).toBe('invalid_config')
  expect(message).toContain(`${path}: expected YAML: ${place} is an alias (*) of what it stands in`)
})

test('an anchor that is used twice is no circle', () => {
  const backend = '{dialect: vllm, url: "http://127.0.0.1:1", model: m}'
  const path = file(`backends:\n  main: &a ${backend}\n  other: *a\n`)
  const { main, other } = loadConfig({ file: path }).backends
  expect(other).toEqual(main)
})
