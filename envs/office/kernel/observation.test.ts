// What the model reads is JSON within the limit, cut where it can go on, and always well-formed text.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { JsonObject } from '../../../protocol/json.ts'
import { render } from './observation.ts'

const LONE = /[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/

test('a result within the limit is its JSON text', () => {
  expect(render({ a: [1, 'x', null] }, 100)).toEqual({
    content: '{"a":[1,"x",null]}',
    replaced: false,
    cut: null,
  })
})

describe('a page that is too long', () => {
  const items = Array.from({ length: 20 }, (_, i) => ({ id: i, body: 'x'.repeat(1000) }))
  const page: JsonObject = { items, total: 45, next_offset: 25 }

  test('keeps whole items and tells where to go on', () => {
    const { content } = render(page, 5000, { item: 5, char: 0 })
    const cut = JSON.parse(content)
    expect(content.length).toBeLessThanOrEqual(5000)
    expect(cut.items).toEqual(items.slice(0, cut.items.length))
    expect(cut.items).toHaveLength(4)
    expect(cut).toMatchObject({
      total: 45,
      next_offset: 9,
      truncated: true,
      total_chars: JSON.stringify(page).length,
    })
  })
  test('of which not one item fits shows a part of the first and goes on behind it', () => {
    const { content, cut } = render(page, 500, { item: 5, char: 0 })
    const { items: shown, next_offset } = JSON.parse(content)
    expect(content.length).toBeLessThanOrEqual(500)
    expect(shown).toEqual([
      {
        id: 0,
        body: expect.stringMatching(/^x{200,}$/),
        truncated: true,
        total_chars: 1000,
        next_offset: shown[0].body.length,
      },
    ])
    expect(next_offset).toBe(6)
    expect(cut).toEqual({ items: 1, lastInPart: true })
  })
})

describe('a record that is too long', () => {
  const body = '"quoted"\n'.repeat(5000)
  const record = { note_id: 'NT-1', body, tags: ['a'] }
  const at = (char: number) => {
    const { content, cut } = render(record, 16_000, { item: 0, char })
    expect(content.length).toBeLessThanOrEqual(16_000)
    return { ...JSON.parse(content), cut }
  }

  test('shows the longest part of its text that fits, beside its other fields', () => {
    const first = at(0)
    expect(JSON.stringify({ ...first, cut: undefined }).length).toBeGreaterThan(15_990)
    expect(first).toMatchObject({
      note_id: 'NT-1',
      tags: ['a'],
      truncated: true,
      total_chars: body.length,
    })
    expect(body.startsWith(first.body)).toBe(true)
    expect(first.next_offset).toBe(first.body.length)
  })
  test('goes on from next_offset, and its parts are the whole', () => {
    let read = ''
    for (let next: number | null = 0; next !== null; ) {
      const part: { body: string; next_offset: number | null } = at(next)
      read += part.body
      next = part.next_offset
    }
    expect(read).toBe(body)
  })
  test('has nothing behind its end', () => {
    expect(at(body.length + 7)).toMatchObject({ body: '', truncated: true, next_offset: null })
  })
})

test('what has no long text of its own becomes a part of its JSON text', () => {
  const slots = Array.from({ length: 100 }, (_, index) => ({ from: index, to: index + 1 }))
  const { content } = render({ slots }, 500)
  const cut = JSON.parse(content)
  const whole = JSON.stringify({ slots })
  expect(content.length).toBeLessThanOrEqual(500)
  expect(whole.startsWith(cut.text)).toBe(true)
  expect(cut).toMatchObject({
    truncated: true,
    total_chars: whole.length,
    next_offset: cut.text.length,
  })
})

test('no cut tears a surrogate pair', () => {
  const record = { body: '😀'.repeat(400) }
  for (let limit = 100; limit < 140; limit++) {
    const first = JSON.parse(render(record, limit).content)
    expect(first.body ?? first.text).not.toMatch(LONE)
    const char = limit * 2 + 1
    const torn = JSON.parse(render(record, limit, { item: 0, char }).content)
    expect(torn.body ?? torn.text).not.toMatch(LONE)
  }
})

test.each(['a\uD800b', '\uDC00', '\uD800\uD800', '\uDFFF\uD83D'])(
  'unpaired surrogates in %j are replaced and reported',
  (text) => {
    const { content, replaced } = render({ text }, 1000)
    expect(replaced).toBe(true)
    expect(JSON.parse(content).text).not.toMatch(LONE)
    expect(JSON.parse(content).text).toContain('\uFFFD')
  },
)

test('whole pairs stay as they are', () => {
  expect(render({ text: '😀' }, 1000)).toEqual({
    content: '{"text":"😀"}',
    replaced: false,
    cut: null,
  })
})

test('whatever the text and the limit, what is read is JSON of well-formed text within the limit', () => {
  const text = fc.string({ unit: 'binary', maxLength: 400 })
  fc.assert(
    fc.property(text, fc.integer({ min: 120, max: 600 }), (body, limit) => {
      const { content } = render({ body }, limit)
      expect(content.length).toBeLessThanOrEqual(limit)
      expect(JSON.stringify(JSON.parse(content))).not.toMatch(/\\ud[89a-f]/)
    }),
  )
})
