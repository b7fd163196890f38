// Who binds a port chooses it and then says it; who finds it taken says so at once and leaves nothing behind.
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, it } from 'vitest'

const MAIN = fileURLToPath(new URL('./main.ts', import.meta.url))
const DEMOS = 8
/** Sixteen programs that load a vocabulary each, on the cores that there are. */
const LONG = 600_000
/**
 * A server that finds its port taken has ended within so much of processor time, from the start of its process on. It waits
 * for nothing, so on a machine that does nothing else it has ended within this time; on a busy one the clock says little.
 */
const REFUSED_S = 2
/** The best of so many counts: caches that others use make a processor slow too. */
const TRIES = 5

/** A process in a group of its own, so that what it leaves behind can be seen. */
type Started = ChildProcessByStdio<null, Readable, Readable>
const started: Started[] = []

afterEach(async () => {
  await Promise.all(started.splice(0).map(stop))
}, LONG)

it(
  'O12: eight demos that start at once print eight lines with sixteen ports that answer, and end with their simulators',
  async () => {
    const demos = Array.from({ length: DEMOS }, () => paddock(['demo', '--keep', '--port', '0']))
    const lines = await Promise.all(demos.map(firstLine))
    const ready = lines.map((line) => JSON.parse(line) as { url: string; policy_url: string })
    const urls = ready.flatMap(({ url, policy_url }) => [url, policy_url])
    expect(new Set(urls.map((url) => new URL(url).port)).size).toBe(2 * DEMOS)
    const asked = ready.flatMap((one) => [`${one.url}/readyz`, `${one.policy_url}/health`])
    const answers = await Promise.all(asked.map((url) => fetch(url)))
    expect(answers.map(({ status }) => status)).toEqual(Array(2 * DEMOS).fill(200))
    await Promise.all(demos.map(stop))
    expect(demos.flatMap(leftBehind)).toEqual([])
    for (const url of urls) await expect(fetch(url)).rejects.toThrow()
  },
  LONG,
)

it(
  'O12: of two servers on one port the second ends within 2 s, names port and address, and leaves nothing behind',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'paddock-ports-'))
    const first = paddock(['serve', configIn(folder, 'first', 0)])
    const url = await listening(first)
    const port = Number(new URL(url).port)
    const config = configIn(folder, 'second', port)
    const seconds: number[] = []
    while (seconds.length < TRIES && !seconds.some((one) => one < REFUSED_S)) {
      const second = paddock(
        ['serve', config],
        ['bash', '-c', `TIMEFORMAT='%U %S'; time "$@"`, '-'],
      )
      const [said, printed, [code]] = await Promise.all([
        text(second.stderr),
        text(second.stdout),
        once(second, 'exit'),
      ])
      const [, user, system] = /^([\d.]+) ([\d.]+)$/m.exec(said) ?? []
      seconds.push(Number(user) + Number(system))
      expect([code, printed]).toEqual([1, ''])
      expect(said).toContain(`cannot listen on 127.0.0.1 port ${port} (EADDRINUSE)`)
      expect(leftBehind(second)).toEqual([])
      expect(readdirSync(join(folder, 'second'))).toEqual(['paddock.yaml'])
    }
    expect(Math.min(...seconds)).toBeLessThan(REFUSED_S)
    expect((await fetch(`${url}/readyz`)).status).toBe(200)
    expect(existsSync(join(folder, 'first', 'ledger', 'data.mdb'))).toBe(true)
    await stop(first)
    rmSync(folder, { recursive: true })
  },
  LONG,
)

/** `wrapper` is a command that runs it. */
function paddock(args: string[], wrapper: string[] = []): Started {
  const all = [...wrapper, process.execPath, '--import', 'tsx', MAIN, ...args]
  const [command = '', ...rest] = all
  const child = spawn(command, rest, { stdio: ['ignore', 'pipe', 'pipe'], detached: true })
  started.push(child)
  return child
}

/** Settings in a folder of their own, where the ledger would be too. */
function configIn(folder: string, name: string, port: number): string {
  const own = join(folder, name)
  mkdirSync(own)
  const file = join(own, 'paddock.yaml')
  const settings = {
    server: { port, drain_timeout_s: 0 },
    shipped_packs: false,
    runtime: { threads: 1 },
    ledger: { path: 'ledger', min_free_bytes: 0 },
  }
  // JSON is YAML.
  writeFileSync(file, JSON.stringify(settings))
  return file
}

async function firstLine(child: Started): Promise<string> {
  const complaint = text(child.stderr)
  for await (const line of createInterface({ input: child.stdout })) return line
  throw new Error(await complaint)
}

async function listening(child: Started): Promise<string> {
  for await (const line of createInterface({ input: child.stderr })) {
    const { msg, url } = JSON.parse(line) as { msg: string; url: string }
    if (msg === 'listening') return url
  }
  throw new Error('the server ended before it listened')
}

/** Resolves when it has ended, and whoever has its standard error. */
async function stop(child: Started): Promise<void> {
  if (child.stderr.closed) return
  const ended = once(child, 'close')
  child.stdout.resume()
  child.stderr.resume()
  child.kill('SIGTERM')
  await ended
}

/** What of its group still runs, as the system names it. */
function leftBehind({ pid }: Started): string[] {
  return readdirSync('/proc').flatMap((one) => {
    if (!/^\d+$/.test(one)) return []
    const [, name = '', state, , group] = statOf(one)
    return Number(group) === pid && state !== 'Z' ? [name] : []
  })
}

function statOf(pid: string): string[] {
  try {
    return /\((.*)\) (\S) (\d+) (\d+)/s.exec(readFileSync(`/proc/${pid}/stat`, 'utf8')) ?? []
  } catch {
    // It ended while we looked.
    return []
  }
}
