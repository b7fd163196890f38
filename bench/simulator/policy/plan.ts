// Which transcript an episode follows, found from what was said so far: the policy keeps no state between requests.
import type { Conversation, SaidTurn } from './conversation.ts'
import { argumentsKey, takeApart } from './conversation.ts'
import type { Script, Step } from './script.ts'
import { draw, pickWeighted } from './seeded.ts'
import type { Call, Dice } from './wording.ts'
import { PROSE_END } from './wording.ts'

/** One turn to come. `broken` writes its first call wrongly, `cut` runs on inside it until the tokens are used up. */
export type Move =
  | { kind: 'speak'; say: string; calls: Call[] }
  | { kind: 'broken' | 'cut'; call: Call }
  | { kind: 'raw'; text: string }
  | { kind: 'prose' }

/** Weights of transcripts by name, and of `malformed`, `truncated` and `prose`. They need not sum to one. */
export type Mix = Readonly<Record<string, number>>

interface Plan {
  weight: number
  moves: Move[]
}

/**
 * Every way the script can be played, each with its weight. `malformed` and `truncated` go wrong once, at one of the
 * calls of the first transcript (`correct` where there is one), and share their weight over these; a failed turn is
 * followed by the right one.
 */
export function plansOf(script: Script, mix: Mix): Plan[] {
  const moves = new Map(
    Object.entries(script.transcripts).map(([name, { steps }]) => [name, steps.map(moveOf)]),
  )
  const plans: Plan[] = [...moves].map(([name, played]) => ({
    weight: mix[name] ?? 0,
    moves: played,
  }))
  const base = moves.get('correct') ?? [...moves.values()][0] ?? []
  plans.push(...failing(base, 'broken', mix.malformed ?? 0))
  plans.push(...failing(base, 'cut', mix.truncated ?? 0))
  plans.push({ weight: mix.prose ?? 0, moves: [{ kind: 'prose' }] })
  const played = plans.filter((plan) => plan.weight > 0)
  return played.length > 0 ? played : [{ weight: 1, moves: base }]
}

function failing(base: readonly Move[], kind: 'broken' | 'cut', weight: number): Plan[] {
  if (weight <= 0) return []
  const plans = base.flatMap((move, index) => {
    const call = move.kind === 'speak' ? move.calls[0] : undefined
    return call ? [[...base.slice(0, index), { kind, call }, ...base.slice(index)]] : []
  })
  return plans.map((moves) => ({ weight: weight / plans.length, moves }))
}

function moveOf(step: Step): Move {
  if (step.raw !== undefined) return { kind: 'raw', text: step.raw }
  const single = step.call === undefined ? [] : [{ call: step.call, args: step.args }]
  const calls = (step.calls ?? single).map(({ call, args }) => ({ name: call, arguments: args }))
  return { kind: 'speak', say: step.say ?? '', calls }
}

/**
 * The next move, or null where the plan is over. Plans that agree with the turns said so far are drawn by weight: as
 * each turn redraws among what is still open, an episode ends up on a plan with that plan's weight, whatever seeds its
 * turns have. At temperature 0 the heaviest plan is taken. Where no plan agrees to the letter, the names of the calls
 * decide, and at last the number of turns alone.
 */
export function nextMove(
  plans: readonly Plan[],
  conversation: Conversation,
  dice: Dice,
): Move | null {
  const said = conversation.turns.map(takeApart)
  const open =
    [agreesExactly, agreesByName]
      .map((agrees) =>
        plans.filter(({ moves }) =>
          said.every((turn, index) => {
            const move = moves[index]
            return move ? agrees(move, turn) : turn.calls.length === 0
          }),
        ),
      )
      .find((agreeing) => agreeing.length > 0) ?? plans
  return pick(open, dice)?.moves[said.length] ?? null
}

function pick(plans: readonly Plan[], dice: Dice): Plan | undefined {
  if (dice.temperature <= 0) return plans.toSorted((a, b) => b.weight - a.weight)[0]
  const weights = plans.map(({ weight }) => weight)
  return plans[pickWeighted(weights, draw(dice.seed, 'plan'))]
}

function agreesExactly(move: Move, turn: SaidTurn): boolean {
  if (move.kind === 'speak' && move.calls.length === 0)
    return turn.calls.length === 0 && turn.content.endsWith(move.say.normalize('NFC').trim())
  if (!agreesByName(move, turn)) return false
  if (move.kind !== 'speak') return true
  return move.calls.every((call, index) => argumentsKey(call.arguments) === turn.calls[index]?.key)
}

function agreesByName(move: Move, turn: SaidTurn): boolean {
  if (move.kind === 'raw') return sameNames(takeApart(move.text).calls, turn.calls)
  if (move.kind === 'speak') return sameNames(move.calls, turn.calls)
  // A server may keep a refused block in the turn's content or take it out of it, so what counts is that no call came.
  return turn.calls.length === 0 && turn.content.endsWith(PROSE_END) === (move.kind === 'prose')
}

function sameNames(expected: readonly { name: string }[], said: readonly { name: string }[]) {
  return (
    expected.length === said.length &&
    expected.every(({ name }, index) => name === said[index]?.name)
  )
}
