// What holds for every text: no split matters, nothing sent is taken back, nothing throws, time is linear; and leniencies.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { ToolDefinition } from '../../protocol/conversation.ts'
import { THINKING_MODES, TOOL_FORMATS } from '../../protocol/parse-codes.ts'
import { createParser } from './create-parser.ts'
import type { Delta, FinishReason, ParsedTurn, ParserOptions } from './parser.ts'

const tools: ToolDefinition[] = [
  {
    type: 'function',
    function: {
      name: 'f',
      description: '',
      parameters: { type: 'object', properties: { s: { type: 'string' }, a: { type: 'array' } } },
    },
  },
]

interface Run {
  turn: Omit<ParsedTurn, 'tail'>
  deltas: Delta[]
}

function parse(
  chunks: string[],
  options: Partial<ParserOptions>,
  finish: FinishReason = 'stop',
): Run {
  const parser = createParser({ format: 'hermes', thinking: 'none', tools, ...options })
  const deltas = chunks.flatMap((chunk) => parser.feed(chunk))
  const { tail, ...turn } = parser.end(finish)
  return { turn, deltas: [...deltas, ...tail] }
}

/** What a consumer of deltas alone has at the end. */
function assemble(deltas: Delta[]): unknown {
  const fields = { reasoning: '', content: '', calls: [] as { name: string; text: string }[] }
  for (const delta of deltas) {
    if (delta.kind === 'call') fields.calls[delta.index] = { name: delta.name, text: '' }
    else if (delta.kind === 'arguments') fields.calls[delta.index]!.text += delta.text
    else fields[delta.kind] += delta.text
  }
  return fields
}

function fieldsOf({ reasoning, content, calls }: Run['turn']): unknown {
  return {
    reasoning: reasoning ?? '',
    content: content ?? '',
    calls: calls.map((call) => ({ name: call.name, text: call.arguments_json })),
  }
}

/** Pieces of the grammars, whole and broken, so that random texts reach into every corner of them. */
const PIECES = [
  '<tool_call>',
  '</tool_call>',
  '<think>',
  '</think>',
  '<function=f>',
  '<function=',
  '</function>',
  '<parameter=s>',
  '<parameter=a>',
  '<parameter=',
  '</parameter>',
  '\n',
  '\n',
  ' ',
  '{',
  '}',
  '[',
  ']',
  '"',
  '\\',
  ':',
  ',',
  '1',
  'true',
  'x',
  '😀',
  '\ud800',
  '<',
  '```',
  '<|im_end|>',
  '<tool_',
  '</para',
  '{"name": "f", "arguments": {"s": "a"}}',
  '{"name": "f", "arguments": {}}',
  '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>',
  '<tool_call>\n<function=f>\n<parameter=s>\nv\n</parameter>\n</function>\n</tool_call>',
  '\n<parameter=s>\n',
  '\n</parameter>\n',
  '\n</function>\n',
  '✿FUNCTION✿: f\n',
  '✿ARGS✿: {}',
  '✿RESULT✿',
  '\nAction: f\n',
  'Action Input: {}',
  '\nObservation:',
  '\nFinal Answer: ',
]
const soup = fc
  .array(
    fc.oneof(
      { weight: 9, arbitrary: fc.constantFrom(...PIECES) },
      { weight: 1, arbitrary: fc.string({ unit: 'binary' }) },
    ),
    { maxLength: 24 },
  )
  .map((pieces) => pieces.join(''))
const options = fc.record({
  format: fc.constantFrom(...TOOL_FORMATS),
  thinking: fc.constantFrom(...THINKING_MODES),
  closeAtStop: fc.boolean(),
  thinkingEndsAtToolCall: fc.boolean(),
  acceptBareFunction: fc.boolean(),
  acceptUnclosedParameter: fc.boolean(),
  json5: fc.boolean(),
})
const finish = fc.constantFrom<FinishReason>('stop', 'length')
const runs = { numRuns: 3000, seed: 42 }

describe('any text', () => {
  test('gives the same turn and the same fields from deltas under any split', () => {
    fc.assert(
      fc.property(
        soup,
        options,
        finish,
        fc.array(fc.nat(), { maxLength: 8 }),
        (text, opts, end, cuts) => {
          const whole = parse([text], opts, end)
          const edges = [
            0,
            ...cuts.map((cut) => cut % (text.length + 1)).sort((a, b) => a - b),
            text.length,
          ]
          const split = parse(
            edges.slice(1).map((edge, index) => text.slice(edges[index], edge)),
            opts,
            end,
          )
          const units = parse(text.split(''), opts, end)
          expect(split.turn).toEqual(whole.turn)
          expect(units.turn).toEqual(whole.turn)
          for (const { turn, deltas } of [whole, split, units])
            expect(assemble(deltas)).toEqual(fieldsOf(turn))
        },
      ),
      runs,
    )
  })

  test('has spans that lie in the text, and blocks that do not overlap', () => {
    fc.assert(
      fc.property(soup, options, finish, (text, opts, end) => {
        const { calls, errors } = parse([text], opts, end).turn
        const blocks = errors.filter(({ code }) => code !== 'STRAY_CLOSE_TAG')
        const spans = [...calls, ...blocks].sort((a, b) => a.start - b.start)
        let last = 0
        for (const span of spans) {
          expect(span.start).toBeGreaterThanOrEqual(last)
          expect(span.end).toBeGreaterThanOrEqual(span.start)
          last = span.end
        }
        expect(last).toBeLessThanOrEqual(text.length)
        for (const { message } of errors) expect(message).toMatch(/^.{20,}$/s)
      }),
      runs,
    )
  })

  test('gives arguments_json that JSON.parse reads as the arguments', () => {
    fc.assert(
      fc.property(soup, options, finish, (text, opts, end) => {
        for (const call of parse([text], opts, end).turn.calls)
          expect(JSON.parse(call.arguments_json)).toEqual(call.arguments)
      }),
      runs,
    )
  })

  test.each(TOOL_FORMATS)('never throws under %s', (format) => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'binary', maxLength: 200 }),
        fc.constantFrom(...THINKING_MODES),
        finish,
        (text, thinking, end) => {
          const { turn } = parse([text], { format, thinking }, end)
          expect(turn.calls).toEqual([])
        },
      ),
      { numRuns: 500, seed: 7 },
    )
  })
})

