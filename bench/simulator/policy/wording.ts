// How the simulated policy words a turn: tag forms, whole and broken, and sentences that vary with the temperature.
import { draw, pickWeighted } from './seeded.ts'

export type CallFormat = 'hermes' | 'qwen3-coder'

export interface Call {
  name: string
  arguments: Record<string, unknown>
}

/** What decides between wordings. The same dice give the same words. */
export interface Dice {
  seed: string
  temperature: number
  topP: number
}

/** Call blocks in the training form of the templates: one after the other, `\n` between. */
export function writeCalls(calls: readonly Call[], format: CallFormat): string {
  return calls.map((call) => (format === 'hermes' ? hermes(call) : tagged(call))).join('\n')
}

function hermes({ name, arguments: values }: Call): string {
  return `<tool_call>\n{"name": ${pythonJson(name)}, "arguments": ${pythonJson(values)}}\n</tool_call>`
}

function tagged({ name, arguments: values }: Call): string {
  const parameters = Object.entries(values).map(
    ([key, value]) => `<parameter=${key}>\n${taggedValue(value)}\n</parameter>\n`,
  )
  return `<tool_call>\n<function=${name}>\n${parameters.join('')}</function>\n</tool_call>`
}

function taggedValue(value: unknown): string {
  return typeof value === 'string' ? value : pythonJson(value)
}

/** JSON as Python's `json.dumps(ensure_ascii=False)` spaces it, which is what Qwen's templates show the model. */
export function pythonJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(pythonJson).join(', ')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const members = Object.entries(value).map(
    ([key, member]) => `${JSON.stringify(key)}: ${pythonJson(member)}`,
  )
  return `{${members.join(', ')}}`
}

/** A call as models get it wrong, one of a few ways; no parser that follows the grammar takes any of them. */
export function writeBroken(call: Call, format: CallFormat, dice: Dice): string {
  const whole = writeCalls([call], format)
  const ways =
    format === 'hermes'
      ? [
          whole.replace(/\}\n<\/tool_call>$/, '\n</tool_call>'),
          whole.replace(/\}\}\n<\/tool_call>$/, '},}\n</tool_call>'),
          whole.replace(/^<tool_call>\n\{"name"/, '<tool_call>\n{name'),
        ]
      : [
          whole.replace(/\n<\/function>\n/, '\n'),
          whole.replace(/^(<tool_call>\n<function=[^>]*)>/, '$1'),
          whole.replace(/<\/function>\n<\/tool_call>$/, 'and so on\n</function>\n</tool_call>'),
        ]
  return ways[Math.floor(draw(dice.seed, 'broken') * ways.length)] as string
}

/** The start of a call whose last string value is still open: what follows only makes that value longer. */
export function writeCutOpen(call: Call, format: CallFormat): string {
  const strings = Object.entries(call.arguments).filter(([, value]) => typeof value === 'string')
  const [key, value] = strings.at(-1) ?? ['note', 'as asked']
  const open = { name: call.name, arguments: { [key]: value } }
  return format === 'hermes'
    ? hermes(open).replace(/"\}\}\n<\/tool_call>$/, '')
    : tagged(open).replace(/\n<\/parameter>\n<\/function>\n<\/tool_call>$/, '')
}

/** What a turn that was cut open goes on with, as often as there is room. */
export const RUN_ON = ' and so on'

const OPENINGS =
  'Right,|Okay,|Good,|Well,|Fine,|So,|Now,|Then,|To begin,|As a step,|Here,|Next,'.split('|')
const RESOLVES =
  'I will|let me|I am going to|I want to|I would like to|it is time to|I shall|it makes sense to|I need to|it helps to|the plan is to|I mean to'.split(
    '|',
  )
const ACTS =
  'look this up|check the facts|go through the records|take the next step|use a tool here|see what is there|work on this|move this along|find out more|handle this part|continue with this|make the call'.split(
    '|',
  )
const CLOSINGS =
  'first|before I go on|to be sure|as asked|with care|right away|step by step|in order|properly|now|at this point|as planned'.split(
    '|',
  )

/** A short sentence before a call. At temperature 0 there is none; the hotter, the more different ones are met. */
export function leadIn(dice: Dice): string {
  if (draw(dice.seed, 'silent') < 1 - 2 * dice.temperature) return ''
  const parts = [OPENINGS, RESOLVES, ACTS, CLOSINGS]
  const words = parts.map((options, index) => choose(options, dice, `lead${index}`))
  return `${words.join(' ')}.`
}

/** A thought for the inside of `<think>`. */
export function thought(dice: Dice): string {
  const words = [RESOLVES, ACTS, CLOSINGS].map((options, index) =>
    choose(options, dice, `think${index}`),
  )
  const sentence = words.join(' ')
  return `${sentence.charAt(0).toUpperCase()}${sentence.slice(1)}.`
}

/** How every answer of `prose` ends, by which it is known again. */
export const PROSE_END = 'I believe that all is well and nothing more is needed.'

/** An answer without any call. */
export function prose(dice: Dice): string {
  const words = [OPENINGS, RESOLVES, ACTS, CLOSINGS].map((options, index) =>
    choose(options, dice, `prose${index}`),
  )
  return `${words.join(' ')}. ${PROSE_END}`
}

/** How much less likely each option is than the one before it, in nats at temperature 1. */
const RANK_COST = 0.1

/** Samples from a softmax over ranks, with temperature and nucleus as in a sampler; temperature 0 takes the first. */
function choose(options: readonly string[], dice: Dice, about: string): string {
  if (dice.temperature <= 0) return options[0] as string
  const weights = options.map((_, rank) => Math.exp((-rank * RANK_COST) / dice.temperature))
  // The nucleus is the front of the ranks: a draw that is scaled down never leaves it.
  const drawn = draw(dice.seed, about) * Math.min(1, dice.topP)
  return options[pickWeighted(weights, drawn)] as string
}
