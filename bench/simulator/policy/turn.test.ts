import { expect, test } from 'vitest'
import { readPrompt } from './conversation.ts'
import { parseScripts, type Script } from './script.ts'
import { nextTurn, remainder, type Style } from './turn.ts'
import { PROSE_END } from './wording.ts'

const CALL = '<tool_call>\n{"name": "look", "arguments": {"id": 1}}\n</tool_call>'
const script = (...steps: object[]) =>
  parseScripts(JSON.stringify({ match: 'x', transcripts: { correct: { steps } } }))[0] as Script
const LOOK = script({ call: 'look', args: { id: 1 } })

const STYLE: Style = { format: 'hermes', thinking: false, mix: { correct: 1 } }
const open = (partial = '') =>
  readPrompt(`<|im_start|>user\nx<|im_end|>\n<|im_start|>assistant\n${partial}`)
const say = (played: Script | null, style: Partial<Style> = {}, partial = '', temperature = 0) =>
  nextTurn(open(partial), played, { ...STYLE, ...style }, { seed: 's', temperature, topP: 1 })

test('at temperature 0 a call stands alone; above it a sentence leads in', () => {
  expect(say(LOOK).text).toBe(CALL)
  expect(say(LOOK, {}, '', 1).text).toMatch(/^[A-Z][^\n]*\.\n<tool_call>/)
  expect(say(LOOK, {}, '', 1).text.endsWith(`\n${CALL}`)).toBe(true)
})

test('words of the step take the place of the lead-in', () => {
  const turn = say(script({ say: 'I look first.', call: 'look', args: { id: 1 } }), {}, '', 1)
  expect(turn.text).toBe(`I look first.\n${CALL}`)
})

test('a message is said as it is written, a raw turn to the letter', () => {
  expect(say(script({ say: 'All done.' }), {}, '', 1).text).toBe('All done.')
  const raw = '<tool_call>{oops'
  expect(say(script({ raw }), { thinking: true }, '', 1).text).toBe(raw)
})

test('without a script, and after its end, the policy says something without calls', () => {
  expect(say(null).text.endsWith(PROSE_END)).toBe(true)
  const over = readPrompt(
    `<|im_start|>user\nx<|im_end|>\n<|im_start|>assistant\n${CALL}<|im_end|>\n<|im_start|>user\nMore?<|im_end|>\n<|im_start|>assistant\n`,
  )
  const turn = nextTurn(over, LOOK, STYLE, { seed: 's', temperature: 0, topP: 1 })
  expect(turn.text).not.toContain('<tool_call>')
})

test('a thinking policy writes its block, goes on in one that the template opened, and keeps out of a closed one', () => {
  const thinking = { thinking: true }
  expect(say(LOOK, thinking).text).toMatch(/^<think>\n[^\n]+\n<\/think>\n\n<tool_call>/)
  const opened = say(LOOK, thinking, '<think>\n')
  expect(remainder(opened, '<think>\n').text).toMatch(/^[^\n]+\n<\/think>\n\n<tool_call>/)
  const closed = '<think>\n\n</think>\n\n'
  expect(remainder(say(LOOK, thinking, closed), closed).text).toBe(CALL)
})

test('a policy that does not think closes the block that the template opened', () => {
  expect(remainder(say(LOOK, {}, '<think>\n'), '<think>\n').text).toBe(`\n</think>\n\n${CALL}`)
})

test('the rest of a turn is what the part before it lacks', () => {
  const whole = { text: `Okay, let me look.\n${CALL}`, runOn: null }
  for (let at = 0; at <= whole.text.length; at++)
    expect(whole.text.slice(0, at) + remainder(whole, whole.text.slice(0, at)).text).toBe(
      whole.text,
    )
})

test('a call that was begun under other words is ended as it was begun', () => {
  const whole = { text: `Okay, let me look.\n${CALL}`, runOn: null }
  const partial = `Fine, I will see.\n${CALL.slice(0, 20)}`
  expect(partial + remainder(whole, partial).text).toBe(`Fine, I will see.\n${CALL}`)
})

test('a sentence that was begun under other words is closed, and the call follows', () => {
  const whole = { text: `Okay, let me look.\n${CALL}`, runOn: null }
  expect(`Fine, I${remainder(whole, 'Fine, I').text}`).toBe(`Fine, I.\n${CALL}`)
})
