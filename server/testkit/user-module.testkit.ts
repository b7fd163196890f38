// A user's environment as a module of its own, outside the repository, of which a test replaces a part.
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A module whose tasks have a calculator and end with the policy's first message; `part` replaces some of it. */
export function userModule(part: string): string {
  const file = join(mkdtempSync(join(tmpdir(), 'paddock-environment-')), 'user.mjs')
  writeFileSync(
    file,
    `const base = {
  contract: { name: 'user', version: 1, fields: { score: { type: 'number', min: 0, max: 1 } }, scalar: 'score', components: [] },
  problems: () => [],
  describe: (task) => ({ title: task.id, limits: {} }),
  reset: (task, seed) => ({ ...task.spec, seed, seen: 0, said: '' }),
  open: (state) => [{ role: 'user', content: state.request }],
  tools: () => [{ type: 'function', function: { name: 'calculator', description: 'Computes.', parameters: { type: 'object', properties: { expression: { type: 'string' } } } } }],
  step: (state) => ({ state: { ...state, seen: state.seen + 1 }, observation: { content: '7', is_error: false }, audit: {} }),
  hear: (state) => state,
  reply: (state, said) => ({ state: { ...state, said }, end: 'final' }),
  grade: (state) => ({ status: 'scored', rewards: { score: 1 }, evidence: {} }),
  anchor: (state) => 'seen ' + state.seen,
}
export default { ...base, ${part} }
`,
  )
  return file
}
