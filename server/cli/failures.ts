// How a command tells that it failed, on standard error: a sentence, or with --json one JSON line `{error: {code, message}}`.
import type { OutputConfiguration } from 'commander'
import { type ErrorCode, PaddockError } from '../../protocol/errors.ts'

/** Looked for by hand: what fails may be the reading of the flags. */
export function wantsJson(args: readonly string[]): boolean {
  const end = args.indexOf('--')
  const flags = end === -1 ? args : args.slice(0, end)
  return flags.some((flag) => flag === '--json' || flag.startsWith('--json='))
}

/** How commander tells of a wrong flag or verb. */
export function usageOutput(json: boolean): OutputConfiguration {
  return {
    outputError(text, write) {
      write(json ? errorLine('invalid_request', oneSentence(text)) : text)
    },
  }
}

/** `verbose` adds where it comes from. */
export function tellFailure(
  error: unknown,
  { json, verbose }: { json: boolean; verbose: boolean },
) {
  process.stderr.write(json ? asJson(error, verbose) : `paddock: ${asText(error, verbose)}\n`)
}

/** What a program of its own wrote to standard error, without the word that commander begins it with. */
export function oneSentence(text: string): string {
  return text
    .trim()
    .replace(/^error: /, '')
    .replace(/\s*\n\s*/g, ' ')
}

function asJson(error: unknown, verbose: boolean): string {
  const { code, path } =
    error instanceof PaddockError ? error : ({ code: 'internal', path: '' } as const)
  const stack = verbose && error instanceof Error ? error.stack : undefined
  return errorLine(code, messageOf(error), { ...(path && { path }), ...(stack && { stack }) })
}

function asText(error: unknown, verbose: boolean): string {
  if (verbose && error instanceof Error) return error.stack ?? error.message
  const known = error instanceof PaddockError || !(error instanceof Error)
  return known ? messageOf(error) : `${messageOf(error)} (--verbose shows where it comes from)`
}

/** `fetch failed` says nothing, and its cause what there is to know. */
function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const { message, cause } = error
  const more = cause instanceof Error && !(error instanceof PaddockError) ? cause.message : ''
  return more === '' ? message : `${message}: ${more}`
}

function errorLine(code: ErrorCode, message: string, more: Record<string, string> = {}): string {
  return `${JSON.stringify({ error: { code, message, ...more } })}\n`
}
