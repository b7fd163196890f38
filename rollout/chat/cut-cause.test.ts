import { describe, expect, test } from 'vitest'
import { classifyCut } from './cut-cause.ts'

/** Ids are code points here, so that a text says its ids. */
const decode = (ids: Int32Array) => String.fromCodePoint(...ids)
const idsOf = (text: string) => Int32Array.from([...text].map((c) => c.codePointAt(0) as number))
const chainOf = (prompt: string, sampled: string) => ({
  ids: idsOf(prompt + sampled),
  mask: Uint8Array.from([...[...prompt].map(() => 0), ...[...sampled].map(() => 1)]),
})

const PROMPT = '<|im_start|>user\nFirst?<|im_end|>\n<|im_start|>assistant\n'
const NEXT = '\n<|im_start|>user\nSecond?<|im_end|>\n<|im_start|>assistant\n'

const cases: [name: string, cause: string, prompt: string, sampled: string, rendered: string][] = [
  [
    'reasoning of the turn is gone',
    'thinking_stripped',
    PROMPT,
    '<think>\nweigh it\n</think>\n\nBlue.<|im_end|>',
    `${PROMPT}Blue.<|im_end|>${NEXT}`,
  ],
  [
    'reasoning whose opening tag was prefilled is gone',
    'thinking_stripped',
    `${PROMPT}<think>\n`,
    'weigh it\n</think>\n\nBlue.<|im_end|>',
    `${PROMPT}Blue.<|im_end|>${NEXT}`,
  ],
  [
    'an empty block was put in',
    'thinking_stripped',
    PROMPT,
    'Blue.<|im_end|>',
    `${PROMPT}<think>\n\n</think>\n\nBlue.<|im_end|>${NEXT}`,
  ],
  [
    'compact JSON of a call was spaced',
    'json_spacing',
    PROMPT,
    '<tool_call>\n{"name":"f","arguments":{"a":1}}\n</tool_call><|im_end|>',
    `${PROMPT}<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call><|im_end|>${NEXT}`,
  ],
  [
    'a newline before a call was doubled',
    'whitespace',
    PROMPT,
    'Looking.\n<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call><|im_end|>',
    `${PROMPT}Looking.\n\n<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call><|im_end|>${NEXT}`,
  ],
  [
    'the system turn was written differently',
    'template',
    `<|im_start|>system\nMonday<|im_end|>\n${PROMPT}`,
    'Blue.<|im_end|>',
    `<|im_start|>system\nTuesday<|im_end|>\n${PROMPT}Blue.<|im_end|>${NEXT}`,
  ],
  [
    'the answer itself is another',
    'unknown',
    PROMPT,
    'Blue.<|im_end|>',
    `${PROMPT}Green.<|im_end|>${NEXT}`,
  ],
]

describe('classifyCut', () => {
  test.each(cases)('%s: %s', (_, cause, prompt, sampled, rendered) => {
    expect(classifyCut(chainOf(prompt, sampled), idsOf(rendered), decode)).toBe(cause)
  })

  test('the same text in other ids is the template’s doing', () => {
    const vocabulary = new Map([
      [1, '</tool_call>'],
      [2, '</tool'],
      [3, '_call>'],
    ])
    const spell = (list: Int32Array) => [...list].map((id) => vocabulary.get(id)).join('')
    const chain = { ids: Int32Array.of(2, 3), mask: Uint8Array.of(1, 1) }
    expect(classifyCut(chain, Int32Array.of(1), spell)).toBe('template')
  })

  test('without a tokenizer the cause is not known', () => {
    expect(classifyCut(chainOf(PROMPT, 'Blue.'), idsOf('x'), null)).toBe('unknown')
  })

  test('text full of unclosed tags is compared in time', () => {
    const text = '<think><tool_call><|im_start|>assistant\n'.repeat(20_000)
    const started = performance.now()
    expect(classifyCut({ ids: idsOf(''), mask: new Uint8Array(0) }, idsOf(''), () => text)).toBe(
      'template',
    )
    const chain = { ids: Int32Array.of(1), mask: Uint8Array.of(1) }
    expect(classifyCut(chain, Int32Array.of(2), (ids) => text + ids[0])).toBe('unknown')
    expect(performance.now() - started).toBeLessThan(5_000)
  })
})
