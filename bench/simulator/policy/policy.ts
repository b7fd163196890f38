// The simulated policy: a prompt and a seed in, one completion out, with no memory of other requests.
import { randomInt } from 'node:crypto'
import type { FaultKind } from '../faults.ts'
import { spellClosingTags } from '../faults.ts'
import { latencyMs } from '../latency.ts'
import type { SimulatorOptions } from '../options.ts'
import type { Ask, Generation } from './completion.ts'
import { sample } from './completion.ts'
import type { Conversation } from './conversation.ts'
import type { Model } from './model.ts'
import { createScriptFinder } from './script.ts'
import { draw, hashIds } from './seeded.ts'
import { nextTurn, remainder } from './turn.ts'

/** A completion before any fault of the reply, and what else was drawn for its turn. */
interface Played {
  generation: Generation
  seed: number
  latencyMs: number
  /** A number in [0, 1) that places faults inside the completion. */
  share: number
}

export type Policy = (
  ask: Ask,
  conversation: Conversation,
  hit: ReadonlyMap<FaultKind, unknown>,
) => Played

export function createPolicy(model: Model, settings: SimulatorOptions): Policy {
  const findScript = createScriptFinder(settings.scripts, settings.marker)
  return (asked, conversation, hit) => {
    const ask = hit.has('greedy') ? { ...asked, temperature: 0 } : asked
    const given = ask.seed ?? settings.fallbackSeed ?? randomInt(2 ** 32)
    const seed = hit.has('seedless') ? 0 : given
    const openedAt = openTurnStart(ask.promptIds, model.startId)
    // Not of the open turn: going on after an abort, the policy finds its words again.
    const before = hashIds(ask.promptIds.slice(0, openedAt))
    const dice = {
      seed: `${settings.seed}/${seed}/${before}`,
      temperature: ask.temperature,
      topP: ask.topP,
    }
    const whole = nextTurn(conversation, findScript(conversation), settings.style, dice)
    const rest = remainder(whole, conversation.partial)
    // `assistant` and the line feed behind it are two ids.
    const partialIds = conversation.partial === '' ? [] : ask.promptIds.slice(openedAt + 2)
    const write = (text: string) => {
      const ids = model.encode(text)
      return hit.has('spelled') ? spellClosingTags(ids, model) : ids
    }
    const ids = remainingIds(write, whole.text, rest.text, partialIds)
    const turn = { ids, runOn: rest.runOn }
    return {
      generation: sample(model, turn, ask, settings.logprobsMode),
      seed,
      latencyMs: latencyMs(settings.latency, dice.seed),
      share: draw(dice.seed, 'share'),
    }
  }
}

function openTurnStart(ids: readonly number[], startId: number): number {
  const at = ids.lastIndexOf(startId)
  return at < 0 ? ids.length : at + 1
}

/**
 * Ids of the rest of a turn after the part that the prompt holds already. Where those ids begin the whole turn's own,
 * the rest is what would have been sampled; else the rest of the text is tokenised by itself.
 */
function remainingIds(
  write: (text: string) => number[],
  whole: string,
  rest: string,
  partialIds: readonly number[],
): number[] {
  const ids = write(whole)
  const isBeginning = partialIds.every((id, index) => id === ids[index])
  return isBeginning ? ids.slice(partialIds.length) : write(rest)
}
