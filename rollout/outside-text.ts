// Text from outside (tools, users) as the policy may read it: well-formed, with what is no text replaced and told.

/** `replaced`: bytes that are no UTF-8, or unpaired surrogates, became U+FFFD. */
interface OutsideText {
  text: string
  replaced?: true
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
