// What is committed is what the sources make.
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { generatedFiles } from './generated.ts'

test.each(Object.entries(generatedFiles()))('%s is as `pnpm grafana` writes it', (path, text) => {
  const committed = readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
  expect(committed === text, `${path} is old: run \`pnpm grafana\` and commit it`).toBe(true)
})
