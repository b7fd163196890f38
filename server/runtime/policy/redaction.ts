// Secrets of the configuration in what a backend sent, taken out before any of it can become a reason that trainers read.
import type { HttpReply } from '../../../rollout/request.ts'

const REDACTED = '[redacted]'

/**
 * A good reply must stay as it was sampled, and a filler key (`EMPTY`, `not-needed`, `12345678`) may be a word or a
 * number of it. What is long and mixes letters with digits is no word that a policy says by chance.
 */
const isUnmistakable = (secret: string): boolean =>
  secret.length >= 16 && /\d/.test(secret) && /[A-Za-z]/.test(secret)

export interface Redaction {
  text(text: string): string
  /** Of a reply of 2xx only unmistakable secrets are taken out; the words of any other become a reason. */
  reply(reply: HttpReply): HttpReply
}

export function createRedaction(secrets: readonly string[]): Redaction {
  const all = formsOf(secrets)
  const unmistakable = formsOf(secrets.filter(isUnmistakable))

  return {
    text: (text) => without(text, all),
    reply(reply) {
      const { status, headers, body } = reply
      const forms = status >= 200 && status < 300 ? unmistakable : all
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
