// Reasoning, situation by situation.
import { describe, test } from 'vitest'
import { call, check, type Row, stations } from './situations.testkit.ts'

describe('reasoning', () => {
  const rows: Row[] = [
    [
      'none: think tags are plain text',
      '<think>a</think>b',
      { content: '<think>a</think>b' },
      { thinking: 'none' },
    ],
    ['auto: the block is optional', 'Hi.', { content: 'Hi.' }, { thinking: 'auto' }],
    [
      'auto: an empty block is "" and not null',
      '<think></think>x',
      { reasoning: '', content: 'x' },
      { thinking: 'auto' },
    ],
    [
      'auto: without an opening tag all before the closing tag is reasoning',
      'So\n</think>\n\nHi.',
      { reasoning: 'So', content: 'Hi.', flags: ['THINK_OPEN_MISSING'] },
      { thinking: 'auto' },
    ],
    [
      'auto: a mention before the closing tag stays reasoning',
      `Use <tool_call> now.\n</think>\n${call('stations')}`,
      {
        reasoning: 'Use <tool_call> now.',
        calls: [stations],
        flags: ['THINK_OPEN_MISSING', 'TOOL_CALL_IN_REASONING'],
      },
      { thinking: 'auto' },
    ],
    [
      'auto: a closing tag after a call is text',
      `${call('stations')}\nx</think>y`,
      { content: 'x</think>y', calls: [stations], flags: ['STRAY_THINK_CLOSE', 'TEXT_AFTER_CALL'] },
      { thinking: 'auto' },
    ],
    [
      'auto: an opening tag after text is text',
      'a <think>',
      { content: 'a <think>', flags: ['THINK_NOT_AT_START'] },
      { thinking: 'auto' },
    ],
    [
      'the first closing tag closes',
      '<think>a</think>b</think>c',
      { reasoning: 'a', content: 'b</think>c', flags: ['STRAY_THINK_CLOSE'] },
      { thinking: 'auto' },
    ],
    [
      'prefilled: only the closing tag comes',
      'a\n</think>\n\nb',
      { reasoning: 'a', content: 'b' },
      { thinking: 'prefilled' },
    ],
    [
      'prefilled: the repeated tag is dropped and flagged',
      '<think>\na\n</think>b',
      { reasoning: 'a', content: 'b', flags: ['THINK_DUPLICATE_OPEN'] },
      { thinking: 'prefilled' },
    ],
    [
      'prefilled: reasoning that never ends has no content and no call',
      `a\n${call('stations')}`,
      {
        reasoning: `a\n${call('stations')}`,
        errors: ['REASONING_UNCLOSED'],
        flags: ['TOOL_CALL_IN_REASONING'],
      },
      { thinking: 'prefilled' },
    ],
    [
      'prefilled: nothing at all is unclosed',
      '',
      { reasoning: '', errors: ['REASONING_UNCLOSED'] },
      { thinking: 'prefilled', finish_reason: 'length' },
    ],
  ]
  test.each(rows)('%s', (...row) => check(row, 'hermes'))
})
