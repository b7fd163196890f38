// `paddock validate`: one line a task, and for every fault of a file or a task a problem instead of a crash.
import { mkdtempSync, rmSync } from 'node:fs'
import { cp, mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, test } from 'vitest'
import { loadConfig } from '../config.ts'
import { namedTask } from './named-task.ts'
import { keptStreams } from './streams.testkit.ts'
import { validate } from './validate.ts'

const SHIPPED = fileURLToPath(new URL('../../envs/packs/office/', import.meta.url))
const HANDS = 'tasks/dev-05-share-the-right-file.json'
const home = mkdtempSync(join(tmpdir(), 'paddock-validate-'))
afterAll(() => rmSync(home, { recursive: true }))

async function run(...paths: string[]) {
  const { streams, out, err } = keptStreams()
  const code = await validate(paths, { environments: {}, environment: 'office' }, streams)
  const lines = out()
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))
  return { code, lines, err: err() }
}

/** A file in the test's folder. */
async function written(name: string, content: string): Promise<string> {
  const file = join(home, name)
  await writeFile(file, content)
  return file
}

describe('shipped packs', () => {
  test('have no problem, and the summary tells their number and the content hash', async () => {
    const { code, lines, err } = await run(SHIPPED)
    expect(lines.filter(({ ok }) => !ok)).toEqual([])
    expect(code).toBe(0)
    expect(err).toMatch(/^pack office \(.*\): content sha256 [0-9a-f]{64}\n/)
    expect(err).toContain(`${lines.length} tasks, ${lines.length} ok, 0 not ok\n`)
  })
  test('that are generated are validated one by one', async () => {
    const { code, lines } = await run(
      fileURLToPath(new URL('../../envs/packs/arithmetic', import.meta.url)),
    )
    expect(lines).toHaveLength(300)
    expect(code).toBe(0)
  })
})

describe('an environment that the settings do not name', () => {
  const pack = fileURLToPath(new URL('../../examples/warehouse/pack', import.meta.url))
  const settings = relative('', join(dirname(pack), 'paddock.yaml'))

  test.each([
    ['a pack', pack],
    ['its file', join(pack, 'tasks/two-shelves.json')],
  ])('of %s is told with the settings nearby that do', async (_, path) => {
    const { code, lines } = await run(path)
    expect(code).toBe(1)
    expect(lines[0].problems[0].message).toBe(
      `V01 spec: expected an environment of (arithmetic, office), found warehouse; its module is named in ${settings}: add -c ${settings}`,
    )
  })

  test('is told with what settings need, where none have it', async () => {
    const folder = join(home, 'far')
    await cp(pack, folder, { recursive: true })
    await writeFile(join(home, 'paddock.yaml'), 'environments: {other: ./other.mjs}')
    expect((await run(folder)).lines[0].problems[0].message).toContain(
      'found warehouse; add -c FILE with a paddock.yaml that names its module under environments',
    )
  })

  test('is told alike where a task is played', async () => {
    const played = namedTask(
      join(pack, 'tasks/two-shelves.json'),
      'office',
      loadConfig({ file: null, flags: {} }),
    )
    await expect(played).rejects.toThrow(
      `no environment warehouse; there are arithmetic, office; its module is named in ${settings}: add -c ${settings}`,
    )
  })
})

test('a task file is answered with its id', async () => {
  const { code, lines, err } = await run(join(SHIPPED, HANDS))
  expect(lines).toEqual([{ task: 'dev-05-share-the-right-file', ok: true, problems: [] }])
  expect({ code, err }).toEqual({ code: 0, err: '1 task, 1 ok, 0 not ok\n' })
})

test('a task that fails is told with rule, path, what was expected and what was found', async () => {
  const spec = JSON.parse(await readFile(join(SHIPPED, HANDS), 'utf8'))
  spec.user.done = { if_any: ['which'] }
  const { code, lines } = await run(
    await written('hasty.json', JSON.stringify(spec)),
    join(SHIPPED, HANDS),
  )
  expect(lines.map(({ ok }) => ok)).toEqual([false, true])
  expect(lines[0].problems).toEqual([
    {
      rule: 'V10',
      path: 'user.done',
      expected: expect.stringContaining('reference_path[5]'),
      found: expect.stringContaining('reference_path[2]'),
      message: expect.stringContaining('V10 user.done: expected '),
    },
  ])
  expect(code).toBe(1)
})

