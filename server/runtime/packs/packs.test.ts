// Packs from disk: what is read, what is told of files that cannot be, and that nothing outside is touched.
import { mkdtempSync, rmSync } from 'node:fs'
import { cp, mkdir, rename, rm, symlink, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { gradersOf, readPack } from './packs.ts'

const home = mkdtempSync(join(tmpdir(), 'paddock-packs-'))
afterAll(() => rmSync(home, { recursive: true }))

let pack = ''
let made = 0

/** A pack of one task, and beside it a file that is none of its business. */
beforeEach(async () => {
  const root = join(home, String(made++))
  pack = join(root, 'pack')
  await mkdir(join(pack, 'tasks'), { recursive: true })
  await writeFile(join(root, 'outside.json'), '{"id":"outside"}')
  await writeFile(join(pack, 'pack.yaml'), 'name: mine\nenvironment: office\ntasks: tasks\n')
  await writeFile(join(pack, 'tasks', 'one.json'), '{"id":"one"}')
})

/** Name of each file with its spec's id, or with what was found instead. */
async function filesOf(folder: string): Promise<[string, unknown][]> {
  const { files } = await readPack(folder)
  return files.map((file) => [file.file, 'spec' in file ? file.spec.id : file.problem.found])
}

test('a pack is its name, its environment and its task files in the order of their names', async () => {
  await writeFile(join(pack, 'tasks', 'a.json'), '{"id":"first"}')
  await writeFile(join(pack, 'tasks', 'notes.txt'), 'no task')
  expect(await readPack(pack)).toMatchObject({
    name: 'mine',
    environment: 'office',
    generated: null,
  })
  expect(await filesOf(pack)).toEqual([
    ['tasks/a.json', 'first'],
    ['tasks/one.json', 'one'],
  ])
})

describe('a task file that cannot be read is a problem of that task alone', () => {
  test.each([
    ['a key twice', '{"id":"x","id":"y"}', 'the key "id" stands twice in one object'],
    ['no JSON', '{"id":', 'expected JSON: '],
    ['a list', '[{"id":"x"}]', 'a list'],
    ['a number', '7', 'number'],
    ['nothing', '', 'found an empty body'],
    ['NaN', '{"id":NaN}', 'JSON has no NaN'],
    ['bytes that are no text', Buffer.from([0x22, 0xff, 0x22]), 'bytes that are none'],
  ])('%s', async (_what, content, found) => {
    await writeFile(join(pack, 'tasks', 'bad.json'), content)
    const { files } = await readPack(pack)
    expect(files.map(({ file }) => file)).toEqual(['tasks/bad.json', 'tasks/one.json'])
    expect(files[0]).toMatchObject({ problem: { rule: 'V01', path: '' } })
    expect(files[0]).toMatchObject({ problem: { found: expect.stringContaining(found) } })
    expect(files[0]).toMatchObject({
      problem: { message: expect.stringContaining('tasks/bad.json') },
    })
  })
  test('a folder with the name of one', async () => {
    await mkdir(join(pack, 'tasks', 'folder.json'))
    expect(await filesOf(pack)).toContainEqual([
      'tasks/folder.json',
      'something else, such as a folder',
    ])
  })
})

describe('nothing outside of a pack is read', () => {
  test.each(['../outside.json', '../../outside.json'])(
    'a link to %s is no task',
    async (target) => {
      await symlink(target, join(pack, 'tasks', 'link.json'))
      expect(await filesOf(pack)).toEqual([
        [
          'tasks/link.json',
          target.startsWith('../../')
            ? 'a link that leads out of it'
            : expect.stringContaining('ENOENT'),
        ],
        ['tasks/one.json', 'one'],
      ])
    },
  )
  test('a link within the pack is followed', async () => {
    await writeFile(join(pack, 'shared.json'), '{"id":"shared"}')
    await symlink('../shared.json', join(pack, 'tasks', 'link.json'))
    expect(await filesOf(pack)).toContainEqual(['tasks/link.json', 'shared'])
  })
  test.each(['..', '../pack-2', 'tasks/../..', '/', 'file:///etc'])(
    'a pack with the task folder %s is refused',
    async (tasks) => {
      await cp(pack, `${pack}-2`, { recursive: true })
      await writeFile(
        join(pack, 'pack.yaml'),
        `name: mine\nenvironment: office\ntasks: "${tasks}"\n`,
      )
      await expect(readPack(pack)).rejects.toMatchObject({ code: 'invalid_config' })
    },
  )
  test('an absolute path is refused even where it stays inside', async () => {
    const yaml = `name: mine\nenvironment: office\ntasks: ${join(pack, 'tasks')}\n`
    await writeFile(join(pack, 'pack.yaml'), yaml)
    await expect(readPack(pack)).rejects.toThrow('leads out of it')
  })
  test('a task folder that is a link out of the pack is refused', async () => {
    await cp(join(pack, 'tasks'), join(pack, '..', 'elsewhere'), { recursive: true })
    await rm(join(pack, 'tasks'), { recursive: true })
    await symlink('../elsewhere', join(pack, 'tasks'))
    await expect(readPack(pack)).rejects.toThrow('leads out of it')
  })
  test.each([
    ['../rota.mjs', 'leads out of it'],
    ['/etc/hostname', 'leads out of it'],
    ['nowhere.mjs', 'cannot be read'],
  ])('a grader at %s is refused', async (file, words) => {
    await writeFile(join(pack, '..', 'rota.mjs'), 'export default () => 1')
    const yaml = `name: mine\nenvironment: office\ntasks: tasks\ngraders: { rota: ${file} }\n`
    await writeFile(join(pack, 'pack.yaml'), yaml)
    await expect(readPack(pack)).rejects.toThrow(words)
  })
  test('a grader named judge is refused, and one name for two graders', async () => {
    const yaml = (name: string) =>
      `name: mine\nenvironment: office\ntasks: tasks\ngraders: { ${name}: rota.mjs }\n`
    await writeFile(join(pack, 'rota.mjs'), 'export default () => 1')
    await writeFile(join(pack, 'pack.yaml'), yaml('judge'))
    await expect(readPack(pack)).rejects.toThrow('means the judge')
    await writeFile(join(pack, 'pack.yaml'), yaml('rota'))
    const one = await readPack(pack)
    expect(Object.keys(gradersOf([one, one]))).toEqual(['rota'])
    await writeFile(join(pack, 'rota.mjs'), 'export default () => 2')
    const other = await readPack(pack)
    expect(() => gradersOf([one, other])).toThrow('another pack has a grader of that name')
  })
  test('a pack.yaml that is a link out of the pack is refused', async () => {
    await rename(join(pack, 'pack.yaml'), join(pack, '..', 'pack.yaml'))
    await symlink('../pack.yaml', join(pack, 'pack.yaml'))
    await expect(readPack(pack)).rejects.toThrow('pack.yaml leads out of the pack')
  })
})

describe('a pack.yaml that is wrong is refused with its name', () => {
  test.each([
    ['an unknown key', 'name: mine\nenvironment: office\ntasks: tasks\nkind: x\n'],
    ['no environment', 'name: mine\ntasks: tasks\n'],
    ['neither tasks nor generated', 'name: mine\nenvironment: office\n'],
    ['a folder that is not there', 'name: mine\nenvironment: office\ntasks: task\n'],
    ['no YAML', 'name: [\n'],
  ])('%s', async (_what, yaml) => {
    await writeFile(join(pack, 'pack.yaml'), yaml)
    await expect(readPack(pack)).rejects.toMatchObject({
      code: 'invalid_config',
      message: expect.stringContaining(pack),
    })
  })
  test('none at all', async () => {
    await rm(join(pack, 'pack.yaml'))
    await expect(readPack(pack)).rejects.toThrow('pack.yaml cannot be read')
  })
})

describe('the content hash', () => {
  const hash = async () => (await readPack(pack)).hash

  test('is that of the content, wherever and whenever it was written', async () => {
    const before = await hash()
    expect(before).toMatch(/^[0-9a-f]{64}$/)
    const copy = `${pack}-copy`
    await cp(pack, copy, { recursive: true })
    await utimes(join(copy, 'pack.yaml'), 1, 1)
    expect((await readPack(copy)).hash).toBe(before)
  })
  test.each<[string, () => Promise<void>]>([
    ['a byte', () => writeFile(join(pack, 'tasks', 'one.json'), '{"id":"One"}')],
    [
      'the name of a file',
      () => rename(join(pack, 'tasks', 'one.json'), join(pack, 'tasks', 'o.json')),
    ],
    ['one file more', () => writeFile(join(pack, 'grader.js'), '')],
    [
      'pack.yaml',
      () => writeFile(join(pack, 'pack.yaml'), 'name: m\nenvironment: office\ntasks: tasks\n'),
    ],
    ['a link', () => symlink('one.json', join(pack, 'tasks', 'two.json'))],
  ])('changes with %s', async (_what, change) => {
    const before = await hash()
    await change()
    expect(await hash()).not.toBe(before)
  })
  test('tells names from content: the same characters in another cut are another pack', async () => {
    await writeFile(join(pack, 'a'), 'bc')
    const before = await hash()
    await rm(join(pack, 'a'))
    await writeFile(join(pack, 'ab'), 'c')
    expect(await hash()).not.toBe(before)
  })
  test('leaves out what begins with a dot', async () => {
    const before = await hash()
    await mkdir(join(pack, '.git'))
    await writeFile(join(pack, '.git', 'HEAD'), 'ref')
    expect(await hash()).toBe(before)
  })
})
