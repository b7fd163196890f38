// What a backend echoes of the sampling parameters, held against what was asked for.
import { isPlainObject } from '../../protocol/json.ts'
import type { Expectation, PromptTurn } from './dialect.ts'
import { describe, refuse } from './reply.ts'

type JsonRecord = Record<string, unknown>
type Sampling = PromptTurn['sampling']

/** Names under which engines and gateways know each parameter. */
const NAMES: [names: readonly string[], of: keyof Sampling][] = [
  [['temperature'], 'temperature'],
  [['top_p'], 'top_p'],
  [['max_tokens', 'max_new_tokens', 'max_completion_tokens'], 'max_tokens'],
  [['seed', 'sampling_seed'], 'seed'],
]

/**
 * Refuses a reply that names another value than was sent, in the reply itself, in its `meta_info` or in the
 * `sampling_params` of either. What is not echoed is not judged.
 */
export function refuseOtherSampling(reply: JsonRecord, { sampling: asked }: Expectation): void {
  if (!asked) return
  const outer = [reply, reply.meta_info].filter(isPlainObject)
  const places = [...outer, ...outer.map((one) => one.sampling_params).filter(isPlainObject)]
  for (const [names, parameter] of NAMES)
    for (const place of places)
      for (const name of names) {
        const echoed = place[name]
        if (echoed === undefined || echoed === null || isSame(echoed, asked[parameter])) continue
        refuse(
          'contract_violation',
          name,
          `the backend sampled with ${describe(echoed)}, but ${asked[parameter]} was asked for`,
        )
      }
}

/** Engines keep parameters as float32 at times. */
function isSame(echoed: unknown, asked: number): boolean {
  return typeof echoed === 'number' && Math.fround(echoed) === Math.fround(asked)
}