test('a variant of a task beside the task itself is no repeated id', async () => {
  const copy = await written('copy.json', await readFile(join(SHIPPED, HANDS), 'utf8'))
  expect((await run(copy, join(SHIPPED, HANDS))).code).toBe(0)
})

describe('what cannot be read is a problem (V01) of that task', () => {
  test.each([
    ['a file that is not there', null, 'ENOENT'],
    ['invalid JSON', '{', 'expected JSON'],
    ['a duplicate key', '{"id":"x","title":1,"title":2}', 'the key "title" stands twice'],
    ['a list', '[]', 'a list'],
    ['bottomless nesting', `${'['.repeat(100_000)}`, 'levels of nesting'],
  ])('%s', async (what, content, found) => {
    const name = `${what.replaceAll(' ', '-')}.json`
    const file = content === null ? join(home, name) : await written(name, content)
    const { code, lines } = await run(file, join(SHIPPED, HANDS))
    expect(lines).toEqual([
      { task: file, ok: false, problems: [expect.objectContaining({ rule: 'V01', path: '' })] },
      expect.objectContaining({ ok: true }),
    ])
    expect(lines[0].problems[0].found).toContain(found)
    expect(code).toBe(1)
  })

  test('a folder that is no pack', async () => {
    await mkdir(join(home, 'empty'))
    const { code, lines } = await run(join(home, 'empty'))
    expect(lines).toEqual([expect.objectContaining({ task: join(home, 'empty'), ok: false })])
    expect(lines[0].problems[0].message).toContain('pack.yaml')
    expect(code).toBe(1)
  })
})

describe('within one pack', () => {
  const pack = join(home, 'pack')
  test('an id that occurs twice and a link that leads out are problems, the other tasks are judged', async () => {
    await mkdir(join(pack, 'tasks'), { recursive: true })
    await writeFile(join(pack, 'pack.yaml'), 'name: mine\nenvironment: office\ntasks: tasks\n')
    await cp(join(SHIPPED, HANDS), join(pack, 'tasks', 'a.json'))
    await cp(join(SHIPPED, HANDS), join(pack, 'tasks', 'b.json'))
    await symlink(join(SHIPPED, HANDS), join(pack, 'tasks', 'c.json'))
    const { lines } = await run(pack)
    expect(
      lines.map(({ ok, problems }) => [ok, problems.map((one: { path: string }) => one.path)]),
    ).toEqual([
      [true, []],
      [false, ['id']],
      [false, ['']],
    ])
    expect(lines[1].problems[0].message).toContain('tasks/a.json')
    expect(lines[2].problems[0].found).toBe('a link that leads out of it')
  })

  test('a single file of it is judged with its graders and its environment', async () => {
    const own = join(home, 'own')
    await mkdir(join(own, 'tasks'), { recursive: true })
    const manifest = [
      'name: own',
      'environment: office',
      'tasks: tasks',
      'graders:',
      '  fair: fair.mjs',
    ]
    await writeFile(join(own, 'pack.yaml'), manifest.join('\n'))
    const grader = "export const version = 1\nexport default () => ({ status: 'scored', score: 1 })"
    await writeFile(join(own, 'fair.mjs'), grader)
    const spec = JSON.parse(await readFile(join(SHIPPED, HANDS), 'utf8'))
    const { completion } = spec.grading
    completion[0] = {
      id: completion[0].id,
      weight: completion[0].weight,
      kind: 'custom',
      grader: 'fair',
    }
    const file = join(own, 'tasks', 'one.json')
    await writeFile(file, JSON.stringify(spec))
    const whole = await run(own)
    const single = await run(file)
    expect(single.lines).toEqual(whole.lines)
    expect(JSON.stringify(single.lines)).not.toContain('no grader')
    await writeFile(join(own, 'pack.yaml'), manifest.slice(0, 3).join('\n'))
    const without = await run(file)
    expect(without.lines[0].problems).not.toEqual(single.lines[0].problems)
  })

  test('an environment that nobody knows is named with those that there are', async () => {
    await writeFile(join(pack, 'pack.yaml'), 'name: mine\nenvironment: ofice\ntasks: tasks\n')
    const { code, lines } = await run(pack)
    expect(lines[0].problems[0].message).toContain('arithmetic, office')
    expect(code).toBe(1)
  })
})
