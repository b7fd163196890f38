// Kills a server at random moments under load and counts what was lost, trained twice, forgotten or asked again.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { JsonObject } from '../../protocol/json.ts'
import { startSimulatorProcess } from '../runtime/simulator-process.ts'
import { openCountingPolicy } from './counting-policy.ts'
import { createHistory, type Finding } from './history.ts'
import { startServerProcess } from './server-process.ts'
import { openDisk } from './small-disk.ts'
import { createTrainer } from './trainer.ts'

export interface TortureOptions {
  kills: number
  seed: number
  /** All is over after so many seconds: the last fifth is for what is open to end. */
  seconds: number
  /** Lives get shorter where so many kills would not be done in that time. */
  minKills: number
  /** No life ends before so many ends of episodes, and so many acks, were heard in it. Default: a few ends in every other. */
  lifeHears?: { episodes: number; acked: number }
  /** What is started instead of `paddock serve`, as ServerProcessOptions has it. */
  program?: readonly string[]
  /** What ends the server instead of a kill: the ledger's own failure at a disk that refuses. */
  fault: keyof typeof FAULTS | null
  /** Told after each kill how many there were. */
  onKill(kills: number): void
}

export interface TortureResult extends Finding {
  kills: number
  episodes: number
  acked: number
  batches: number
  /** Policy requests that were sent again after a kill. */
  repeats: number
  trainerDeaths: number
  /** Median seconds from the start of a server until it listened. */
  restartSeconds: number
  seconds: number
}

/** `eio`: 3 % of all fsyncs fail (libfiu); `full`: the ledger lies on a tmpfs that is too small, until it has ended. */
const FAULTS = {
  eio: ['fiu-run', '-x', '-c', 'enable_random name=posix/io/sync/*,probability=0.03,failinfo=5'],
  full: [],
}
/** Of the disk that gets full, and by how much it grows each time, megabytes. */
const DISK_MB = 4
/** What the log says before a server ends by itself. */
const SENTENCE = 'the ledger cannot be written'

/** A server that is still there after so long has not noticed. */
const FAULT_LIMIT_MS = 120_000

const GROUPS = 8
const GROUP_SIZE = 8
/** Enough for 64 episodes of 4 turns to be under way at any moment. */
const LATENCY = 'lognormal:120,0.5'
/** Longest time between a start and its kill, seconds; and where it waits to hear something. */
const MAX_LIFE = 2.5
const LONGEST_LIFE = 60
/** Most ends of episodes that it waits for. */
const MAX_HEARD = 16
/** An episode of four turns seals more than this or less, by what it was answered; see the ledger's `file_bytes`. */
const FILE_BYTES = 4096
/** Share of the time after which nothing is killed any more. */
const KILLING = 0.8
/** A server that does not even start is ended so much later than all should be over, milliseconds. */
const GRACE_MS = 10_000

