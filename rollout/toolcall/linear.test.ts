// Time is linear in the text, whatever the text: no repetition of a token of the grammars makes a reader go back and back.
import { describe, expect, test } from 'vitest'
import type { ToolFormat } from '../../protocol/parse-codes.ts'
import { createParser } from './create-parser.ts'
import type { FinishReason, Leniencies } from './parser.ts'

const tools = [
  {
    type: 'function' as const,
    function: {
      name: 'f',
      description: '',
      parameters: { type: 'object', properties: { s: { type: 'string' }, a: { type: 'array' } } },
    },
  },
]
const LENIENT: Leniencies = {
  closeAtStop: true,
  thinkingEndsAtToolCall: true,
  acceptBareFunction: true,
  acceptUnclosedParameter: true,
  json5: true,
}

function milliseconds(run: () => unknown): number {
  const start = performance.now()
  run()
  return performance.now() - start
}

/** The yardstick: looking at every unit of the text once. */
function plainPass(text: string): number {
  let sum = 0
  for (let at = 0; at < text.length; at++) sum += text.charCodeAt(at)
  return sum
}

function parse(
  format: ToolFormat,
  chunks: string[],
  finish: FinishReason = 'stop',
  leniencies: Leniencies = {},
): number {
  const parser = createParser({ format, thinking: 'auto', tools, ...leniencies })
  for (const chunk of chunks) parser.feed(chunk)
  return parser.end(finish).calls.length
}

const fastest = (run: () => unknown) =>
  Math.min(...Array.from({ length: 3 }, () => milliseconds(run)))

describe('one argument of 1 MB', () => {
  const big = 'a'.repeat(2 ** 20)
  test.each([
    ['hermes', `<tool_call>\n{"name": "f", "arguments": {"s": "${big}"}}\n</tool_call>`],
    [
      'qwen3-coder',
      `<tool_call>\n<function=f>\n<parameter=s>\n${big}\n</parameter>\n</function>\n</tool_call>`,
    ],
  ] as const)('costs some passes over the text (%s)', (format, text) => {
    expect(parse(format, [text])).toBe(1)
    const yardstick = fastest(() => plainPass(text))
    expect(fastest(() => parse(format, [text])) / yardstick).toBeLessThan(100)
  })
})

describe('100,000 repetitions', () => {
  // A linear parser needs some hundred times the plain pass here, a quadratic one some ten thousand times.
  const LIMIT = 3000
  const SHARED = [
    '<tool_call>',
    '</tool_call>',
    '<think>',
    '</think>',
    '<function=',
    '<function=f>',
    '</function>',
    '<parameter=',
    '<parameter=s>',
    '</parameter>',
    '\n',
    ' ',
    '{',
    '}',
    '[',
    '"',
    '\\',
    ':',
    ',',
    '`',
    '```\n',
    '<',
    '<|im_end|>',
    '\n<function=f>',
    '\n<parameter=s>',
    '\n</parameter>',
    '{"',
    '{"a":',
    '{\n',
    "'",
    '/*',
    '1',
    '-',
    't',
    '<tool_call>{',
    '<tool_call>[',
    '<tool_call>"',
    '<tool_call>{"',
    '<tool_call>{"a":"</tool_call>',
  ]
  const LEGACY = [
    '✿FUNCTION✿:',
    '✿ARGS✿:',
    '✿RESULT✿',
    '✿FUNCTION✿:f\n✿ARGS✿:{"',
    '\nAction:',
    '\nAction Input:',
    '\nAction:f\nAction Input:{"',
    '\nObservation:',
    '\nFinal Answer:',
    '{',
    '"',
    '\n',
  ]

  function expectLinear(
    text: string,
    format: ToolFormat,
    finish: FinishReason,
    leniencies: Leniencies,
  ): void {
    const yardstick = fastest(() => plainPass(text))
    const spent = milliseconds(() => parse(format, [text], finish, leniencies))
    expect(spent / yardstick).toBeLessThan(LIMIT)
  }

  test.each(SHARED)('of %j take linear time', (token) => {
    const text = token.repeat(100_000)
    expectLinear(text, 'hermes', 'stop', {})
    expectLinear(text, 'qwen3-coder', 'stop', {})
  })

  test.each(SHARED)('of %j inside a value take linear time', (token) => {
    const repeated = token.repeat(25_000)
    expectLinear(
      `<tool_call>{"name": "f", "arguments": {"s": "${repeated}`,
      'hermes',
      'stop',
      LENIENT,
    )
    expectLinear(
      `<tool_call>\n<function=f>\n<parameter=s>\n${repeated}`,
      'qwen3-coder',
      'stop',
      LENIENT,
    )
    expectLinear(
      `<tool_call>\n<function=f>\n<parameter=s>\n${repeated}`,
      'qwen3-coder',
      'length',
      {},
    )
  })

  test.each(LEGACY)('of %j take linear time in the legacy forms', (token) => {
    const text = token.repeat(100_000)
    expectLinear(text, 'qwen-fncall', 'stop', {})
    expectLinear(text, 'react', 'stop', {})
  })

  test.each([
    '<tool_call><function=f><parameter=s></tool_call>',
    '<tool_call>\n<function=f>\n<parameter=s>\n</tool_call>\n',
    '<tool_call>\n<function=f>\n<parameter=s>\n<parameter=a>\n</parameter>\nx\n</tool_call>\n',
    '\n<function=f>\n<parameter=s>\n</tool_call>',
  ])('of the unclosed value %j take linear time', (block) => {
    const text = block.repeat(20_000)
    expectLinear(text, 'qwen3-coder', 'stop', {})
    expectLinear(`${text}</parameter></function></tool_call>`, 'qwen3-coder', 'stop', {})
    expectLinear(text, 'hermes', 'stop', {})
  })
})

test('a text in chunks of one unit takes linear time', () => {
  const nested = `${'['.repeat(400)}"${'a'.repeat(100_000)}"${']'.repeat(400)}`
  for (const text of [
    `<tool_call>\n{"name": "f", "arguments": {"s": ${nested}}}\n</tool_call>`,
    `<think>${'\n'.repeat(100_000)}`,
  ]) {
    const yardstick = fastest(() => plainPass(text))
    expect(milliseconds(() => parse('hermes', text.split(''))) / yardstick).toBeLessThan(20_000)
  }
})
