// The gate where a batch or a pack meets it: how much of it runs at submit, and what a strict server does with a failing task.
import { cpSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { JsonObject } from '../protocol/json.ts'
import { type House, officeTasks, openHouse } from './testkit/house.testkit.ts'

/** A check that only counts, so that three copies pass for three items: V17 finds it, and nothing before it does. */
function countingTask(): JsonObject {
  const task = officeTasks().find(({ id }) => id.startsWith('dev-03')) as unknown as JsonObject & {
    grading: { completion: JsonObject[] }
  }
  task.grading.completion[0] = {
    id: 'tasks',
    weight: 0.75,
    kind: 'state',
    entity: 'projects.task',
    origin: 'created',
    where: { project_id: 'PJ-2' },
    count: 3,
  }
  return task
}

let house: House
beforeAll(async () => {
  house = await openHouse({ tokens: false })
}, 60_000)
afterAll(() => house.close())

const batch = (more: JsonObject): JsonObject => ({
  tasks: [{ spec: countingTask() }],
  group_size: 2,
  policy: { sampling: { max_tokens: 256 } },
  ...more,
})

test('an inline spec that counts instead of matching is found by the full gate alone', async () => {
  await expect(house.api.submit(batch({ gate: 'full' }))).rejects.toThrow(
    /422 tasks\[0\]\.spec\.reference_path\[4\]: V17 .*cannot tell distinct items from copies/,
  )
  const { id } = await house.api.submit(batch({}))
  // What passed at `load` has not passed in full.
  await expect(house.api.submit(batch({ gate: 'full' }))).rejects.toThrow('V17')
  await fetch(`${house.url}/v1/batches/${id}`, { method: 'DELETE' })
}, 60_000)

test('a pack with a failing task is served without it, and not at all by a strict server', async () => {
  const pack = join(mkdtempSync(join(tmpdir(), 'paddock-pack-')), 'mine')
  cpSync(fileURLToPath(new URL('../examples/warehouse/pack', import.meta.url)), pack, {
    recursive: true,
  })
  const shipped = new URL('../envs/packs/office/tasks/', import.meta.url)
  const task = JSON.parse(
    readFileSync(new URL('dev-05-share-the-right-file.json', shipped), 'utf8'),
  )
  writeFileSync(join(pack, 'pack.yaml'), 'name: mine\nenvironment: office\ntasks: tasks\n')
  writeFileSync(join(pack, 'tasks', 'two-shelves.json'), JSON.stringify(task))
  writeFileSync(
    join(pack, 'tasks', 'hasty.json'),
    JSON.stringify({ ...task, id: 'hasty', user: { ...task.user, done: { if_any: ['which'] } } }),
  )
  const lenient = await openHouse({ tokens: false, settings: { packs: [pack] } })
  const { tasks } = await lenient.api.tasks()
  expect(tasks.filter(({ pack: of }) => of === 'mine').map(({ id }) => id)).toEqual([
    'mine/dev-05-share-the-right-file',
  ])
  await lenient.close()
  await expect(
    openHouse({ tokens: false, settings: { packs: [pack], strict_packs: true } }),
  ).rejects.toThrow(/the gate refuses tasks of the packs: mine\/hasty: V10 user\.done/)
}, 60_000)
