// `pnpm grafana`: writes dashboard, rules and docs/metrics.md anew from the catalogue.
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { generatedFiles } from './generated.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
for (const [path, text] of Object.entries(generatedFiles())) {
  mkdirSync(dirname(join(root, path)), { recursive: true })
  writeFileSync(join(root, path), text)
  console.log(path)
}
