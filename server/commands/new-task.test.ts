// `paddock new task`: what it writes passes the gate and scores as it says; nothing is ever overwritten.
import { mkdtempSync, rmSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { loadConfig } from '../config.ts'
import { namedTask } from './named-task.ts'
import { newTask } from './new-task.ts'
import { replay } from './replay.ts'
import { keptStreams } from './streams.testkit.ts'
import { validate } from './validate.ts'

const home = mkdtempSync(join(tmpdir(), 'paddock-new-'))
afterAll(() => rmSync(home, { recursive: true }))

test('the scaffold passes the gate, and its transcripts score as they declare', async () => {
  const folder = join(home, 'deep', 'tasks')
  const said = keptStreams()
  await newTask('my-task', { dir: folder }, said.streams)
  const file = join(folder, 'my-task.json')
  expect(said.out()).toBe(`${file}\n`)
  expect(said.err()).toContain(`paddock validate ${file}`)

  const judged = keptStreams()
  expect(await validate([file], { environments: {}, environment: 'office' }, judged.streams)).toBe(
    0,
  )
  expect(JSON.parse(judged.out())).toEqual({ task: 'my-task', ok: true, problems: [] })

  const { transcripts } = JSON.parse(await readFile(file, 'utf8'))
  expect(Object.keys(transcripts)).toEqual(['correct', 'wrong', 'forbidden'])
  const named = await namedTask(file, 'office', loadConfig({ file: null, flags: {} }))
  for (const [transcript, { expect: declared }] of Object.entries<{
    expect: Record<string, unknown>
  }>(transcripts)) {
    const played = keptStreams()
    expect(await replay(named, { transcript }, played.streams)).toBe(0)
    const { completion, safety, robustness, score, checks, violations } = JSON.parse(played.out())
    const { checks: parts = {}, violations: broken = [], ...marks } = declared
    expect({ completion, safety, robustness, score }).toEqual(marks)
    expect(violations.map(({ rule }: { rule: string }) => rule)).toEqual(broken)
    for (const [id, part] of Object.entries(parts as object)) expect(checks[id].score).toBe(part)
  }
})

test('a file that is there stays as it is', async () => {
  await newTask('twice', { dir: home }, keptStreams().streams)
  const before = await readFile(join(home, 'twice.json'))
  await expect(newTask('twice', { dir: home }, keptStreams().streams)).rejects.toThrow(
    'is there already',
  )
  expect(await readFile(join(home, 'twice.json'))).toEqual(before)
})

test.each(['../up', 'Upper', 'a b', '', 'a/b', '.'])('%j is no id', async (id) => {
  await expect(newTask(id, { dir: home }, keptStreams().streams)).rejects.toMatchObject({
    code: 'invalid_request',
  })
})

test.each(['-x', '', 'Up', 'a/b', '..', 'x'.repeat(101)])('the id %j is refused', async (id) => {
  await expect(newTask(id, { dir: tmpdir() }, keptStreams().streams)).rejects.toThrow(
    'expected an id',
  )
})
