// `paddock ledger` on the folder that a killed server left behind: what it lists, shows, checks, exports and compacts.
import { cpSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parquetReadObjects } from 'hyparquet'
import { open as openLmdb } from 'lmdb'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { compactLedger, exportLedger, listLedger, showLedger, verifyLedger } from './ledger.ts'

const FIXTURE = new URL('../ledger/testdata/schema-1/', import.meta.url)
let folder: string
let lines: string[]
const print = (line: string) => void lines.push(line)
const printed = () => lines.map((line) => JSON.parse(line))

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'paddock-ledger-'))
  cpSync(FIXTURE, folder, { recursive: true })
  lines = []
})
afterEach(() => rmSync(folder, { recursive: true }))

test('lists batches with how their groups stand and what is under way', async () => {
  await listLedger(folder, print)
  expect(printed()).toEqual([
    {
      batch: 'kept',
      tasks: 4,
      groups: { acked: 1, ready: 1, leased: 1, under_way: 1 },
      episodes_under_way: 1,
    },
  ])
})

test('shows a batch, a group and an episode; another id is an error', async () => {
  for (const id of ['kept', 'kept.g1', 'kept.g1.e0']) await showLedger(folder, id, print)
  const [batch, group, episode] = printed()
  expect(batch).toMatchObject({ id: 'kept', request: { group_size: 2, mode: 'eval' } })
  expect(group.episodes).toHaveLength(2)
  expect(episode).toMatchObject({ id: 'kept.g1.e0', task: 'inline/kept-1', reward: 1 })
  await expect(showLedger(folder, 'nobody', print)).rejects.toThrow(/no batch, group or episode/)
})

test('a group that still plays, and an episode of it, has not finished', async () => {
  for (const id of ['kept.g3', 'kept.g3.e1'])
    await expect(showLedger(folder, id, print)).rejects.toThrow(
      new RegExp(`${id} has not finished.*paddock ledger show .* kept`),
    )
  await expect(showLedger(folder, 'kept.g4', print)).rejects.toThrow(/no batch, group or episode/)
})

test('shows how each group of a batch stands, with its episodes', async () => {
  await showLedger(folder, 'kept', print)
  const episodes = (group: string) =>
    [0, 1].map((index) => ({ id: `${group}.e${index}`, outcome: 'ok', reward: 1 }))
  const flat = (index: number, state: string) => ({
    id: `kept.g${index}`,
    task: `inline/kept-${index}`,
    verdict: 'zero_variance',
    state,
    episodes: episodes(`kept.g${index}`),
  })
  expect(printed()[0].groups).toEqual([
    flat(0, 'acked'),
    flat(1, 'ready'),
    flat(2, 'leased'),
    {
      id: 'kept.g3',
      task: 'inline/kept-3',
      verdict: null,
      state: 'running',
      // The second one is under way.
      episodes: [episodes('kept.g3')[0], { id: 'kept.g3.e1', outcome: null, reward: null }],
    },
  ])
})

test('a group whose bytes are no longer kept is shown from what happened to it', async () => {
  const db = openLmdb({ path: folder, encoding: 'binary' })
  for (const key of ['group/kept/kept.g0', 'blob/kept.g0/kept.g0.e0', 'blob/kept.g0/kept.g0.e1'])
    await db.remove(key)
  await db.close()
  await expect(showLedger(folder, 'kept.g0', print)).rejects.toThrow(/kept.g0 is no longer kept/)
  await showLedger(folder, 'kept', print)
  expect(printed()[0].groups[0]).toMatchObject({
    ...{ id: 'kept.g0', task: 'inline/kept-0', verdict: 'zero_variance', state: 'acked' },
    episodes: [
      { outcome: 'ok', reward: 1 },
      { outcome: 'ok', reward: 1 },
    ],
  })
})

test('verify finds every record whole, and the one that is not', async () => {
  expect(await verifyLedger(folder, print)).toBe(true)
  expect(printed().at(-1)).toMatchObject({ damaged: 0 })
  const file = join(folder, 'data.mdb')
  const bytes = readFileSync(file)
  // In the middle of a trajectory's text, wherever the page lies.
  const at = bytes.indexOf('"messages":[{"role"') + 3
  bytes[at] = (bytes[at] ?? 0) ^ 1
  writeFileSync(file, bytes)
  expect(await verifyLedger(folder, print)).toBe(false)
  expect(printed().some(({ damaged }) => String(damaged).startsWith('blob/kept.g'))).toBe(true)
})

test('exports finished episodes as rows with one type a column', async () => {
  const out = join(folder, 'episodes.jsonl')
  await exportLedger(folder, { out, batch: null }, print)
  const rows = readFileSync(out, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  expect(rows.map(({ episode }) => episode)).toEqual([
    'kept.g0.e0',
    'kept.g0.e1',
    'kept.g1.e0',
    'kept.g1.e1',
    'kept.g2.e0',
    'kept.g2.e1',
  ])
  expect(rows[2]).toMatchObject({
    schema_version: 1,
    task: 'inline/kept-1',
    delivery: 'ready',
    outcome: 'ok',
    reason: '',
    reward: 1,
    turns: 2,
  })
  for (const { messages } of rows)
    for (const { content } of messages) expect(typeof content).toBe('string')
  expect(new Set(rows.map((row) => Object.keys(row).join())).size).toBe(1)
})

test('compacts a folder that nobody has, and everything is still there', async () => {
  const before = statSync(join(folder, 'data.mdb')).size
  await compactLedger(folder, print)
  expect(statSync(join(folder, 'data.mdb')).size).toBeLessThanOrEqual(before)
  expect(await verifyLedger(folder, print)).toBe(true)
  await listLedger(folder, print)
  expect(printed().at(-1)).toMatchObject({
    batch: 'kept',
    groups: { acked: 1, ready: 1, leased: 1, under_way: 1 },
  })
})

test('a folder without a ledger is refused', async () => {
  await expect(listLedger(join(folder, 'nothing'), print)).rejects.toThrow(/no data.mdb/)
})

test('exports the same rows as Parquet, with messages as JSON text', async () => {
  const [jsonl, parquet] = [join(folder, 'episodes.jsonl'), join(folder, 'episodes.parquet')]
  await exportLedger(folder, { out: jsonl, batch: null }, print)
  await exportLedger(folder, { out: parquet, batch: null }, print)
  const lines = readFileSync(jsonl, 'utf8').trim().split('\n')
  const wanted = lines.map((line) => {
    const { messages, ...row } = JSON.parse(line)
    return { ...row, messages_json: JSON.stringify(messages) }
  })
  const { buffer, byteOffset, byteLength } = readFileSync(parquet)
  const file = buffer.slice(byteOffset, byteOffset + byteLength) as ArrayBuffer
  const rows = await parquetReadObjects({ file })
  const numbers = rows.map((row) =>
    Object.fromEntries(
      Object.entries(row).map(([name, value]) => [
        name,
        typeof value === 'bigint' ? Number(value) : value,
      ]),
    ),
  )
  expect(rows.length).toBeGreaterThan(2)
  expect(numbers).toEqual(wanted)
})
