// Secrets of the configuration in what a backend sent, taken out before any of it can become a reason that trainers read.
import type { HttpReply } from '../../rollout/turn.ts'

const REDACTED = '[redacted]'
/** A shorter secret (`EMPTY`, `1`) may be a word of a good reply, which must stay as it was sampled. */
const LEAST_IN_A_GOOD_REPLY = 8

export interface Redaction {
  text(text: string): string
  /** The reply itself where no secret is in it. */
  reply(reply: HttpReply): HttpReply
}

export function createRedaction(secrets: readonly string[]): Redaction {
  const all = formsOf(secrets)
  const long = formsOf(secrets.filter((secret) => secret.length >= LEAST_IN_A_GOOD_REPLY))

  return {
    text: (text) => without(text, all),
    reply(reply) {
      const { status, headers, body } = reply
      const forms = status >= 200 && status < 300 ? long : all
      if (forms.length === 0) return reply
      return { status, headers: withoutInValues(headers, forms), body: withoutInBytes(body, forms) }
    },
  }
}

/** Secrets as they are, and as they stand in JSON and in URLs; the longest first, as one may hold another. */
function formsOf(secrets: readonly string[]): string[] {
  const forms = secrets
    .filter((secret) => secret !== '')
    .flatMap((secret) => [
      secret,
      JSON.stringify(secret).slice(1, -1),
      JSON.stringify(secret).slice(1, -1).replaceAll('/', '\\/'),
      encodeURIComponent(secret.toWellFormed()),
    ])
  return [...new Set(forms)].sort((a, b) => b.length - a.length)
}

function without(text: string, forms: readonly string[]): string {
  return forms.reduce((rest, form) => rest.replaceAll(form, REDACTED), text)
}

function withoutInValues(
  headers: Record<string, string>,
  forms: readonly string[],
): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, without(value, forms)]),
  )
}

/** Latin-1 has one character for each byte, so that bytes that are no text stay as they came. */
function withoutInBytes(body: Uint8Array, forms: readonly string[]): Uint8Array {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  if (!forms.some((form) => bytes.includes(form))) return body
  const inBytes = forms.map((form) => Buffer.from(form).toString('latin1'))
  return Uint8Array.from(Buffer.from(without(bytes.toString('latin1'), inBytes), 'latin1'))
}
