// The doctor's report: one line a check, findings explained below; or the same as JSON.
import type { CheckResult } from './checks.ts'
import type { Evidence } from './evidence.ts'
import { FINDINGS, type FindingCode } from './findings.ts'

interface Finding {
  check: string
  code: FindingCode
  what: string
  why: string
  mend: string
}

export function findingsOf(results: readonly CheckResult[]): Finding[] {
  return results.flatMap((result) =>
    result.status === 'finding'
      ? { check: result.check, code: result.code, what: result.what, ...FINDINGS[result.code] }
      : [],
  )
}

/** With the episodes that were played, for those who reckon by themselves what a batch costs. */
export function reportJson(
  { subject, episodes }: Pick<Evidence, 'subject' | 'episodes'>,
  results: readonly CheckResult[],
): string {
  const findings = findingsOf(results)
  return `${JSON.stringify({ healthy: findings.length === 0, subject, checks: results, findings, episodes })}\n`
}

const SIGNS = { healthy: '✓', finding: '✗', not_checked: '–' }
const COLOURS = { healthy: 32, finding: 31, not_checked: 90 }

/** `colour` is for terminals: in a pipe the text is plain. */
export function reportText(results: readonly CheckResult[], colour: boolean): string {
  const width = Math.max(...results.map(({ check }) => check.length))
  const lines = results.map((result) => {
    const sign = SIGNS[result.status]
    const shown = colour ? `\u001b[${COLOURS[result.status]}m${sign}\u001b[0m` : sign
    const told = result.status === 'finding' ? result.code : printable(result.detail)
    return `${shown} ${result.check.padEnd(width)}  ${told}`
  })
  const findings = findingsOf(results).map(
    ({ code, what, why, mend }) => `${code}: ${printable(what)}\n  why   ${why}\n  mend  ${mend}`,
  )
  return `${[lines.join('\n'), ...findings, summary(results)].join('\n\n')}\n`
}

/** What a backend said must not steer the terminal. */
function printable(text: string): string {
  return text.replace(/\p{Cc}/gu, ' ')
}

function summary(results: readonly CheckResult[]): string {
  const count = (status: CheckResult['status']) =>
    results.filter((result) => result.status === status).length
  const findings = count('finding')
  const found = findings === 0 ? 'healthy' : findings === 1 ? '1 finding' : `${findings} findings`
  return `${found}: ${count('healthy')} checks passed, ${count('not_checked')} not made`
}