describe('leniencies act only where they are asked for, and then say so', () => {
  const complete = '<tool_call>\n{"name": "f", "arguments": {"s": "a"}}'
  const xmlComplete = '<tool_call>\n<function=f>\n<parameter=s>\na\n</parameter>\n</function>'
  const bare = '<function=f>\n<parameter=s>\na\n</parameter>\n</function>\n</tool_call>'
  const unclosed = '<tool_call>\n<function=f>\n<parameter=s>\na\n</function>\n</tool_call>'
  const unclosedBefore = `<tool_call>\n<function=f>\n<parameter=s>\na\n  <parameter=a>\n[]\n</parameter>\n</function>\n</tool_call>`
  const loose = "<tool_call>\n{name: 'f', 'arguments': {'s': 'a',},}\n</tool_call>"
  const looseValue = "<tool_call><function=f><parameter=a>['x',]</parameter></function></tool_call>"

  test.each([
    ['closeAtStop', 'hermes', complete, '{"s":"a"}', 'UNCLOSED_CALL'],
    ['closeAtStop', 'qwen3-coder', xmlComplete, '{"s":"a"}', 'UNCLOSED_CALL'],
    ['acceptBareFunction', 'qwen3-coder', bare, '{"s":"a"}', 'MISSING_OPEN_TAG'],
    ['acceptUnclosedParameter', 'qwen3-coder', unclosed, '{"s":"a"}', 'UNCLOSED_PARAMETER'],
    [
      'acceptUnclosedParameter',
      'qwen3-coder',
      unclosedBefore,
      '{"s":"a","a":[]}',
      'UNCLOSED_PARAMETER',
    ],
    ['json5', 'hermes', loose, '{"s":"a"}', 'INVALID_JSON'],
    ['json5', 'qwen3-coder', looseValue, '{"a":["x"]}', 'PARAM_INVALID_JSON'],
  ] as const)('%s under %s', (leniency, format, text, json, code) => {
    const strict = parse([text], { format }).turn
    expect(strict.errors.map((error) => error.code)).toEqual([code])
    expect(strict.leniencies).toEqual([])
    const lenient = parse([text], { format, [leniency]: true }).turn
    expect(lenient.calls.map((call) => call.arguments_json)).toEqual([json])
    expect(lenient.errors).toEqual([])
    expect(lenient.leniencies).toEqual([leniency])
  })

  test('thinkingEndsAtToolCall takes the call and flags it', () => {
    const text = `Hm.\n${complete}\n</tool_call>`
    expect(parse([text], { thinking: 'prefilled' }).turn.calls).toEqual([])
    const { reasoning, calls, flags, leniencies } = parse([text], {
      thinking: 'prefilled',
      thinkingEndsAtToolCall: true,
    }).turn
    expect({ reasoning, flags, leniencies }).toEqual({
      reasoning: 'Hm.',
      flags: ['TOOL_CALL_IN_REASONING'],
      leniencies: ['thinkingEndsAtToolCall'],
    })
    expect(calls).toHaveLength(1)
  })

  test('closeAtStop takes nothing that the token limit cut', () => {
    const { calls, errors } = parse([complete], { closeAtStop: true }, 'length').turn
    expect(calls).toEqual([])
    expect(errors.map((error) => error.code)).toEqual(['TRUNCATED_CALL'])
  })
})

test('deltas come as soon as they are certain', () => {
  const parser = createParser({ format: 'hermes', thinking: 'auto', tools })
  expect(parser.feed('<think>\nHm')).toEqual([{ kind: 'reasoning', text: 'Hm' }])
  expect(parser.feed('\n\n</thi')).toEqual([])
  expect(parser.feed('nk>\n\nYes.\n')).toEqual([{ kind: 'content', text: 'Yes.' }])
  expect(parser.feed('<tool_call>\n{"name": "f", "arguments": {"s": "a"}}\n</tool_call')).toEqual(
    [],
  )
  expect(parser.feed('>')).toEqual([
    { kind: 'call', index: 0, name: 'f' },
    { kind: 'arguments', index: 0, text: '{"s":"a"}' },
  ])
  expect(parser.feed('\ndone')).toEqual([{ kind: 'content', text: '\ndone' }])
  expect(parser.end('stop').tail).toEqual([])
})

test('an end-of-turn token in pieces, with white space after it, is no part of the message', () => {
  for (const marker of ['<|im_end|>', '<|endoftext|>'])
    expect(parse(`a\n${marker}\n `.split(''), {}).turn.content).toBe('a\n')
})
