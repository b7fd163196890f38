// An environment of a user's own, written to a folder outside the repository: it misbehaves as its tasks say.
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { JsonObject } from '../../protocol/json.ts'
import type { EpisodePlan } from '../../rollout/episode.ts'

/** Plain JavaScript, as a user's module is. `trouble` names what happens in `at`, every time or only `once`. */
const MODULE = `
import { existsSync, writeFileSync } from 'node:fs'

const troubles = {
  throw() { throw new Error('the lab is on fire') },
  exit() { process.exit(3) },
  hang() { for (;;) {} },
  // In pieces: of one large array V8 ends the process and not the thread (nodejs/node#47224).
  memory() { const kept = []; for (;;) kept.push(new Array(5e5).fill(kept.length)) },
}

function visit(spec, at) {
  if (spec.at !== at || !spec.trouble) return
  if (spec.once) {
    if (existsSync(spec.once)) return
    writeFileSync(spec.once, at)
  }
  troubles[spec.trouble]()
}

export default {
  contract: {
    name: 'lab', version: 2,
    fields: { quality: { type: 'number', min: 0, max: 1, required: true } },
    scalar: 'quality', components: ['quality'],
  },
  problems: (spec) => typeof spec.request === 'string' ? [] : [
    { rule: 'LAB', path: 'request', expected: 'a string', found: typeof spec.request, message: 'request must be a string' },
  ],
  describe: (task) => ({ title: task.spec.request ?? task.id, limits: {} }),
  reset(task) { visit(task.spec, 'reset'); return { spec: task.spec, calls: 0, said: null } },
  open: (state) => [{ role: 'system', content: 'You work in a lab.' }, { role: 'user', content: state.spec.request }],
  tools: () => [{ type: 'function', function: { name: 'measure', description: 'Measures.', parameters: { type: 'object', properties: {} } } }],
  step(state, call) {
    visit(state.spec, 'step')
    return {
      state: { ...state, calls: state.calls + 1 },
      observation: { content: state.spec.observation ?? String(state.calls), is_error: false },
      audit: { tool: call.name },
    }
  },
  hear: (state) => state,
  reply: (state, message) => ({ state: { ...state, said: message }, end: 'final' }),
  grade(state) {
    visit(state.spec, 'grade')
    return { status: 'scored', rewards: state.spec.rewards ?? { quality: state.calls > 0 ? 1 : 0 }, evidence: { calls: state.calls } }
  },
  anchor: (state) => String(state.calls) + '-' + state.spec.request,
}
`

export interface Lab {
  /** Path of the module, for `environments: {lab: path}`. */
  module: string
  /** A path in the lab's folder that does not exist yet, for trouble that happens once. */
  flag(name: string): string
}

export function writeLab(): Lab {
  const folder = mkdtempSync(join(tmpdir(), 'paddock-lab-'))
  const module = join(folder, 'lab.mjs')
  writeFileSync(module, MODULE)
  return { module, flag: (name) => join(folder, name) }
}

/** What one attempt at a lab task is asked to play; `spec` names its trouble. */
export const labPlan = (spec: JsonObject): EpisodePlan => ({
  episode: 'b.g0.e0',
  batch: 'b',
  group: 'b.g0',
  groupIndex: 0,
  index: 0,
  attempt: 1,
  task: { id: 'inline/x', environment: 'lab', spec: { request: 'Measure it.', ...spec } },
  seed: 1,
  policy: {
    dialect: 'vllm',
    backend: 'main',
    model: 'm',
    mode: 'chat',
    toolFormat: 'hermes',
    thinking: 'none',
    leniencies: [],
    sampling: { temperature: 1, top_p: 1, max_tokens: 16 },
    version: null,
    seedBase: 'b',
    chatTemplateKwargs: {},
    controlTokens: 'refuse',
  },
  contract: {
    name: 'lab',
    version: 2,
    fields: { quality: { type: 'number', min: 0, max: 1, required: true } },
    scalar: 'quality',
    components: ['quality'],
  },
  limits: { maxTurns: 4, maxTokens: 1000 },
  onParseError: 'feedback',
})
