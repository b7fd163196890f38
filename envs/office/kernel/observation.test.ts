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
  })
})

describe('a page that is too long', () => {
  const items = Array.from({ length: 20 }, (_, i) => ({ id: i, body: 'x'.repeat(1000) }))
  const page: JsonObject = { items, total: 45, next_offset: 25 }

  test('keeps whole items and tells where to go on', () => {
    const { content } = render(page, 5000, 5)
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
  test('of which not one item fits becomes the beginning of its text', () => {
    const cut = JSON.parse(render(page, 500).content)
    expect(cut).toMatchObject({ truncated: true, next_offset: cut.text.length })
    expect(JSON.stringify(page).startsWith(cut.text)).toBe(true)
  })
})

test('a record that is too long becomes the longest beginning that fits', () => {
  const record = { note_id: 'NT-1', body: '"quoted"\n'.repeat(5000) }
  const { content } = render(record, 16_000)
  const cut = JSON.parse(content)
  expect(content.length).toBeLessThanOrEqual(16_000)
  expect(content.length).toBeGreaterThan(15_990)
  expect(cut).toMatchObject({ truncated: true, total_chars: JSON.stringify(record).length })
})

test('no cut tears a surrogate pair', () => {
  const record = { body: '😀'.repeat(400) }
  for (let limit = 100; limit < 140; limit++) {
    const { text } = JSON.parse(render(record, limit).content)
    expect(text).not.toMatch(LONE)
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
  expect(render({ text: '😀' }, 1000)).toEqual({ content: '{"text":"😀"}', replaced: false })
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
