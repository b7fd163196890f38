// The entry of a custom grader's thread: loads one module, then answers one input at a time. It has no world but its input.
import { type MessagePort, workerData } from 'node:worker_threads'
import { isPlainObject } from '../../../protocol/json.ts'
import { packValue } from '../../../protocol/msgpack.ts'
import { plainJson } from '../../../rollout/plain-json.ts'
import type { GraderAnswer, GraderSetup } from './grader-setup.ts'

type Grade = (input: unknown, params: unknown) => unknown

const { source, hash, port, signal } = workerData as GraderSetup

try {
  const { grade, version } = await load()
  port.on('message', (body: Uint8Array) => answer(port, () => graded(grade, version, body)))
  tell(port, { ok: true, bytes: new Uint8Array() })
} catch (error) {
  tell(port, { ok: false, reason: `cannot be loaded: ${sentenceOf(error)}` })
}

/** From its text, so that it is what was hashed; a module of one file, which imports nothing of its own. */
async function load(): Promise<{ grade: Grade; version: number }> {
  withoutWorld()
  const module: unknown = await import(
    `data:text/javascript;base64,${Buffer.from(source).toString('base64')}`
  )
  const { default: grade, version } = module as { default?: unknown; version?: unknown }
  if (typeof grade !== 'function')
    throw new Error('expected a function (input, params) as the default export')
  if (!Number.isSafeInteger(version))
    throw new Error('expected an export named version, a whole number')
  return { grade: grade as Grade, version: version as number }
}

/** A grade is a function of its input: what would make it another each time is taken away, and says so. */
function withoutWorld(): void {
  const refused = (name: string) => () => {
    throw new Error(`a grader is a function of its input and params: ${name} is not for it`)
  }
  Math.random = refused('Math.random')
  Date.now = refused('Date.now')
  globalThis.Date = new Proxy(Date, {
    construct(target, args: [] | [number]) {
      if (args.length === 0) refused('the clock')()
      return new target(...(args as [number]))
    },
    apply: refused('the clock'),
  })
  const names = ['fetch', 'WebSocket', 'setTimeout', 'setInterval', 'setImmediate', 'performance']
  for (const name of names)
    Object.defineProperty(globalThis, name, { get: refused(name), configurable: true })
}

/** Asked twice, on inputs of their own: a module that remembers or changes its input is found out. */
function graded(grade: Grade, version: number, body: Uint8Array): Uint8Array {
  const text = new TextDecoder().decode(body)
  const result = resultOf(grade, text)
  if (!Buffer.from(packValue(result)).equals(packValue(resultOf(grade, text))))
    throw new Error('two calls with the same input gave two results')
  return packValue({ version, hash, result })
}

function resultOf(grade: Grade, text: string): unknown {
  const { input, params } = JSON.parse(text) as { input: unknown; params: unknown }
  const result = grade(input, params)
  if (isPlainObject(result) && typeof result.then === 'function')
    throw new Error('must answer at once, and with no promise')
  return plainJson(result, 'result')
}

function answer(port: MessagePort, run: () => Uint8Array): void {
  try {
    tell(port, { ok: true, bytes: run() })
  } catch (error) {
    tell(port, { ok: false, reason: sentenceOf(error) })
  }
}

function tell(port: MessagePort, message: GraderAnswer): void {
  port.postMessage(message)
  if (!signal) return
  Atomics.add(signal, 0, 1)
  Atomics.notify(signal, 0)
}

/** What was thrown, in words, whatever it is. */
function sentenceOf(thrown: unknown): string {
  try {
    return thrown instanceof Error ? `threw: ${thrown.message}` : `threw: ${String(thrown)}`
  } catch {
    return 'threw something that cannot be written as text'
  }
}
