// The policy's next turn as text: the move of its plan, worded, or what is left of a turn that was cut open.
import type { Conversation } from './conversation.ts'
import type { Mix, Move } from './plan.ts'
import { nextMove, plansOf } from './plan.ts'
import type { Script } from './script.ts'
import type { CallFormat, Dice } from './wording.ts'
import { leadIn, prose, RUN_ON, thought, writeBroken, writeCalls, writeCutOpen } from './wording.ts'

export interface Style {
  format: CallFormat
  /** Write a `<think>` block before each turn. */
  thinking: boolean
  mix: Mix
}

/** A turn from its very start, the prefilled part included; `runOn` is repeated after it until the tokens are used up. */
export interface TurnText {
  text: string
  runOn: string | null
}

const EMPTY_THINK = '<think>\n\n</think>\n\n'

/** The whole assistant turn that the prompt opens, and where its open part ends in it. */
export function nextTurn(
  conversation: Conversation,
  script: Script | null,
  style: Style,
  dice: Dice,
): TurnText {
  const move = script
    ? nextMove(plansOf(script, style.mix), conversation, dice)
    : ({ kind: 'prose' } as const)
  const worded = word(move, style, dice)
  if (move?.kind === 'raw') return { ...worded, text: prefilled(conversation) + worded.text }
  return { ...worded, text: reasoning(conversation, style, dice) + worded.text }
}

function word(move: Move | null, { format }: Style, dice: Dice): TurnText {
  switch (move?.kind) {
    case undefined:
      return { text: 'That is all from my side.', runOn: null }
    case 'raw':
      return { text: move.text, runOn: null }
    case 'prose':
      return { text: prose(dice), runOn: null }
    case 'broken':
      return { text: before(leadIn(dice), writeBroken(move.call, format, dice)), runOn: null }
    case 'cut':
      return { text: before(leadIn(dice), writeCutOpen(move.call, format)), runOn: RUN_ON }
    case 'speak':
      if (move.calls.length === 0) return { text: move.say, runOn: null }
      return {
        text: before(move.say || leadIn(dice), writeCalls(move.calls, format)),
        runOn: null,
      }
  }
}

function before(sentence: string, block: string): string {
  return sentence === '' ? block : `${sentence}\n${block}`
}

/** What the template wrote into the open turn before the policy had its say. */
function prefilled({ partial }: Conversation): string {
  if (partial.startsWith(EMPTY_THINK)) return EMPTY_THINK
  return partial === '<think>\n' ? partial : ''
}

function reasoning({ partial }: Conversation, { thinking }: Style, dice: Dice): string {
  if (partial.startsWith(EMPTY_THINK)) return EMPTY_THINK
  if (thinking) return `<think>\n${thought(dice)}\n</think>\n\n`
  return partial.startsWith('<think>\n') ? EMPTY_THINK : ''
}

/**
 * What is left to say of `turn` where `partial` was said already. With another seed the rest may have been worded
 * otherwise: then a block that was begun is still ended, and a sentence that was begun is closed.
 */
export function remainder(turn: TurnText, partial: string): TurnText {
  if (turn.text.startsWith(partial)) return { ...turn, text: turn.text.slice(partial.length) }
  if (turn.runOn !== null && partial.startsWith(turn.text)) return { ...turn, text: '' }
  const begun = partial.indexOf('<tool_call>')
  const block = turn.text.slice(Math.max(0, turn.text.indexOf('<tool_call>')))
  if (begun < 0) return { ...turn, text: `.\n${block}` }
  const said = partial.slice(begun)
  return { ...turn, text: block.startsWith(said) ? block.slice(said.length) : `\n${block}` }
}
