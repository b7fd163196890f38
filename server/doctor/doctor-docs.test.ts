// docs/doctor.md shows every finding, in the words of the code.
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { FINDINGS } from './findings.ts'

test('the table of findings in docs/doctor.md is that of the code', () => {
  const page = readFileSync(new URL('../../docs/doctor.md', import.meta.url), 'utf8')
  const rows = page.split('\n').filter((line) => /^\| `[a-z_]+` \|/.test(line))
  const told = Object.entries(FINDINGS).map(
    ([code, { why, mend }]) => `| \`${code}\` | ${why} | ${mend} |`,
  )
  expect(rows).toEqual(told)
})

test('a page or a table that a finding sends to is there', () => {
  const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8')
  for (const { mend } of Object.values(FINDINGS))
    for (const [, title] of mend.matchAll(/“([^”]+)” in README\.md/g))
      expect(readme).toContain(`\n## ${title}\n`)
  expect(FINDINGS.episodes_fail.mend).toContain('“What ends how” in README.md')
})
