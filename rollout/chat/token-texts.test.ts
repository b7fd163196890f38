// Token texts over a codec of one byte a token: characters of several bytes are several tokens.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { tokenTexts } from './token-texts.ts'

const decode = (ids: readonly number[]) => new TextDecoder().decode(Uint8Array.from(ids))
const bytes = (text: string) => [...new TextEncoder().encode(text)]

describe('the texts of tokens', () => {
  test('a character of three tokens stands with the first of them', () => {
    expect(tokenTexts(bytes('a€b'), decode)).toEqual(['a', '€', '', '', 'b'])
  })

  test('a byte that belongs to no character is U+FFFD, and what follows it is still text', () => {
    expect(tokenTexts([0x61, 0xff, 0x62], decode)).toEqual(['a', '\uFFFD', 'b'])
  })

  test('a chain cut in the middle of a character ends in U+FFFD', () => {
    expect(tokenTexts(bytes('a€').slice(0, 2), decode)).toEqual(['a', '\uFFFD'])
  })

  test('there is one text for each id, and joined they are the text of the whole', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (text) => {
        const texts = tokenTexts(bytes(text.toWellFormed()), decode)
        expect(texts).toHaveLength(bytes(text.toWellFormed()).length)
        expect(texts.join('')).toBe(decode(bytes(text.toWellFormed())))
      }),
    )
  })
})
