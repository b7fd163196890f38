// The hermes form, situation by situation.
import { describe, test } from 'vitest'
import {
  call,
  check,
  city,
  json,
  param,
  type Row,
  rome,
  stations,
  xml,
} from './situations.testkit.ts'

describe('hermes', () => {
  const rows: Row[] = [
    [
      'text before a call loses the line feed at the edge',
      `Hi.\n${call('stations')}`,
      { content: 'Hi.', calls: [stations] },
    ],
    [
      'text between and after calls is kept and flagged',
      `${call('stations')}\nthen\n${call('weather', city)}\ndone`,
      { content: 'then\ndone', calls: [stations, rome], flags: ['TEXT_AFTER_CALL'] },
    ],
    ['several calls', `${call('stations')}${call('weather', city)}`, { calls: [stations, rome] }],
    [
      'one bad block among good ones: the others stand',
      [call('stations'), json('{"name": "weather",}'), call('weather', city)].join('\n'),
      { calls: [stations, rome], errors: ['INVALID_JSON'] },
    ],
    [
      'white space round the JSON is free',
      '<tool_call> \t\r\n{"name":"stations","arguments":{}}\n\n </tool_call>',
      { calls: [stations] },
    ],
    [
      'a closing tag in a JSON string is data',
      call('weather', '{"city": "a </tool_call> b"}'),
      { calls: [['weather', '{"city":"a </tool_call> b"}']] },
    ],
    [
      'a whole call in a JSON string is data',
      call(
        'weather',
        String.raw`{"city": "<tool_call>\n{\"name\": \"stations\", \"arguments\": {}}\n</tool_call>"}`,
      ),
      {
        calls: [
          [
            'weather',
            String.raw`{"city":"<tool_call>\n{\"name\": \"stations\", \"arguments\": {}}\n</tool_call>"}`,
          ],
        ],
      },
    ],
    [
      'Unicode escapes are decoded and written literally',
      call('weather', String.raw`{"city": "\u00e9\ud83d\ude00\/"}`),
      { calls: [['weather', '{"city":"é😀/"}']] },
    ],
    [
      'half a surrogate pair is flagged',
      call('weather', String.raw`{"city": "\ud83d"}`),
      { calls: [['weather', String.raw`{"city":"\ud83d"}`]], flags: ['LONE_SURROGATE'] },
    ],
    [
      'an invalid escape is refused',
      call('weather', String.raw`{"city": "C:\data"}`),
      { errors: ['INVALID_JSON'] },
    ],
    [
      'a raw line break in a string is refused',
      call('weather', '{"city": "a\nb"}'),
      { errors: ['INVALID_JSON'] },
    ],
    [
      'a raw tab in a string is refused',
      call('weather', '{"city": "a\tb"}'),
      { errors: ['INVALID_JSON'] },
    ],
    [
      'single quotes are refused',
      json("{'name': 'stations', 'arguments': {}}"),
      { errors: ['INVALID_JSON'] },
    ],
    [
      'a trailing comma is refused',
      call('weather', '{"city": "Rome",}'),
      { errors: ['INVALID_JSON'] },
    ],
    [
      'bare keys are refused',
      json('{name: "stations", arguments: {}}'),
      { errors: ['INVALID_JSON'] },
    ],
    [
      'comments are refused',
      json('{"name": "stations", /* all */ "arguments": {}}'),
      { errors: ['INVALID_JSON'] },
    ],
    ['True is refused', call('weather', '{"metric": True}'), { errors: ['INVALID_JSON'] }],
    ['None is refused', call('weather', '{"city": None}'), { errors: ['INVALID_JSON'] }],
    ['NaN is refused', call('weather', '{"days": NaN}'), { errors: ['INVALID_JSON'] }],
    ['-Infinity is refused', call('weather', '{"days": -Infinity}'), { errors: ['INVALID_JSON'] }],
    ['a leading zero is refused', call('weather', '{"days": 03}'), { errors: ['INVALID_JSON'] }],
    [
      'a surplus brace is refused',
      json('{"name": "stations", "arguments": {}}}'),
      { errors: ['TRAILING_DATA'] },
    ],
    [
      'a missing brace is refused',
      json('{"name": "stations", "arguments": {}'),
      { errors: ['INVALID_JSON'] },
    ],
    [
      'two objects in a block are refused',
      json('{"name": "stations", "arguments": {}}\n{"name": "stations", "arguments": {}}'),
      { errors: ['TRAILING_DATA'] },
    ],
    [
      'an array of calls is refused',
      json('[{"name": "stations", "arguments": {}}]'),
      { errors: ['NOT_AN_OBJECT'] },
    ],
    ['a number for a call is refused', json('42'), { errors: ['NOT_AN_OBJECT'] }],
    [
      'parameters for arguments is refused',
      json('{"name": "stations", "parameters": {}}'),
      { errors: ['MISSING_ARGUMENTS'] },
    ],
    [
      'missing arguments are refused',
      json('{"name": "stations"}'),
      { errors: ['MISSING_ARGUMENTS'] },
    ],
    [
      'a string for arguments is refused',
      call('weather', '"{}"'),
      { errors: ['ARGUMENTS_NOT_OBJECT'] },
    ],
    [
      'null for arguments is refused',
      call('weather', 'null'),
      { errors: ['ARGUMENTS_NOT_OBJECT'] },
    ],
    [
      'an array for arguments is refused',
      call('weather', '[]'),
      { errors: ['ARGUMENTS_NOT_OBJECT'] },
    ],
    ['a missing name is refused', json('{"arguments": {}}'), { errors: ['MISSING_NAME'] }],
    [
      'null for a name is refused',
      json('{"name": null, "arguments": {}}'),
      { errors: ['INVALID_NAME'] },
    ],
    ['an empty name is refused', call(''), { errors: ['INVALID_NAME'] }],
    [
      'an unknown function is flagged',
      call('metro'),
      { calls: [['metro', '{}']], flags: ['UNKNOWN_FUNCTION'] },
    ],
    [
      'more keys beside name and arguments are flagged',
      json('{"id": 1, "name": "stations", "arguments": {}}'),
      { calls: [stations], flags: ['EXTRA_KEYS'] },
    ],
    [
      'a key twice is refused',
      json('{"name": "stations", "name": "weather", "arguments": {}}'),
      { errors: ['DUPLICATE_KEY'] },
    ],
    [
      'a key twice deep inside is refused, spelled either way',
      call('weather', String.raw`{"box": [{"a": 1, "\u0061": 2}]}`),
      { errors: ['DUPLICATE_KEY'] },
    ],
    [
      'integers beyond 2^53 keep their digits',
      call('weather', '{"days": 9007199254740993}'),
      { calls: [['weather', '{"days":9007199254740993}']] },
    ],
    [
      'numbers keep their spelling',
      call('weather', '{"days": [1.10, 1E5, -0]}'),
      { calls: [['weather', '{"days":[1.10,1E5,-0]}']] },
    ],
    [
      'no closing tag, JSON complete: refused',
      '<tool_call>\n{"name": "stations", "arguments": {}}',
      { errors: ['UNCLOSED_CALL'] },
    ],
    [
      'truncated by the token limit: refused, earlier calls stand',
      `${call('stations')}\n<tool_call>\n{"name": "weather", "arguments": {"city": "Ro`,
      { calls: [stations], errors: ['TRUNCATED_CALL'] },
      { finish_reason: 'length' },
    ],
    [
      'a doubled opening tag: error for the first, the second is taken',
      `<tool_call>\n${call('stations')}`,
      { calls: [stations], errors: ['UNCLOSED_CALL'] },
    ],
    [
      'a tag mentioned in prose is text, and a later call is taken',
      `Write <tool_call> first.\n${call('stations')}`,
      { content: 'Write <tool_call> first.', calls: [stations], flags: ['LITERAL_TAG'] },
    ],
    [
      'a mention that is closed is an error',
      'Write <tool_call> and </tool_call> round it.',
      { content: 'Write \n round it.', errors: ['INVALID_JSON'], flags: ['TEXT_AFTER_CALL'] },
    ],
    [
      'a fence round a call is flagged',
      `\`\`\`\n${call('stations')}\n\`\`\``,
      { content: '```\n```', calls: [stations], flags: ['FENCED_CALL', 'TEXT_AFTER_CALL'] },
    ],
    [
      'a closed fence before a call is none round it',
      `\`\`\`\ncode\n\`\`\`\n${call('stations')}`,
      { content: '```\ncode\n```', calls: [stations] },
    ],
    [
      'code in one line of backticks is no fence',
      `\`\`\`ls\`\`\`
${call('stations')}`,
      { content: '```ls```', calls: [stations] },
    ],
    [
      'a fence inside a call is refused',
      json('```json\n{"name": "stations", "arguments": {}}\n```'),
      { errors: ['INVALID_JSON'] },
    ],
    [
      'bare JSON is text and flagged',
      '{"name": "stations", "arguments": {}}',
      { content: '{"name": "stations", "arguments": {}}', flags: ['UNTAGGED_CALL'] },
    ],
    [
      'fenced JSON is text and flagged',
      '```json\n{"name": "stations", "arguments": {}}\n```',
      { content: '```json\n{"name": "stations", "arguments": {}}\n```', flags: ['UNTAGGED_CALL'] },
    ],
    [
      'JSON in other tags is text and flagged',
      '<tools>{"name": "stations", "arguments": {}}</tools>',
      { content: '<tools>{"name": "stations", "arguments": {}}</tools>', flags: ['UNTAGGED_CALL'] },
    ],
    [
      'JSON that is no call is just text',
      'Here: {"name": "Ann"} and {"arguments": []}',
      { content: 'Here: {"name": "Ann"} and {"arguments": []}' },
    ],
    [
      'a call in thinking is none',
      `<think>\n${call('stations')}\n</think>\n\nNo.`,
      { reasoning: call('stations'), content: 'No.', flags: ['TOOL_CALL_IN_REASONING'] },
      { thinking: 'auto' },
    ],
    [
      'a </think> in an argument ends nothing',
      `${call('weather', '{"city": "</think>"}')}`,
      { calls: [['weather', '{"city":"</think>"}']] },
      { thinking: 'auto' },
    ],
    ['an XML body is refused', xml(param('city', 'Rome')), { errors: ['WRONG_FORMAT'] }],
    [
      'a call quoted in an XML body is not promoted',
      xml(param('city', `a ${call('stations')} b`)),
      { errors: ['WRONG_FORMAT'] },
    ],
    ['nothing in a block is refused', '<tool_call>\n</tool_call>', { errors: ['EMPTY_CALL'] }],
    [
      'a partial tag at the end comes out and is flagged',
      'Hm. <tool_',
      { content: 'Hm. <tool_', flags: ['PARTIAL_TAG'] },
    ],
    [
      'text that only begins like a tag is text',
      '<toolbox> a<b </tool>',
      { content: '<toolbox> a<b </tool>' },
    ],
    [
      'a closing tag that closes nothing is reported once in a run and kept',
      'a </tool_call> b </tool_call>',
      { content: 'a </tool_call> b </tool_call>', errors: ['STRAY_CLOSE_TAG'] },
    ],
    [
      'a closing tag beside a mention is part of the prose',
      'Not </tool_call> but <tool_call> opens.',
      { content: 'Not </tool_call> but <tool_call> opens.', flags: ['LITERAL_TAG'] },
    ],
    [
      'markup in a broken call is never promoted while its block lasts',
      json('{"name": "weather", "arguments": <tool_call>{"name": "stations", "arguments": {}}'),
      { errors: ['INVALID_JSON'] },
    ],
    [
      'a final end-of-turn token and white space after it are no part of the message',
      `Hi.\n<|im_end|>\n `,
      { content: 'Hi.\n' },
    ],
    [
      'an end-of-turn token with text after it is text',
      'a<|im_end|>b',
      { content: 'a<|im_end|>b' },
    ],
    [
      'JSON of 513 levels is refused',
      call('weather', `{"box": ${'['.repeat(511)}${']'.repeat(511)}}`),
      { errors: ['INVALID_JSON'] },
    ],
    [
      'an invented tool response is plain text',
      `${call('stations')}\n<tool_response>\n12\n</tool_response>`,
      {
        content: '<tool_response>\n12\n</tool_response>',
        calls: [stations],
        flags: ['TEXT_AFTER_CALL'],
      },
    ],
  ]
  test.each(rows)('%s', (...row) => check(row, 'hermes'))
})
