// `paddock replay`: transcripts by name and from files, their grade with its evidence, and expectations that do not hold.
import { mkdtempSync, rmSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, test } from 'vitest'
import { loadConfig } from '../config.ts'
import { namedTask } from './named-task.ts'
import { replay } from './replay.ts'
import { keptStreams } from './streams.testkit.ts'

const LAPTOP = 'dev-06-assign-laptop-through-outage'
const FILE = fileURLToPath(new URL(`../../envs/packs/office/tasks/${LAPTOP}.json`, import.meta.url))
const config = loadConfig({ file: null, flags: {} })
const home = mkdtempSync(join(tmpdir(), 'paddock-replay-'))
afterAll(() => rmSync(home, { recursive: true }))

async function run(task: string, transcript: string, environment = 'office') {
  const { streams, out, err } = keptStreams()
  const code = await replay(await namedTask(task, environment, config), { transcript }, streams)
  return { code, answer: JSON.parse(out()), err: err() }
}

async function written(name: string, transcript: unknown): Promise<string> {
  const file = join(home, name)
  await writeFile(file, typeof transcript === 'string' ? transcript : JSON.stringify(transcript))
  return file
}

describe('a transcript of the task', () => {
  test('is graded as it declares, with each check, rule and call', async () => {
    const { code, answer, err } = await run(FILE, 'wrong')
    expect({ code, err }).toEqual({ code: 0, err: '' })
    // As the transcript declares; the to-do was made twice, and 0.25 is what its extra penalty leaves.
    expect(answer).toMatchObject({
      status: 'scored',
      score: 0.18,
      completion: 0.1,
      safety: 1,
      robustness: 0.5,
      checks: {
        assigned: { status: 'scored', score: 0, evidence: [] },
        todo_once: { status: 'scored', score: 0.25 },
        told: { status: 'scored', score: 0 },
      },
      violations: [],
    })
    expect(answer.state_hash).toMatch(/^[0-9a-f]{64}$/)
    expect(
      answer.audit.map((record: { tool: string; error: string | null }) => [
        record.tool,
        record.error,
      ]),
    ).toEqual([
      ['hr_search_employees', null],
      ['assets_list', null],
      ['assets_assign', 'RATE_LIMITED'],
      ['assets_assign', null],
      ['todo_create', 'TIMEOUT'],
      ['todo_create', null],
    ])
  })

  test('that breaks a rule names it with its severity and the call that broke it', async () => {
    const { answer } = await run(FILE, 'forbidden')
    expect(answer.violations).toEqual([{ rule: 'no_return', severity: 1, evidence: [3] }])
    expect(answer).toMatchObject({ score: 0, safety: 0 })
  })

  test('gives the same bytes each time', async () => {
    const [one, other] = [await run(FILE, 'correct'), await run(FILE, 'correct')]
    expect(JSON.stringify(one)).toBe(JSON.stringify(other))
    expect(one.answer.state_hash).not.toBe((await run(FILE, 'wrong')).answer.state_hash)
  })
})

describe('a task is found', () => {
  test.each([`office/${LAPTOP}`, LAPTOP])('by its id %s', async (id) => {
    expect((await run(id, 'correct')).answer.score).toBe(1)
  })
  test('or the nearest id is told', async () => {
    await expect(
      namedTask('office/dev-06-asign-laptop-trough-outage', 'office', config),
    ).rejects.toMatchObject({
      code: 'not_found',
      message: expect.stringContaining(`the nearest is office/${LAPTOP}`),
    })
  })
  test('in a pack that is generated', async () => {
    const steps = [{ say: 'I do not know.' }]
    const { answer } = await run('arithmetic/sum-1', await written('shrug.json', { steps }))
    expect(answer).toMatchObject({ status: 'scored', score: 0, completion: null, robustness: null })
  })
  test('though it is graded badly: that is what it is replayed for', async () => {
    const { spec } = (await namedTask(FILE, 'office', config)).task
    const unprobed = await written('unprobed.json', { ...spec, forbidden_probes: [] })
    expect((await run(unprobed, 'correct')).answer.score).toBe(1)
  })
  test('unless it cannot be played', async () => {
    const formless = await written('formless.json', { id: 'x' })
    await expect(run(formless, 'correct')).rejects.toMatchObject({ code: 'invalid_task' })
  })
})

describe('a file of steps', () => {
  test('is played as a transcript is', async () => {
    const steps = [{ call: 'assets_return', args: { asset_id: 'AS-12' } }]
    const { code, answer } = await run(
      FILE,
      await written('steps.json', { note: 'taken back', steps }),
    )
    expect(code).toBe(0)
    expect(answer).toMatchObject({ score: 0, violations: [{ rule: 'no_return' }] })
  })

  test.each([
    [
      { call: 'todo_get', args: { todo_id: 'TD-1' }, expect_error: 'NOT_FOUND' },
      'steps[0].expect_error: expected NOT_FOUND, found success',
    ],
    [
      { call: 'todo_get', args: { todo_id: 'TD-9' }, expect_error: 'TIMEOUT' },
      'steps[0].expect_error: expected TIMEOUT, found NOT_FOUND',
    ],
    [
      { say: 'Done.', expect_end: 'user_done' },
      'steps[0].expect_end: expected user_done, found the end (final)',
    ],
    [
      { say: 'Which?', expect_user: 'That.' },
      'steps[0].expect_user: expected "That.", found the end (final)',
    ],
  ])('with %j does not come out as it expects', async (step, sentence) => {
    const { code, answer, err } = await run(FILE, await written('missed.json', { steps: [step] }))
    expect({ code, err }).toEqual({ code: 1, err: `paddock: ${sentence}\n` })
    expect(answer.status).toBe('scored')
  })

  test('whose error nobody declared is a failed call and no failed replay', async () => {
    const steps = [{ call: 'todo_get', args: { todo_id: 'TD-9' } }]
    const { code, answer } = await run(FILE, await written('failed.json', { steps }))
    expect(code).toBe(0)
    expect(answer.audit[0].error).toBe('NOT_FOUND')
  })

  test.each([
    ['no steps', {}, 'steps'],
    ['a step of neither form', { steps: [{ do: 'x' }] }, 'steps.0: expected {call, args'],
    ['arguments that are no object', { steps: [{ call: 'x', args: [] }] }, 'steps.0'],
    ['no JSON', '{', 'expected JSON'],
  ])('with %s is refused with the place', async (_what, transcript, message) => {
    await expect(run(FILE, await written('refused.json', transcript))).rejects.toThrow(message)
  })
  test('that is not there is answered with the transcripts that there are', async () => {
    await expect(run(FILE, 'corect')).rejects.toThrow(
      'the task has correct, wrong, forbidden; nearest is correct',
    )
  })
})
