// Strict JSON (RFC 8259) out of a growing or a whole text.
import { type CompleteJson, JsonAutomaton } from './json-automaton.ts'
import { type Reader, Source, trimSpace } from './source.ts'

export type JsonRead =
  | CompleteJson
  /** `problem`: what was expected and what came, at `at`. */
  | { kind: 'broken'; at: number; problem: string }
  /** The message ended inside the value. */
  | { kind: 'incomplete' }

/** Reads one JSON value from `at` on, white space before it allowed. */
export function* readJson(source: Source, at: number): Reader<JsonRead> {
  const automaton = new JsonAutomaton(source, at)
  for (;;) {
    const step = automaton.advance()
    if (step === 'complete') return automaton.result()
    if (step === 'broken') {
      const { at: brokenAt, expected } = automaton
      const problem = `expected ${expected}, came ${yield* source.quote(brokenAt)}`
      return { kind: 'broken', at: brokenAt, problem }
    }
    if (source.ended) return { kind: 'incomplete' }
    yield
  }
}

/** The same where the source has ended, so that nothing is waited for. */
export function readJsonNow(source: Source, at: number): JsonRead {
  const step = readJson(source, at).next()
  if (!step.done) throw new Error('a reader waits only where the source has not ended')
  return step.value
}

/** The same for a whole text, white space round the value allowed; anything after it is broken. */
export function parseJson(text: string): JsonRead {
  const source = Source.of(trimSpace(text))
  const read = readJsonNow(source, 0)
  if (read.kind !== 'complete' || read.end === source.length) return read
  const problem = `expected the end of the value, came ${source.quoteNow(read.end)}`
  return { kind: 'broken', at: read.end, problem }
}
