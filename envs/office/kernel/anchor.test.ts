// Two states have one anchor where records and evidence are the same, however and whenever they came to be.
import { describe, expect, test } from 'vitest'
import { office } from '../office.ts'
import type { SpecStep } from '../spec.ts'
import { play, smallSpec } from '../transcripts.testkit.ts'

const article = (n: number) => ({
  article_id: `KB-${n}`,
  title: `Title ${n}`,
  category: 'c',
  tags: [],
  body: 'b',
  status: 'published',
  version: 1,
  updated_at: '2027-01-01T00:00:00Z',
})
const spec = smallSpec({
  initial_state: { kb: { article: [article(1), article(2)] }, todo: {} },
  user: {
    mode: 'scripted',
    rules: [{ id: 'which', if_any: ['which'], say: 'The first.' }],
    fallback: 'Go on.',
  },
})
const call = (name: string, args = {}): SpecStep => ({ call: name, args })
const anchor = (...steps: SpecStep[]) => office.anchor(play(spec, steps).state)

const get = (n: number) => call('kb_get_article', { article_id: `KB-${n}` })
const retitle = (title: string) => call('kb_update_article', { article_id: 'KB-1', title })
const create = call('todo_create', { title: 'x' })
const nothing = call('kb_get_article', { article_id: 'KB-404' })

describe('the same anchor', () => {
  test.each([
    ['evidence read in another order', [get(1), get(2)], [get(2), get(1)]],
    ['evidence read again', [get(1)], [get(1), get(1)]],
    [
      'a record seen in full and then in a list',
      [get(1), get(2)],
      [get(1), get(2), call('kb_list')],
    ],
    ['calls that failed', [get(1)], [nothing, get(1), call('no_such_tool')]],
    ['a record created at another time', [create], [nothing, nothing, create]],
    ['a change that was taken back', [], [retitle('New'), retitle('Title 1')]],
    ['a change that changed nothing', [], [retitle('Title 1')]],
    ['small talk', [], [{ say: 'hello' }]],
  ] as [string, SpecStep[], SpecStep[]][])('after %s', (_what, one, other) => {
    expect(anchor(...other)).toBe(anchor(...one))
  })
})

describe('another anchor', () => {
  test.each([
    ['new evidence', [], [get(1)]],
    ['other evidence', [get(1)], [get(2)]],
    [
      'evidence seen in full that was seen in summary',
      [call('kb_list')],
      [call('kb_list'), get(1)],
    ],
    ['a changed record', [], [retitle('New')]],
    ['a new record', [], [create]],
    ['one more new record', [create], [create, create]],
    ['an answer of the user', [], [{ say: 'which?' }]],
  ] as [string, SpecStep[], SpecStep[]][])('after %s', (_what, one, other) => {
    expect(anchor(...other)).not.toBe(anchor(...one))
  })
})

test('the anchor of a state that went through JSON and structured clone is the same', () => {
  const { state } = play(spec, [get(1), retitle('New'), create])
  expect(office.anchor(JSON.parse(JSON.stringify(state)))).toBe(office.anchor(state))
  expect(office.anchor(structuredClone(state))).toBe(office.anchor(state))
})
