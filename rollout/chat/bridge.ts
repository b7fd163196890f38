// The ids between an answer as sampled and the next one: what the template writes there, learnt from the template itself.
import { PaddockError } from '../../protocol/errors.ts'
import { pythonStrip } from './python-text.ts'
import type { TextCodec } from './text-codec.ts'

/** A message's content goes here; `trimmed` where the template strips white space from it. */
interface Slot {
  slot: number
  trimmed: boolean
}

/** What stands after an assistant turn for given roles: the template's own text, with slots for the contents. */
export type BridgeShape = readonly (string | Slot)[]

/** Stands around a content's name so that it is found again: a private-use character, which nothing strips. */
const MARK = '\u{F8FF}'
const marked = (name: string): string => `${MARK}${name}${MARK}`

/**
 * Learns the shape for a sequence of roles by rendering a conversation of marked contents and reading what stands
 * behind the assistant's turn: `\n`, the user turn in the form of the family (hermes, Qwen3-Coder, …), the generation
 * prompt with its prefilled thinking. `render` is the template with generation prompt and the turn's kwargs.
 */
export function learnBridge(
  roles: readonly string[],
  endOfTurn: string,
  render: (messages: { role: string; content: string }[]) => string,
): BridgeShape {
  const answer = marked('answer')
  // White space around the mark shows whether the template trims contents.
  const contents = roles.map((_, index) => `\n ${marked(String(index))} \n`)
  const text = render([
    { role: 'user', content: 'question' },
    { role: 'assistant', content: answer },
    ...roles.map((role, index) => ({ role, content: contents[index]! })),
  ])
  const answerEnd = text.indexOf(answer) + answer.length
  const turnEnd = text.indexOf(endOfTurn, answerEnd)
  if (!text.includes(answer) || turnEnd < 0 || text.slice(answerEnd, turnEnd).trim() !== '') {
    throw shapeError(`it must end an assistant turn with ${endOfTurn} right after the content`)
  }
  const shape: (string | Slot)[] = []
  let rest = text.slice(turnEnd + endOfTurn.length)
  for (const [slot, content] of contents.entries()) {
    const trimmed = !rest.includes(content)
    const shown = trimmed ? content.trim() : content
    const at = rest.indexOf(shown)
    if (at < 0) throw shapeError(`it drops the content of a message of role ${roles[slot]}`)
    shape.push(rest.slice(0, at), { slot, trimmed })
    rest = rest.slice(at + shown.length)
  }
  return [...shape, rest]
}

/**
 * The shape's ids with the contents filled in. Control tokens come from the template's text alone; contents, with the
 * template's plain text around them, are tokenised as plain text. The ids `before` are put in front.
 */
export function bridgeIds(
  shape: BridgeShape,
  contents: readonly string[],
  codec: TextCodec,
  before: readonly number[] = [],
): Int32Array {
  const ids = [...before]
  let plain = ''
  const flush = (): void => {
    for (const id of codec.encodePlain(plain)) ids.push(id)
    plain = ''
  }
  for (const part of shape) {
    if (typeof part === 'string') {
      for (const piece of codec.split(part)) {
        if (piece.id === null) {
          plain += piece.text
          continue
        }
        flush()
        ids.push(piece.id)
      }
    } else {
      const content = contents[part.slot] ?? ''
      plain += part.trimmed ? pythonStrip(content, 'strip') : content
    }
  }
  flush()
  return Int32Array.from(ids)
}

function shapeError(rule: string): PaddockError {
  return new PaddockError(
    'invalid_config',
    `the chat template cannot be continued token by token: ${rule}. Use policy.mode chat, or another template`,
    { path: 'chat_template' },
  )
}
