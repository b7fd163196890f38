// Every case of the corpus: whole, one unit at a time, and under random splits.
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { answerParse } from './answer.ts'

interface Case {
  id: string
  text?: string
  chunks?: string[]
  expect: {
    reasoning: string | null
    content: string | null
    calls: { name: string; arguments: unknown; arguments_json?: string }[]
    errors: { code: string }[]
    flags: string[]
  }
}

const cases: Case[] = readFileSync(new URL('./testdata/cases-dev.jsonl', import.meta.url), 'utf8')
  .trimEnd()
  .split('\n')
  .map((line) => JSON.parse(line))

/** The answer as far as the corpus states it; flags are a set. */
function stated(line: Case, chunks: string[]): unknown {
  const { reasoning, content, calls, errors, flags } = answerParse({
    ...line,
    text: undefined,
    chunks,
  })
  return {
    reasoning,
    content,
    calls: calls.map(({ name, arguments: value, arguments_json }, index) => ({
      name,
      arguments: value,
      ...(line.expect.calls[index]?.arguments_json !== undefined && { arguments_json }),
    })),
    errors: errors.map(({ code }) => ({ code })),
    flags,
  }
}

function expected(line: Case): unknown {
  return { ...line.expect, flags: [...line.expect.flags].sort() }
}

test('the corpus is all there', () => {
  expect(cases).toHaveLength(165)
})

describe.each(cases.map((line) => [line.id, line] as const))('%s', (_id, line) => {
  const text = line.text ?? line.chunks?.join('') ?? ''

  test('gives what the corpus expects', () => {
    expect(stated(line, line.chunks ?? [text])).toEqual(expected(line))
  })

  test('gives the same one unit at a time', () => {
    expect(stated(line, text.split(''))).toEqual(expected(line))
  })

  test('gives the same under 200 random splits', () => {
    const cuts = fc.array(fc.nat(text.length), { maxLength: 12 })
    fc.assert(
      fc.property(cuts, (positions) => {
        const edges = [0, ...positions.sort((a, b) => a - b), text.length]
        const chunks = edges.slice(1).map((edge, index) => text.slice(edges[index], edge))
        expect(stated(line, chunks)).toEqual(expected(line))
      }),
      { numRuns: 200, seed: 20251130 },
    )
  })
})
