import { expect, test } from 'vitest'
import { readPrompt } from './conversation.ts'
import { createScriptFinder, parseScripts } from './script.ts'

const line = (match: string, id?: string) =>
  JSON.stringify({
    match,
    ...(id && { id }),
    transcripts: { correct: { steps: [{ say: 'Yes.' }] } },
  })

const asked = (text: string) =>
  readPrompt(`<|im_start|>user\n${text}<|im_end|>\n<|im_start|>assistant\n`)

test('a file holds one script a line, blank lines aside', () => {
  const scripts = parseScripts(`${line('One?')}\n\n${line('Two?')}\n`)
  expect(scripts.map(({ match }) => match)).toEqual(['One?', 'Two?'])
})

test('keys for those who check transcripts are no hindrance', () => {
  const step = { call: 'f', args: { a: 1 }, expect_error: 'TIMEOUT' }
  const text = JSON.stringify({ match: 'x', transcripts: { wrong: { note: 'n', steps: [step] } } })
  expect(parseScripts(text)[0]?.transcripts.wrong?.steps[0]).toMatchObject({ call: 'f' })
})

test.each([
  ['{"match": "x"', 'line 2'],
  ['{"match": "x", "transcripts": {"correct": {"steps": [{}]}}}', 'say, call, calls or raw'],
])('the line %s is refused with its number and the reason', (bad, said) => {
  expect(() => parseScripts(`${line('One?')}\n${bad}`)).toThrow(said)
})

test('the task is the one whose text is the first user message, else one that the prompt contains', () => {
  const find = createScriptFinder(parseScripts([line('Sum'), line('Sum it up')].join('\n')), null)
  expect(find(asked('Sum'))?.match).toBe('Sum')
  expect(find(asked('Please: Sum it up.'))?.match).toBe('Sum it up')
  expect(find(asked('Divide'))).toBeNull()
})

test('a marker names the task by its id, whatever the rest says', () => {
  const find = createScriptFinder(parseScripts(line('Sum it up', 't-7')), /task: (\S+)/)
  expect(find(asked('Anything. task: t-7'))?.match).toBe('Sum it up')
  expect(find(asked('Anything. task: t-8'))).toBeNull()
})
