// The task that the ladder plays, and how it goes wrong: an environment of a user's own whose troubles are files.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** What each file makes of the environment, in a share of its calls or grades. */
export type Trouble = 'broken' | 'flat' | 'throw' | 'exit' | 'ungraded'

/** Plain JavaScript, as a user's module is. Its dice are real: how often something fails must not hang on a seed. */
const MODULE = `
import { existsSync } from 'node:fs'
const dice = () => Math.random()
const is = (trouble) => existsSync(new URL('./' + trouble, import.meta.url))
export default {
  contract: {
    name: 'lab', version: 1,
    fields: {
      score: { type: 'number', min: 0, max: 1, required: true },
      care: { type: 'number', min: 0, max: 1, required: true },
    },
    scalar: 'score', components: ['score', 'care'],
  },
  problems: () => [],
  describe: ({ spec }) => ({ title: spec.request, limits: {} }),
  reset: ({ spec }) => ({ request: spec.request, calls: 0, said: '' }),
  open: ({ request }) => [
    { role: 'system', content: 'You measure.' }, { role: 'user', content: request },
  ],
  tools: () => [{ type: 'function', function: {
    name: 'measure', description: 'Measures.', parameters: { type: 'object', properties: {} } } }],
  step(state) {
    if (is('throw') && dice() < 0.3) throw new Error('the lab is on fire')
    if (is('exit') && dice() < 0.2) process.exit(3)
    return {
      state: { ...state, calls: state.calls + 1 },
      observation: { content: '{"metres": 7}', is_error: false },
      audit: {},
    }
  },
  hear: (state) => state,
  reply: (state, message) => ({ state: { ...state, said: message }, end: 'final' }),
  grade({ said }) {
    if (is('ungraded')) return { status: 'unavailable', reason: 'no scales', evidence: {} }
    const score = /seven/.test(said) ? 1 : 0
    const care = is('flat') ? 1 : score
    const rewards = is('broken') && dice() < 0.1 ? { reward: score, care } : { score, care }
    return { status: 'scored', rewards, evidence: {} }
  },
  anchor: ({ calls }) => 'a' + calls,
}
`

const REQUEST = 'Measure the bench and say how long it is.'
const MEASURES = [{ call: 'measure' }, { call: 'measure' }, { call: 'measure' }]
/** What the policy may say. It measures thrice: the simulator words what stands before a call in many ways. */
const SCRIPT = {
  match: REQUEST,
  transcripts: {
    right: { steps: [...MEASURES, { say: 'The bench is seven metres long.' }] },
    wrong: { steps: [...MEASURES, { say: 'The bench is nine metres long.' }] },
  },
}

export const LAB_TASK = { spec: { request: REQUEST }, environment: 'lab' }

/** Writes module and scripts into a folder. */
export function writeLab(folder: string) {
  const module = join(folder, 'lab.mjs')
  const scripts = join(folder, 'scripts.jsonl')
  writeFileSync(module, MODULE)
  writeFileSync(scripts, `${JSON.stringify(SCRIPT)}\n`)
  return {
    module,
    scripts,
    start: (trouble: Trouble) => writeFileSync(join(folder, trouble), ''),
  }
}
