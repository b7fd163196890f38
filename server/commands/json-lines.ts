// JSON Lines in, JSON Lines out: one answer a line, in order, however long the input and however slow its reader.
import { once } from 'node:events'
import type { Writable } from 'node:stream'
import { PaddockError } from '../../protocol/errors.ts'
import { isPlainObject } from '../../protocol/json.ts'
import { parseJsonBody } from '../../protocol/json-body.ts'

/** Longest line that is taken, bytes. */
export const MAX_LINE_BYTES = 64 * 1024 * 1024

const NEWLINE = 0x0a

/** Answers a line's value, or throws PaddockError where it is no question at all. */
export type Answer = (line: Record<string, unknown>) => object

export interface LineOptions {
  /** As of parseJsonBody. */
  anyKeys?: boolean
}

/**
 * Answers each line that is not blank; one that cannot be read with `{id?, name?, error: {code, message}}`. Resolves
 * with the number of those.
 */
export async function answerLines(
  input: AsyncIterable<Uint8Array>,
  output: Writable,
  answer: Answer,
  options: LineOptions = {},
): Promise<number> {
  let number = 0
  let unread = 0
  for await (const line of splitLines(input)) {
    number++
    if (line !== null && isBlank(line)) continue
    const result = answerLine(line, answer, options)
    if (!result.ok) unread++
    const out = result.ok ? result.out : refusal(result, number)
    if (!output.write(`${JSON.stringify(out)}\n`)) await once(output, 'drain')
  }
  return unread
}

/** The lines without their newline; null for one that is longer than MAX_LINE_BYTES. */
async function* splitLines(input: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array | null> {
  let parts: Uint8Array[] = []
  let size = 0
  const keep = (part: Uint8Array) => {
    size += part.length
    if (size > MAX_LINE_BYTES) parts = []
    else parts.push(part)
  }
  const take = () => {
    const line = size > MAX_LINE_BYTES ? null : Buffer.concat(parts)
    parts = []
    size = 0
    return line
  }
  for await (const chunk of input) {
    let start = 0
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      keep(chunk.subarray(start, end))
      start = end + 1
      yield take()
    }
    keep(chunk.subarray(start))
  }
  if (size > 0) yield take()
}

function isBlank(line: Uint8Array): boolean {
  return line.every((byte) => byte === 0x20 || byte === 0x09 || byte === 0x0d)
}

type Refused = { ok: false; line: Record<string, unknown>; error: PaddockError }

function answerLine(
  bytes: Uint8Array | null,
  answer: Answer,
  options: LineOptions,
): { ok: true; out: object } | Refused {
  let line: Record<string, unknown> = {}
  try {
    line = readLine(bytes, options)
    return { ok: true, out: answer(line) }
  } catch (error) {
    if (!(error instanceof PaddockError)) throw error
    return { ok: false, line, error }
  }
}

function readLine(bytes: Uint8Array | null, options: LineOptions): Record<string, unknown> {
  if (bytes === null)
    throw new PaddockError('body_too_large', `expected at most ${MAX_LINE_BYTES} bytes in a line`)
  const value = parseJsonBody(bytes, options)
  if (isPlainObject(value)) return value
  throw new PaddockError('invalid_request', 'expected a JSON object')
}

/** Undefined members are left out of the JSON. */
function refusal({ line, error }: Refused, number: number): object {
  const { code, message } = error
  return { id: line.id, name: line.name, error: { code, message: `line ${number}: ${message}` } }
}

/** Standard input to standard output; exit code 1 where a line could not be read. */
export async function runLines(answer: Answer, options?: LineOptions): Promise<void> {
  const unread = await answerLines(process.stdin, process.stdout, answer, options)
  if (unread > 0) process.exitCode = 1
}
