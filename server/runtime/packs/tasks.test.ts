// The catalogue of tasks: each is put through the gate as it is loaded, and a bad one leaves the others be.
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { JsonObject } from '../../../protocol/json.ts'
import { createPool, type Pool, WorkerLost } from '../threads/pool.ts'
import type { Pack } from './packs.ts'
import { type TaskFile, unreadable } from './task-file.ts'
import { loadTasks, type TaskCatalogue } from './tasks.ts'

const TASKS = new URL('../../../envs/packs/office/tasks/', import.meta.url)
const spec = (name: string): JsonObject =>
  JSON.parse(readFileSync(new URL(`${name}.json`, TASKS), 'utf8'))
const good = spec('dev-04-interview-slot')
const unprobed = { ...spec('dev-05-share-the-right-file'), forbidden_probes: [] }
const misspelt = { ...spec('dev-06-assign-laptop-through-outage'), reqest: 'x' }

const pack = (files: TaskFile[]): Pack => ({
  name: 'mine',
  environment: 'office',
  files,
  generated: null,
  graders: {},
  hash: '',
})

let pool: Pool
let inspections = 0
let catalogue: TaskCatalogue

beforeAll(async () => {
  const real = createPool({
    threads: 1,
    maxTurnSeconds: 5,
    heapMb: 256,
    environments: {},
    models: {},
  })
  pool = {
    ...real,
    run(kind, input) {
      if (kind === 'check') inspections++
      return real.run(kind, input)
    },
  }
  await pool.ready()
  const files = [good, unprobed, misspelt, good].map((one, i) => ({ file: `${i}.json`, spec: one }))
  const bad = unreadable('tasks/bad.json', 'one JSON object with each key once', 'two of "id"')
  catalogue = await loadTasks([pack([...files, bad])], pool)
}, 60_000)
afterAll(() => pool.close())

test('a pack loads without its failing tasks, and each of those says what is wrong with it', () => {
  expect(catalogue.summaries().map(({ id }) => id)).toEqual(['mine/dev-04-interview-slot'])
  expect(catalogue.refused).toEqual([
    { id: 'mine/tasks/bad.json', problem: expect.stringContaining('two of "id"') },
    {
      id: 'mine/dev-05-share-the-right-file',
      problem: expect.stringContaining('V12 grading.safety[0]'),
    },
    {
      id: 'mine/dev-06-assign-laptop-through-outage',
      problem: expect.stringContaining('V01 reqest'),
    },
    { id: 'mine/dev-04-interview-slot', problem: 'its id occurs twice' },
  ])
})

describe('an inline spec', () => {
  test('is put through the gate once for each hash of it', async () => {
    const before = inspections
    const first = await catalogue.inline('office', good, 'tasks[0].spec', 'load')
    const again = await catalogue.inline('office', structuredClone(good), 'tasks[1].spec', 'load')
    expect(again).toEqual(first)
    expect(inspections).toBe(before + 1)
    await catalogue.inline('office', { ...good, title: 'Another' }, 'tasks[2].spec', 'load')
    expect(inspections).toBe(before + 2)
  })
  test('that fails is refused with the rule, and the path within the batch', async () => {
    for (let attempt = 0; attempt < 2; attempt++)
      await expect(
        catalogue.inline('office', unprobed, 'tasks[0].spec', 'load'),
      ).rejects.toMatchObject({
        code: 'invalid_task',
        path: 'tasks[0].spec.grading.safety[0]',
        message: expect.stringMatching(/^V12 grading.safety\[0\]: expected a probe/),
      })
  })
})

test('a task whose check never ends is named and left out, and those that were checked with it are not', async () => {
  const hangs = { ...good, id: 'hangs' }
  const others = ['a', 'b', 'c'].map((id) => ({ ...good, id }))
  const losing: Pool = {
    ...pool,
    async run(kind, input) {
      const tasks = kind === 'inspect' ? (input as { tasks: { id: string }[] }).tasks : []
      if (tasks.some(({ id }) => id === 'mine/hangs'))
        throw new WorkerLost('hang_killed', 'no answer within 30 s', null)
      return pool.run(kind, input)
    },
  }
  const files = [hangs, ...others].map((one, i) => ({ file: `${i}.json`, spec: one }))
  const loaded = await loadTasks([pack(files)], losing)
  expect(loaded.summaries().map(({ id }) => id)).toEqual(['mine/a', 'mine/b', 'mine/c'])
  expect(loaded.refused).toEqual([
    { id: 'mine/hangs', problem: expect.stringContaining('no answer within 30 s') },
  ])
})