/** Needs the simulator's vocabulary, which a development install has. */
export async function torture(options: TortureOptions): Promise<TortureResult> {
  const { kills, seed, seconds, minKills, fault, program, lifeHears, onKill } = options
  const began = performance.now()
  const elapsed = () => (performance.now() - began) / 1000
  const signal = AbortSignal.timeout(seconds * 1000 + GRACE_MS)
  const random = dice(seed)
  const folder = await mkdtemp(join(tmpdir(), 'paddock-torture-'))
  const tasks = Array.from({ length: GROUPS }, (_, index) => taskOf(index))
  const scripts = join(folder, 'scripts.jsonl')
  await writeFile(scripts, tasks.map((task) => JSON.stringify(scriptOf(task))).join('\n'))
  const disk = fault === 'full' ? await openDisk(join(folder, 'ledger'), DISK_MB) : null
  const simulator = await startSimulatorProcess(['--scripts', scripts, '--latency', LATENCY])
  const policy = openCountingPolicy(simulator.url)
  const config = join(folder, 'paddock.yaml')
  let wake = () => {}
  const history = createHistory(() => wake())
  const trainer = createTrainer({
    history,
    tasks: tasks.map((spec) => ({ spec, environment: 'arithmetic' })),
    groupSize: GROUP_SIZE,
    open: 2,
    random,
  })
  const starts: number[] = []
  let done = 0

  async function start(wrapper: readonly string[] = []) {
    const url = await policy.nextLife()
    await writeFile(config, JSON.stringify(settings(url, simulator.model, folder)))
    return startServerProcess(config, { wrapper, signal, ...(program && { program }) })
  }

  async function live(until: () => Promise<unknown>): Promise<void> {
    const server = await start()
    starts.push(server.startSeconds)
    const killed = new AbortController()
    const working = trainer.work(server.url, policy.life(), killed.signal)
    working.catch(() => {})
    await Promise.race([until(), working])
    killed.abort()
    await server.kill()
    await working
  }

  /** Seconds that a life may take, so that those that must still be ended find their time. */
  const longestLife = () =>
    Math.max(0, (seconds * KILLING - elapsed()) / Math.max(1, minKills - done) - median(starts))

  /** The moment of the next kill: at random, and where the machine is slow, not before something has been done. */
  async function killTime(): Promise<void> {
    const longest = longestLife()
    const hears = lifeHears ?? { episodes: (done % 2) * Math.ceil(random() * MAX_HEARD), acked: 0 }
    const least = sleep(random() * Math.min(MAX_LIFE, 2 * longest) * 1000)
    await Promise.race([
      Promise.all([least, heard(hears)]),
      // A timer that is not needed any more keeps nobody waiting.
      sleep(Math.min(2 * longest, LONGEST_LIFE) * 1000, null, { ref: false }),
    ])
  }

  /** Resolves when so much more was heard than at the call. */
  async function heard({ episodes, acked }: { episodes: number; acked: number }): Promise<void> {
    const before = history.totals()
    const lacks = ({ episodes: e, acked: a } = history.totals()) =>
      e - before.episodes < episodes || a - before.acked < acked
    while (lacks())
      await new Promise<void>((resolve) => {
        wake = resolve
      })
  }

  /** The server runs until it ends by itself, and has to say why. */
  async function liveWithFault(wrapper: readonly string[]): Promise<void> {
    const server = await start(wrapper)
    const over = new AbortController()
    const working = trainer.work(server.url, policy.life(), over.signal)
    // It answers that it cannot store, and cuts its connections.
    working.catch(() => {})
    const limit = sleep(FAULT_LIMIT_MS, null, { signal: over.signal }).catch(() => null)
    const end = await Promise.race([server.ended, limit])
    over.abort()
    await server.kill()
    if (end?.code !== 1 || !server.log.some((line) => line.includes(SENTENCE)))
      throw new Error(`the server ended with ${end?.code}:\n${server.log.slice(-3).join('\n')}`)
    await disk?.grow()
  }

  try {
    for (; done < kills && elapsed() < seconds * KILLING; done++) {
      if (fault) await liveWithFault(FAULTS[fault])
      else await live(killTime)
      onKill(done + 1)
    }
    trainer.finish()
    while (!trainer.isDone() && elapsed() < seconds)
      await live(() => sleep((seconds - elapsed()) * 1000, null, { ref: false }))
    for (const batch of trainer.open()) history.unfinished(batch)
    return {
      ...history.check(policy.seen),
      ...history.totals(),
      kills: done,
      trainerDeaths: trainer.deaths(),
      restartSeconds: median(starts),
      seconds: elapsed(),
    }
  } finally {
    await policy.close()
    await simulator.stop()
    await disk?.close()
    await rm(folder, { recursive: true, force: true })
  }
}

function settings(policyUrl: string, model: string, folder: string): JsonObject {
  return {
    server: { port: 0 },
    shipped_packs: false,
    // Chat mode without a model folder: no thread loads a tokenizer.
    backends: { main: { dialect: 'vllm', url: policyUrl, model } },
    runtime: { threads: 1, max_episodes: 256 },
    // Of sealed episodes some lie in files, and some do not.
    ledger: { path: join(folder, 'ledger'), min_free_bytes: 0, file_bytes: FILE_BYTES },
  }
}

/** Four turns: three calls and the answer. */
function taskOf(index: number): JsonObject & { request: string } {
  const [a, b] = [11 + index, 23 + index]
  const steps = [
    { call: 'calculator', args: { expression: `${a} * ${b}` } },
    { call: 'calculator', args: { expression: `${a * b} + ${a}` } },
    { call: 'calculator', args: { expression: `${a * b + a} - 1` } },
  ]
  const answer = String(a * b + a - 1)
  const say = (text: string) => ({ say: `There are ${text} left.` })
  return {
    id: `torture-${index}`,
    title: `Count ${index}`,
    request: `Torture count ${index}: how many are ${a} times ${b}, plus ${a}, less one? Use the calculator.`,
    answer,
    limits: { max_turns: 6 },
    transcripts: {
      correct: { steps: [...steps, say(answer)], expect: { score: 1 } },
      wrong: { steps: [...steps, say('7')], expect: { score: 0 } },
    },
  }
}

function scriptOf({ request, transcripts }: JsonObject) {
  return { match: request, transcripts }
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0
}

/** Mulberry32: the same seed draws the same moments. */
function dice(seed: number): () => number {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
