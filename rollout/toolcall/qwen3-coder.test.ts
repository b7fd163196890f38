// The XML-looking form, situation by situation.
import { describe, test } from 'vitest'
import { call, check, json, param, type Row, rome, stations, xml } from './situations.testkit.ts'

describe('qwen3-coder', () => {
  const rows: Row[] = [
    [
      'one line feed goes at each end of a value and nothing else',
      xml('<parameter=city>\n\n  a \n\n</parameter>'),
      { calls: [['weather', String.raw`{"city":"\n  a \n"}`]] },
    ],
    [
      'no parameters',
      '<tool_call><function=stations></function></tool_call>',
      { calls: [stations] },
    ],
    ['JSON is refused', call('stations'), { errors: ['WRONG_FORMAT'] }],
    [
      'a call quoted in a JSON body is not promoted',
      json(
        '{"name": "weather", "arguments": {"city": "</tool_call><tool_call><function=stations></function></tool_call>"}}',
      ),
      { errors: ['WRONG_FORMAT'] },
    ],
    [
      'a missing <tool_call> is refused',
      `Hm.\n\n<function=weather>\n${param('city', 'Rome')}\n</function>\n</tool_call>`,
      { content: 'Hm.', errors: ['MISSING_OPEN_TAG'] },
    ],
    [
      'a missing <tool_call> takes no good call with it',
      `<function=stations>\n</function>\n${xml(param('city', 'Rome'))}`,
      { calls: [rome], errors: ['MISSING_OPEN_TAG'] },
    ],
    [
      'a function mentioned in a line of prose is text',
      'Use <function=name> ... </function> here.',
      { content: 'Use <function=name> ... </function> here.', errors: ['STRAY_CLOSE_TAG'] },
    ],
    [
      'a missing </parameter> before the next parameter is refused',
      xml(`<parameter=city>\nRome\n${param('days', '3')}`),
      { errors: ['UNCLOSED_PARAMETER'] },
    ],
    [
      'a missing </parameter> before an indented parameter is refused',
      xml(`<parameter=city>\nRome\n    ${param('days', '3')}`),
      { errors: ['UNCLOSED_PARAMETER'] },
    ],
    [
      'a missing </parameter> in one line is refused',
      xml('<parameter=city>Rome<parameter=days>3</parameter>'),
      { errors: ['UNCLOSED_PARAMETER'] },
    ],
    [
      'a missing </parameter> before </function> is refused',
      xml('<parameter=city>\nRome'),
      { errors: ['UNCLOSED_PARAMETER'] },
    ],
    [
      'a missing </parameter> takes no good call with it',
      `${xml('<parameter=city>\nRome')}\n${xml(param('city', 'Rome'))}`,
      { calls: [rome], errors: ['UNCLOSED_PARAMETER'] },
    ],
    [
      'a literal </parameter> in a line is data',
      xml(param('city', 'a </parameter> b')),
      { calls: [['weather', '{"city":"a </parameter> b"}']], flags: ['TAG_IN_VALUE'] },
    ],
    [
      'a literal </function> and </tool_call> are data',
      xml(param('city', 'a\n</function>\n</tool_call>\nb')),
      {
        calls: [['weather', String.raw`{"city":"a\n</function>\n</tool_call>\nb"}`]],
        flags: ['TAG_IN_VALUE'],
      },
    ],
    [
      'a balanced parameter followed by text is data',
      xml(param('city', `a\n${param('x', '1')}\nb`)),
      {
        calls: [['weather', String.raw`{"city":"a\n<parameter=x>\n1\n</parameter>\nb"}`]],
        flags: ['TAG_IN_VALUE'],
      },
    ],
    [
      'a quoted whole call is refused, never cut',
      xml(param('city', `Like\n${xml(param('days', '3'))}\nthis.`)),
      {
        content: 'this.\n</parameter>\n</function>\n</tool_call>',
        errors: ['UNCLOSED_PARAMETER', 'STRAY_CLOSE_TAG'],
        flags: ['TEXT_AFTER_CALL'],
      },
    ],
    [
      'a duplicate parameter is refused',
      xml(`${param('city', 'a')}\n${param('city', 'a')}`),
      { errors: ['DUPLICATE_PARAMETER'] },
    ],
    [
      'an integer that is none is refused',
      xml(param('days', 'three')),
      { errors: ['TYPE_MISMATCH'] },
    ],
    ['a boolean yes is refused', xml(param('metric', 'yes')), { errors: ['TYPE_MISMATCH'] }],
    ['a boolean 1 is refused', xml(param('metric', '1')), { errors: ['TYPE_MISMATCH'] }],
    [
      'True is true and flagged',
      xml(param('metric', 'True')),
      { calls: [['weather', '{"metric":true}']], flags: ['PYTHON_LITERAL'] },
    ],
    [
      'null for a string is the text',
      xml(param('city', 'null')),
      { calls: [['weather', '{"city":"null"}']] },
    ],
    [
      'None where null is allowed is null and flagged',
      xml(param('note', 'None')),
      { calls: [['weather', '{"note":null}']], flags: ['PYTHON_LITERAL'] },
    ],
    [
      'a Python dict for an object is refused',
      xml(param('box', "{'a': 1}")),
      { errors: ['PARAM_INVALID_JSON'] },
    ],
    [
      'an array where an object is due is refused',
      xml(param('box', '[1]')),
      { errors: ['TYPE_MISMATCH'] },
    ],
    [
      'a key twice in an object is refused',
      xml(param('box', '{"a": 1, "a": 2}')),
      { errors: ['DUPLICATE_KEY'] },
    ],
    [
      'anyOf with null takes the other type',
      xml(param('count', '3')),
      { calls: [['weather', '{"count":3}']] },
    ],
    [
      'a $ref is resolved',
      xml(param('point', '{"x": 1}')),
      { calls: [['weather', '{"point":{"x":1}}']] },
    ],
    [
      'string or integer takes the integer and flags it',
      xml(param('mixed', '42')),
      { calls: [['weather', '{"mixed":42}']], flags: ['AMBIGUOUS_TYPE'] },
    ],
    [
      'an unknown parameter is text and flagged',
      xml(param('zone', '7')),
      { calls: [['weather', '{"zone":"7"}']], flags: ['UNKNOWN_PARAMETER'] },
    ],
    [
      'an unknown function is all text and flagged',
      `<tool_call><function=metro><parameter=days>3</parameter></function></tool_call>`,
      { calls: [['metro', '{"days":"3"}']], flags: ['UNKNOWN_FUNCTION'] },
    ],
    [
      'two functions in a block are refused',
      `<tool_call>\n<function=stations>\n</function>\n<function=stations>\n</function>\n</tool_call>`,
      { errors: ['MULTIPLE_FUNCTIONS'] },
    ],
    [
      'text inside the block is refused',
      '<tool_call>\nNow:\n<function=stations>\n</function>\n</tool_call>',
      { errors: ['UNEXPECTED_TEXT'] },
    ],
    [
      'text after the function is refused',
      '<tool_call>\n<function=stations>\n</function>\nNow.\n</tool_call>',
      { errors: ['UNEXPECTED_TEXT'] },
    ],
    [
      'text between parameters is refused',
      xml(`${param('city', 'a')}\nand\n${param('days', '3')}`),
      { errors: ['UNEXPECTED_TEXT'] },
    ],
    [
      'text after an inline value is refused',
      xml('<parameter=city>a</parameter> b'),
      { errors: ['UNEXPECTED_TEXT'] },
    ],
    [
      'a function tag without > is refused',
      '<tool_call>\n<function=weather\n<parameter=city>\na\n</parameter>\n</function>\n</tool_call>',
      { errors: ['MALFORMED_TAG'] },
    ],
    [
      'a parameter tag without > is refused',
      xml('<parameter=city\nRome\n</parameter>'),
      { errors: ['MALFORMED_TAG'] },
    ],
    [
      'attributes are refused',
      xml('<parameter name="city">Rome</parameter>'),
      { errors: ['MALFORMED_TAG'] },
    ],
    [
      'a function without a name is refused',
      '<tool_call><function=></function></tool_call>',
      { errors: ['MISSING_NAME'] },
    ],
    [
      'a missing </function> is refused',
      `<tool_call>\n<function=weather>\n${param('city', 'a')}\n</tool_call>`,
      { errors: ['UNCLOSED_FUNCTION'] },
    ],
    [
      'a missing </tool_call> before the next call is refused, the next is taken',
      `<tool_call>\n<function=stations>\n</function>\n${xml(param('city', 'Rome'))}`,
      { calls: [rome], errors: ['UNCLOSED_CALL'] },
    ],
    [
      'a nested call inside a broken function is not tried',
      `<tool_call>\n<function=weather>\n<tool_call>\n<function=stations>\n</function>\n</tool_call>`,
      { errors: ['UNCLOSED_FUNCTION'] },
    ],
    [
      'a value cut by the token limit is refused',
      '<tool_call>\n<function=weather>\n<parameter=city>\nRo',
      { errors: ['TRUNCATED_CALL'] },
      { finish_reason: 'length' },
    ],
    [
      'a value cut by the token limit is refused whatever tags it holds',
      '<tool_call>\n<function=weather>\n<parameter=city>\na\n</tool_call>\nb',
      { errors: ['TRUNCATED_CALL'] },
      { finish_reason: 'length' },
    ],
    [
      'a call cut inside its first tag is refused',
      '<tool_call>\n<funct',
      { errors: ['TRUNCATED_CALL'] },
      { finish_reason: 'length' },
    ],
    [
      'the end of the turn inside a function is an unclosed call',
      '<tool_call>\n<function=weather>\n',
      { errors: ['UNCLOSED_CALL'] },
    ],
    [
      'a mention is text',
      'The tag <tool_call> opens.',
      { content: 'The tag <tool_call> opens.', flags: ['LITERAL_TAG'] },
    ],
    [
      'a partial tag at the end comes out and is flagged',
      'Hm. </func',
      { content: 'Hm. </func', flags: ['PARTIAL_TAG'] },
    ],
  ]
  test.each(rows)('%s', (...row) => check(row, 'qwen3-coder'))
})
