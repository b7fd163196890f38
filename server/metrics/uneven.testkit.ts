// A house whose groups are uneven: who wins is fixed, winners need two turns and losers eight, and some members are never scored.
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { SimulatorOptions } from '../../bench/simulator/options.ts'
import type { JsonObject } from '../../protocol/json.ts'
import { type House, openHouse } from '../testkit/house.testkit.ts'

/** The first two episodes of each task win; one thread counts them. */
const ENVIRONMENT = `
const resets = new Map()
let broken = 0
export default {
  contract: { name: 'uneven', version: 1, scalar: 'score', components: ['score'],
    fields: { score: { type: 'number', min: 0, max: 1, required: true } } },
  problems: () => [],
  describe: ({ spec }) => ({ title: spec.request, limits: {} }),
  reset({ spec }) {
    const before = resets.get(spec.request) ?? 0
    resets.set(spec.request, before + 1)
    return { spec, calls: 0, wins: spec.plan !== 'zero' && before < 2 }
  },
  open: ({ spec }) => [{ role: 'user', content: spec.request }],
  tools: () => [{ type: 'function', function: { name: 'dig', description: 'Digs.', parameters: { type: 'object', properties: {} } } }],
  step(state) {
    if (state.spec.plan === 'broken') throw new Error('the spade of dig ' + ++broken + ' broke after ' + 7 * broken + ' ms')
    if (state.spec.plan === 'short' && !state.wins) throw new Error('the spade broke')
    const next = { ...state, calls: state.calls + 1 }
    const over = next.calls >= (state.wins ? 2 : 8)
    return { state: next, observation: { content: 'earth', is_error: false }, audit: {}, ...(over && { end: 'over' }) }
  },
  hear: (state) => state,
  reply: (state) => ({ state, end: 'final' }),
  grade: ({ wins }) => ({ status: 'scored', rewards: { score: wins ? 1 : 0 }, evidence: {} }),
  anchor: ({ calls }) => 'a' + calls,
}
`
const REQUEST = 'Dig until you find it'
const digs = Array.from({ length: 8 }, () => ({ call: 'dig', args: {} }))
/** Asked for under `gravel`: tools that nobody has, each by another name. */
const invented = (place: number) =>
  Array.from({ length: INVENTED_CALLS }, (_, at) => ({ call: `dig_${place}_${at}`, args: {} }))
/** After so many refused calls in a row an episode is over. */
const INVENTED_CALLS = 8
const INVENTED_TASKS = 25
const gravel = (place: number) => `in gravel ${place}`
const SCRIPTS = [
  ...Array.from({ length: INVENTED_TASKS }, (_, place) => ({
    match: `${REQUEST} ${gravel(place)}.`,
    transcripts: { correct: { steps: invented(place) } },
  })),
  { match: REQUEST, transcripts: { correct: { steps: digs } } },
]

const spec = (plan: string, place: string) => ({ request: `${REQUEST} ${place}.`, plan })

/** An inline task: `long` (two of each group win), `short` (only those two are scored), `zero` (nobody wins), `broken` (each breaks with another text). */
export const uneven = (plan: string, place = 'here') => ({
  spec: spec(plan, place),
  environment: 'uneven',
})

/** 200 calls of tools that nobody has in each round of its 25 tasks, each by another name. */
export const INVENTED: JsonObject = {
  tasks: Array.from({ length: INVENTED_TASKS }, (_, place) => uneven('zero', gravel(place))),
}

/** A group of which two are scored and win, and one of which all are and none does. */
export const SHORT_AND_FLAT: JsonObject = {
  tasks: [uneven('short', 'in sand'), uneven('zero', 'in clay')],
  group_size: 8,
  groups: { attempts: 1, on_short: 'close', min_scored: 2 },
}

/** Under `sand` the turns 3 and 5 end with a tag that is several ids: rendered again it is one, and the chain is cut. */
export const CUTS = [{ kind: 'spelled' as const, match: `${REQUEST} in sand.`, turns: [3, 5] }]

/** Without `tokens` there are no tapes, and turns cost less. Its pack `uneven` has two tasks of the plan `long`, in sand and in clay. */
export async function openUnevenHouse(
  settings: JsonObject = {},
  tokens = true,
  latency: SimulatorOptions['latency'] = { kind: 'fixed', ms: 0 },
): Promise<House> {
  const folder = mkdtempSync(join(tmpdir(), 'paddock-uneven-'))
  const module = join(folder, 'uneven.mjs')
  writeFileSync(module, ENVIRONMENT)
  mkdirSync(join(folder, 'pack', 'tasks'), { recursive: true })
  writeFileSync(
    join(folder, 'pack', 'pack.yaml'),
    'name: uneven\nenvironment: uneven\ntasks: tasks\n',
  )
  for (const soil of ['sand', 'clay'])
    writeFileSync(
      join(folder, 'pack', 'tasks', `${soil}.json`),
      JSON.stringify({ id: soil, ...spec('long', `in ${soil}`) }),
    )
  return openHouse({
    tokens,
    simulator: { scripts: SCRIPTS, latency },
    settings: {
      environments: { uneven: module },
      packs: [join(folder, 'pack')],
      runtime: { threads: 1 },
      shipped_packs: false,
      ...settings,
    },
  })
}
