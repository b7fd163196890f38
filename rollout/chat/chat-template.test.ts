import { describe, expect, test } from 'vitest'
import { compileChatTemplate } from './chat-template.ts'
import { parseOrderedJson } from './ordered-json.ts'

const render = (text: string, variables: Record<string, unknown> = {}, now: Date | null = null) =>
  compileChatTemplate(text, now).render(Object.entries(variables))

// Expected values: Python 3.13, json and jinja2 3.1.6.
describe('values are written as Python writes them', () => {
  test.each([
    ['{{ true }} {{ false }} {{ none }} {{ nothing }}', 'True False None '],
    ['{{ true ~ 1 ~ none }}', 'True1None'],
    ['{{ none | string }}{{ false | string }}', 'NoneFalse'],
    ["{{ [1, 'a', \"it's\"] }}", "[1, 'a', \"it's\"]"],
    ['{% set x = none %}{{ x }}', 'None'],
    ['{% for x in [true, none] %}{{ x }},{% endfor %}', 'True,None,'],
    ['{% macro m(x) %}<{{ x }}>{% endmacro %}{{ m(true) }}', '<True>'],
    ['{% if false %}{% else %}{{ 1.0 }}{% endif %}', '1.0'],
  ])('%s', (template, expected) => {
    expect(render(template)).toBe(expected)
  })

  test.each([
    ['1.0', '1.0'],
    ['1', '1'],
    ['-0', '0'],
    ['-0.0', '-0.0'],
    ['1e5', '100000.0'],
    ['1e-4', '0.0001'],
    ['1e-5', '1e-05'],
    ['1.5e-7', '1.5e-07'],
    ['1e15', '1000000000000000.0'],
    ['1e16', '1e+16'],
    ['1.25e21', '1.25e+21'],
    ['5e-324', '5e-324'],
    ['123456789012345678901', '123456789012345678901'],
    ['9007199254740993', '9007199254740993'],
  ])('the number %s of a JSON text is written %s', (literal, expected) => {
    const x = parseOrderedJson(literal)
    expect(render('{{ x }} {{ x | tojson }}', { x })).toBe(`${expected} ${expected}`)
  })

  test('infinity has one name in text and another in JSON', () => {
    expect(render('{{ x }} {{ x | tojson }}', { x: parseOrderedJson('1e400') })).toBe(
      'inf Infinity',
    )
  })

  test('tojson puts spaces after separators, keeps key order and escapes nothing but JSON itself', () => {
    const x = parseOrderedJson('{"10":[1,2.0,null],"2":"<é\\u2028\\n\\u0001>","a":{"b":true}}')
    expect(render('{{ x | tojson }}', { x })).toBe(
      '{"10": [1, 2.0, null], "2": "<é\u2028\\n\\u0001>", "a": {"b": true}}',
    )
  })

  test('a dict is written with repr', () => {
    const x = parseOrderedJson('{"a": [true, null, 1.0, "x"], "10": {}}')
    expect(render('{{ x }}', { x })).toBe("{'a': [True, None, 1.0, 'x'], '10': {}}")
  })

  test.each([
    ["a'b", `["a'b"]`],
    ['a"b', `['a"b']`],
    [`a'b"c`, `['a\\'b"c']`],
    ['x\n\t\\', String.raw`['x\n\t\\']`],
    ['é\u00a0\u200b\u0000\u007f', String.raw`['é\xa0\u200b\x00\x7f']`],
    ['📝\u2028', String.raw`['📝\u2028']`],
  ])('repr of %j', (text, expected) => {
    expect(render('{{ x }}', { x: [text] })).toBe(expected)
  })
})

describe('methods of text', () => {
  test.each([
    [String.raw`{{ '\n x \n'.strip('\n') }}`, ' x '],
    [String.raw`{{ 'ab\n \n'.rstrip('\n') }}`, 'ab\n '],
    ["{{ 'xxyxx'.lstrip('x') }}", 'yxx'],
    ["{{ ' a ' | trim }}", 'a'],
  ])('%s strips the characters that it names', (template, expected) => {
    expect(render(template)).toBe(expected)
  })

  test('white space is what Python calls so: U+001C is, U+FEFF is not', () => {
    expect(render('{{ x.strip() }}', { x: ' \ufeffx\x1c ' })).toBe('\ufeffx')
  })
})

describe('what raises in Python raises here', () => {
  test.each([
    ["{{ 'a' + [] }}"],
    ["{{ [] + 'a' }}"],
    ["{{ 'a' + 1 }}"],
    ["{{ 'a' + none }}"],
    ["{{ 'a' in none }}"],
    ["{{ raise_exception('no') }}"],
    ["{{ none.startswith('a') }}"],
    ['{{ [1].strip() }}'],
  ])('%s', (template) => {
    expect(() => render(template)).toThrow()
  })

  test('the date, where no clock is given', () => {
    expect(() => render("{{ strftime_now('%Y') }}")).toThrow(/no clock was given/)
  })
})

test('strftime_now writes the given clock in UTC', () => {
  const now = new Date('2026-03-04T05:06:07Z')
  const template = "{{ strftime_now('%d %b %Y, %A %B %a %H:%M:%S %m/%d/%y %%') }}"
  expect(render(template, {}, now)).toBe('04 Mar 2026, Wednesday March Wed 05:06:07 03/04/26 %')
})

test('range counts up and down', () => {
  const loop = (range: string) => render(`{% for i in ${range} %}{{ i }} {% endfor %}`)
  expect([loop('range(3)'), loop('range(1, 4)'), loop('range(5, 0, -2)')]).toEqual([
    '0 1 2 ',
    '1 2 3 ',
    '5 3 1 ',
  ])
})
