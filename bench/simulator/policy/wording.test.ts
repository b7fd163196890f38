import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Call, CallFormat } from './wording.ts'
import { leadIn, pythonJson, writeBroken, writeCalls, writeCutOpen } from './wording.ts'

const dice = (seed: string, temperature = 1, topP = 1) => ({ seed, temperature, topP })
const call: Call = {
  name: 'mail_send',
  arguments: { to: ['a@b.example'], body: 'Hello "you"', n: 2 },
}

test('hermes calls have the canonical form, blocks joined by a line feed', () => {
  expect(writeCalls([{ name: 'f', arguments: { a: 1, b: [true, null] } }, call], 'hermes')).toBe(
    '<tool_call>\n{"name": "f", "arguments": {"a": 1, "b": [true, null]}}\n</tool_call>\n' +
      '<tool_call>\n{"name": "mail_send", "arguments": {"to": ["a@b.example"], "body": "Hello \\"you\\"", "n": 2}}\n</tool_call>',
  )
})

test('qwen3-coder calls have the canonical form: text as it is, other values as JSON', () => {
  expect(writeCalls([call], 'qwen3-coder')).toBe(
    '<tool_call>\n<function=mail_send>\n<parameter=to>\n["a@b.example"]\n</parameter>\n' +
      '<parameter=body>\nHello "you"\n</parameter>\n<parameter=n>\n2\n</parameter>\n</function>\n</tool_call>',
  )
})

test('a call without arguments keeps the frame of its form', () => {
  const bare = [{ name: 'list', arguments: {} }]
  expect(writeCalls(bare, 'hermes')).toBe(
    '<tool_call>\n{"name": "list", "arguments": {}}\n</tool_call>',
  )
  expect(writeCalls(bare, 'qwen3-coder')).toBe(
    '<tool_call>\n<function=list>\n</function>\n</tool_call>',
  )
})

test('JSON is spaced as in Python, and reads back as the same value', () => {
  expect(pythonJson({ a: [1, 'x: y, z'], b: {} })).toBe('{"a": [1, "x: y, z"], "b": {}}')
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      expect(JSON.parse(pythonJson(value))).toEqual(JSON.parse(JSON.stringify(value)))
    }),
  )
})

/** True where a block follows the grammar of its form. */
function isGrammatical(text: string, format: CallFormat): boolean {
  const block = /^<tool_call>\n([\s\S]*)\n<\/tool_call>$/.exec(text)?.[1]
  if (block === undefined) return false
  if (format === 'qwen3-coder')
    return /^<function=[^<>\n]+>\n(<parameter=[^<>\n]+>\n[^<]*\n<\/parameter>\n)*<\/function>$/.test(
      block,
    )
  try {
    JSON.parse(block)
    return true
  } catch {
    return false
  }
}

describe.each(['hermes', 'qwen3-coder'] as const)('%s', (format) => {
  const seeds = Array.from({ length: 60 }, (_, i) => String(i))
  const calls = [call, { name: 'list', arguments: {} }, { name: 'f', arguments: { a: { b: 1 } } }]

  test('a whole call follows the grammar, a broken one never does, in whichever way it breaks', () => {
    for (const one of calls) {
      expect(isGrammatical(writeCalls([one], format), format)).toBe(true)
      for (const seed of seeds)
        expect(isGrammatical(writeBroken(one, format, dice(seed)), format)).toBe(false)
    }
  })

  test('there is more than one way to break a call', () => {
    const ways = new Set(seeds.map((seed) => writeBroken(call, format, dice(seed))))
    expect(ways.size).toBe(3)
  })

  test('a call that is cut open names its function and has no end, whatever follows', () => {
    for (const one of calls) {
      const open = writeCutOpen(one, format)
      expect(open.startsWith('<tool_call>\n')).toBe(true)
      expect(open).toContain(one.name)
      expect(open).not.toContain('</tool_call>')
      expect(open).not.toContain('</parameter>')
    }
  })
})

test('a hermes call that is cut open stands inside a string: closing it makes it whole', () => {
  const closed = `${writeCutOpen(call, 'hermes')} and so on"}}\n</tool_call>`
  expect(isGrammatical(closed, 'hermes')).toBe(true)
})

const distinct = (temperature: number, topP = 1) =>
  new Set(Array.from({ length: 400 }, (_, i) => leadIn(dice(`seed ${i}`, temperature, topP)))).size

test('lead-ins vary more the higher the temperature, and not at all at 0', () => {
  const counts = [0, 0.2, 0.7, 1, 1.5].map((temperature) => distinct(temperature))
  expect(counts[0]).toBe(1)
  expect(leadIn(dice('any', 0))).toBe('')
  expect(counts).toEqual(counts.toSorted((a, b) => a - b))
  expect(new Set(counts).size).toBeGreaterThan(3)
})

test('at temperature 1 two members of a group rarely use the same words', () => {
  expect(distinct(1)).toBeGreaterThan(380)
})

test('a small nucleus leaves only the likeliest words', () => {
  expect(distinct(1, 0.01)).toBe(1)
  expect(distinct(1, 0.5)).toBeLessThan(distinct(1))
})
