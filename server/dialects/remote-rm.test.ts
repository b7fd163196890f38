// slime's remote_rm against a whole server: a number for what was graded, an error for everything else, never a zero instead.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { generateTask } from '../../envs/arithmetic/tasks.ts'
import { type House, openHouse } from '../testkit/house.testkit.ts'
import { writeLab } from '../testkit/lab-environment.testkit.ts'

const { answer } = generateTask(0, 1)
/** Tasks whose grader lets the response down, each in its own way. */
const TROUBLES = {
  throws: { trouble: 'throw', at: 'grade' },
  lies: { rewards: { quality: 'high' } },
  dies: { trouble: 'exit', at: 'grade' },
}
let folder: string
let house: House
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'paddock-lab-'))
  mkdirSync(join(folder, 'tasks'))
  writeFileSync(join(folder, 'pack.yaml'), 'name: lab\nenvironment: lab\ntasks: tasks\n')
  for (const [id, trouble] of Object.entries(TROUBLES))
    writeFileSync(
      join(folder, 'tasks', `${id}.json`),
      JSON.stringify({ id, request: 'Measure it.', ...trouble }),
    )
  const settings = { environments: { lab: writeLab().module }, packs: [folder] }
  house = await openHouse({ office: true, tokens: false, settings })
}, 60_000)
afterAll(async () => {
  await house.close()
  rmSync(folder, { recursive: true })
})

async function ask(body: unknown, pack = 'arithmetic'): Promise<[status: number, body: unknown]> {
  const response = await fetch(`${house.url}/v1/compat/slime?pack=${pack}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  return [response.status, await response.json()]
}

const prompt = [{ role: 'user', content: 'How many are left?' }]

describe('the body is the bare reward', () => {
  test.each([
    ['the id of a task', 'sum-0', `There are ${answer} left.`, 1],
    ['its whole id', 'arithmetic/sum-0', `There are ${answer} left.`, 1],
    ['a wrong answer', 'sum-0', 'There are 7 left.', 0],
    ['nothing said', 'sum-0', '', 0],
    ['a reference answer', '72', 'So 70, no, 72 are left.<|im_end|>', 1],
    ['a reference answer as a number', 72, 'That makes 71.', 0],
    [
      'a call and no answer',
      'sum-0',
      '<tool_call>\n{"name": "calculator", "arguments": {"expression": "1 + 1"}}\n</tool_call>',
      0,
    ],
  ])('%s', async (_, label, response, reward) => {
    expect(await ask({ prompt, response, label })).toEqual([200, reward])
  })

  test('the prompt may be text or be left out, and unknown keys are ignored', async () => {
    const response = '72'
    expect(await ask({ prompt: 'How many?', response, label: '72', rm_type: 'x' })).toEqual([
      200, 1,
    ])
    expect(await ask({ response, label: '72' })).toEqual([200, 1])
  })

  test('the pack may be left out where the label names it', async () => {
    const url = `${house.url}/v1/compat/slime`
    const headers = { 'content-type': 'application/json' }
    const post = (label: string) =>
      fetch(url, {
        method: 'POST',
        headers,
        body: JSON.stringify({ response: `${answer}`, label }),
      })
    expect(await (await post('arithmetic/sum-0')).text()).toBe('1')
    expect((await post('72')).status).toBe(400)
  })
})

describe('what cannot be graded is an error', () => {
  test.each([
    ['a label that is no task and no answer', { prompt, response: '1', label: 'sum-none' }, 422],
    ['no label', { prompt, response: '1', label: null }, 400],
    ['no response', { prompt, response: null, label: '72' }, 400],
    ['NaN', '{"prompt": "", "response": "1", "label": NaN}', 400],
  ])('%s', async (_, body, status) => {
    expect(await ask(body)).toMatchObject([status, { status }])
  })

  test.each([
    ['a grader that throws', 'throws', 422, 'verifier_error'],
    ['a grader whose reward is no number', 'lies', 422, 'contract_violation'],
    ['a thread that dies, which another try may help', 'dies', 503, 'infra_worker'],
  ])(
    '%s',
    async (_, label, status, outcome) => {
      const [got, body] = await ask({ prompt, response: 'It is 4.', label }, 'lab')
      expect(got).toBe(status)
      expect((body as { detail: string }).detail).toContain(outcome)
    },
    60_000,
  )

  test('a pack that is not there, and one whose tasks have no reference answer', async () => {
    const body = { prompt, response: '1', label: '72' }
    expect(await ask(body, 'algebra')).toMatchObject([400, { path: 'pack' }])
    expect(await ask(body, 'office')).toMatchObject([400, { path: 'label' }])
  })
})

describe('a label that is nearly the id of a task is answered with that id, or in a large pack with what ids look like', () => {
  test.each([
    ['arithmetic', 'arithmetic/sum_0', 400, 'ids look like arithmetic/sum-0'],
    ['arithmetic', 'sum_0', 422, 'ids look like arithmetic/sum-0'],
    ['office', 'office/dev-04-interview-slt', 400, 'the nearest is office/dev-04-interview-slot'],
    ['office', 'dev-04-interview-slt', 400, 'the nearest is office/dev-04-interview-slot'],
  ])('%s: %s', async (pack, label, status, words) => {
    const [got, body] = await ask({ prompt, response: '1', label }, pack)
    expect(got).toBe(status)
    expect((body as { detail: string }).detail).toContain(words)
  })
})
