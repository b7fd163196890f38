// Text from outside (tools, users) as the policy may read it: well-formed, with what is no text replaced and told.

/** `replaced`: bytes that are no UTF-8, or unpaired surrogates, became U+FFFD. */
interface OutsideText {
  text: string
  replaced?: true
}

/** UTF-16 units of one observation; more is a mistake of its tool, and would hold up every other episode. */
export const MAX_OBSERVATION_UNITS = 200_000

/** What is longer than a policy could ever read becomes its beginning, marked as the office marks a cut (envs/SPEC e.7). */
export function boundedText(text: string): { text: string; truncated?: true } {
  if (text.length <= MAX_OBSERVATION_UNITS) return { text }
  const beginning = text.slice(0, MAX_OBSERVATION_UNITS).toWellFormed()
  const marked = { truncated: true, total_chars: text.length, text: beginning }
  return { text: JSON.stringify(marked), truncated: true }
}

/** Decodes bytes as UTF-8 (WHATWG Encoding, "replacement" error mode). A string is taken as it is, unpaired surrogates apart. */
export function outsideText(from: string | Uint8Array): OutsideText {
  if (typeof from === 'string')
    return from.isWellFormed() ? { text: from } : { text: from.toWellFormed(), replaced: true }
  // A byte order mark is a character of the tool's answer like any other.
  const options = { ignoreBOM: true }
  try {
    return { text: new TextDecoder('utf-8', { ...options, fatal: true }).decode(from) }
  } catch {
    return { text: new TextDecoder('utf-8', options).decode(from), replaced: true }
  }
}
