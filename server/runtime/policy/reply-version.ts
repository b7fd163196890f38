// The weights' version that a reply names, read from its bytes without parsing them: on the main thread a whole parse is too long.

const KEY = Buffer.from('"weight_version"')
/** Bytes behind the key in which its value must stand. */
const REACH = 200

/**
 * The last `"weight_version": "…"` of a JSON reply or of a stream of them (SGLang); null where there is none. A quote within
 * a JSON string is escaped, so that text which only quotes the key never looks like it.
 */
export function replyVersion(body: Uint8Array): string | null {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  const at = bytes.lastIndexOf(KEY)
  if (at < 0) return null
  const behind = bytes.toString('utf8', at + KEY.length, at + KEY.length + REACH)
  const [, text, number] = /^\s*:\s*(?:"([^"\\]*)"|(\d+))/.exec(behind) ?? []
  return text ?? number ?? null
}
