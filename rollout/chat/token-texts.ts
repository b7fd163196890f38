// The text of each token of a chain, for people to read.

/** A character of UTF-8 has at most four bytes, and a token at least one of them. */
const MOST_TOKENS_OF_A_CHARACTER = 4

const BROKEN = '\uFFFD'

/**
 * One text for each id; joined, they are the text of the whole. Where several ids make up one character, the first has its
 * text and the others none; what is no text at all stays U+FFFD.
 */
export function tokenTexts(
  ids: readonly number[],
  decode: (ids: readonly number[]) => string,
): string[] {
  const texts: string[] = []
  while (texts.length < ids.length) {
    const at = texts.length
    let length = 1
    let text = decode(ids.slice(at, at + 1))
    for (let more = 2; text.includes(BROKEN) && more <= MOST_TOKENS_OF_A_CHARACTER; more++) {
      const joined = decode(ids.slice(at, at + more))
      if (joined.includes(BROKEN)) continue
      text = joined
      length = Math.min(more, ids.length - at)
    }
    texts.push(text, ...Array.from({ length: length - 1 }, () => ''))
  }
  return texts
}
