// The legacy forms, situation by situation.
import { describe, test } from 'vitest'
import { check, type Row, rome, stations } from './situations.testkit.ts'

describe('legacy forms', () => {
  const fncall: Row[] = [
    [
      'a name and arguments',
      'Hm.\n✿FUNCTION✿: weather\n✿ARGS✿: {"city": "Rome"}',
      { content: 'Hm.', calls: [rome] },
    ],
    [
      'what follows a stop word goes',
      '✿FUNCTION✿: stations\n✿ARGS✿: {}\n✿RESULT✿: 1\n✿RETURN✿: one',
      { calls: [stations] },
    ],
    [
      'a word in an argument is data',
      '✿FUNCTION✿: weather\n✿ARGS✿: {"city": "✿RESULT✿"}',
      { calls: [['weather', '{"city":"✿RESULT✿"}']] },
    ],
    [
      'missing arguments are refused, the next call stands',
      '✿FUNCTION✿: weather\n✿FUNCTION✿: stations\n✿ARGS✿: {}',
      { calls: [stations], errors: ['MISSING_ARGUMENTS'] },
    ],
    [
      'broken JSON is refused, the next call stands',
      '✿FUNCTION✿: weather\n✿ARGS✿: {,}\n✿FUNCTION✿: stations\n✿ARGS✿: {}',
      { calls: [stations], errors: ['INVALID_JSON'] },
    ],
    [
      'more after the object is refused',
      '✿FUNCTION✿: stations\n✿ARGS✿: {}}',
      { errors: ['TRAILING_DATA'] },
    ],
    ['a call without a name is refused', '✿FUNCTION✿:\n✿ARGS✿: {}', { errors: ['MISSING_NAME'] }],
    [
      'an array is refused',
      '✿FUNCTION✿: stations\n✿ARGS✿: []',
      { errors: ['ARGUMENTS_NOT_OBJECT'] },
    ],
    [
      'arguments cut by the token limit are refused',
      '✿FUNCTION✿: stations\n✿ARGS✿: {"a',
      { errors: ['TRUNCATED_CALL'] },
      { finish_reason: 'length' },
    ],
  ]
  test.each(fncall)('qwen-fncall: %s', (...row) => check(row, 'qwen-fncall'))

  const react: Row[] = [
    [
      'an action and its input',
      'Thought: so\nAction: weather\nAction Input: {"city": "Rome"}',
      { content: 'Thought: so', calls: [rome] },
    ],
    [
      'an invented observation goes',
      'Action: stations\nAction Input: {}\nObservation: 3\nAction: weather\nAction Input: {}',
      { calls: [stations] },
    ],
    [
      'the last action wins',
      'Action: weather\nAction Input: {}\nAction: stations\nAction Input: {}',
      { content: 'Action: weather\nAction Input: {}', calls: [stations] },
    ],
    ['a final answer is the content', 'Thought: done\nFinal Answer: 42', { content: '42' }],
    ['a missing input is refused', 'Action: stations', { errors: ['MISSING_ARGUMENTS'] }],
    [
      'broken input is refused',
      "Action: stations\nAction Input: {'a': 1}",
      { errors: ['INVALID_JSON'] },
    ],
    [
      'text after the input is refused',
      'Action: stations\nAction Input: {}\nand so on',
      { errors: ['TRAILING_DATA'] },
    ],
    [
      'an unknown function is flagged',
      'Action: metro\nAction Input: {}',
      { calls: [['metro', '{}']], flags: ['UNKNOWN_FUNCTION'] },
    ],
  ]
  test.each(react)('react: %s', (...row) => check(row, 'react'))
})
