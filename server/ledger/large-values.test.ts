// Values in files of their own: what a crash leaves behind, what goes with its record, and what a missing file is.
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { keys } from './keys.ts'
import { readValue } from './large-values.ts'
import { openLmdbStore } from './lmdb-store.ts'
import { openLedgerReader } from './open-reader.ts'
import { frame, unframe } from './record.ts'
import type { Store } from './store.ts'

const FILE_BYTES = 1000
let folder: string
let store: Store

const open = () =>
  openLmdbStore(
    folder,
    (error) => {
      throw error
    },
    FILE_BYTES,
  )
const reopen = async () => {
  await store.close()
  store = open()
}
const files = () => readdirSync(join(folder, 'values'))
const fileOf = (index = 0) => join(folder, 'values', files()[index] ?? '')
const large = (fill: number) => new Uint8Array(FILE_BYTES).fill(fill)
const put = (key: string, value: Uint8Array | null) => store.commit([{ key, value }])

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'paddock-values-'))
  store = open()
})
afterEach(async () => {
  await store.close()
  rmSync(folder, { recursive: true })
})

test('a value of the limit lies in a file, one byte less does not; both are found again', async () => {
  await put('a/large', large(1))
  await put('a/small', large(2).subarray(1))
  expect(files()).toHaveLength(1)
  await reopen()
  expect(store.get('a/large')).toEqual(Buffer.from(large(1)))
  expect(store.get('a/small')).toEqual(Buffer.from(large(2).subarray(1)))
  expect(store.keys('a/')).toEqual(['a/large', 'a/small'])
})

test('a small value is what it was, whatever its first byte', async () => {
  for (let byte = 0; byte < 256; byte++) await put(`a/${byte}`, Uint8Array.of(byte, 0x30, 0x31))
  for (let byte = 0; byte < 256; byte++)
    expect(Uint8Array.from(store.get(`a/${byte}`) ?? [])).toEqual(Uint8Array.of(byte, 0x30, 0x31))
})

describe('a file is deleted when nothing points to it any more', () => {
  const gone = async (count: number) => expect.poll(files).toHaveLength(count)

  test('of a record that was taken away', async () => {
    await put('a/1', large(1))
    await put('a/1', null)
    expect(store.get('a/1')).toBeUndefined()
    await gone(0)
  })

  test.each([
    ['by a large one', large(2), 1],
    ['by a small one', large(2).subarray(1), 0],
  ])('of one that was replaced %s', async (_, value, left) => {
    await put('a/1', large(1))
    await put('a/1', value)
    expect(store.get('a/1')).toEqual(Buffer.from(value))
    await gone(left)
    await reopen()
    expect(store.get('a/1')).toEqual(Buffer.from(value))
  })

  test('before the store is closed: who opens the folder next finds none that goes', async () => {
    await store.commit(Array.from({ length: 50 }, (_, k) => ({ key: `a/${k}`, value: large(k) })))
    await store.commit(Array.from({ length: 50 }, (_, k) => ({ key: `a/${k}`, value: null })))
    await store.close()
    expect(files()).toEqual([])
    store = open()
  })

  test('of one that was put twice in one commit', async () => {
    await store.commit([large(1), large(2)].map((value) => ({ key: 'a/1', value })))
    expect(store.get('a/1')).toEqual(Buffer.from(large(2)))
    await gone(1)
  })
})

test('what a crash left between file and commit is deleted at the next start, whatever it is', async () => {
  await put('a/1', large(1))
  await store.close()
  const head = Buffer.from([3, 0, 0, 0, ...Buffer.from('a/1')])
  // Written whole and never committed; cut in its head; empty; with a length that is nonsense.
  for (const [name, bytes] of [
    ['000000000007', Buffer.concat([head, large(9)])],
    ['000000000008', head.subarray(0, 5)],
    ['000000000009', Buffer.alloc(0)],
    ['000000000010', Buffer.alloc(64, 0xff)],
  ] as const)
    writeFileSync(join(folder, 'values', name), bytes)
  store = open()
  expect(files()).toHaveLength(1)
  expect(store.get('a/1')).toEqual(Buffer.from(large(1)))
  await put('a/2', large(2))
  expect(store.get('a/2')).toEqual(Buffer.from(large(2)))
})

test.each([
  ['deleted', (file: string) => rmSync(file)],
  ['cut', (file: string) => truncateSync(file, 500)],
  ['empty', (file: string) => truncateSync(file, 0)],
])('a file that was %s is a damaged record, not a missing one', async (_, harm) => {
  await put('a/1', frame('a/1', large(1)))
  harm(fileOf())
  const reader = openLedgerReader(folder)
  expect(reader.bytes('a/1')).toBeNull()
  expect(reader.bytes('a/2')).toBeUndefined()
  await reader.close()
})

test.each([
  ['a folder', (file: string) => mkdirSync(file)],
  ['a circle of links', (file: string) => symlinkSync(file, file)],
])('%s in a file’s place costs its record, and no start', async (_, replace) => {
  await put('a/1', frame('a/1', large(1)))
  await put('a/2', frame('a/2', large(2)))
  const file = fileOf()
  rmSync(file)
  replace(file)
  await reopen()
  expect(store.get('a/1')).toEqual(new Uint8Array())
  expect(unframe('a/2', store.get('a/2') ?? new Uint8Array())).toHaveLength(FILE_BYTES)
})

test('what has another name than ours stays where it is', async () => {
  const others = ['.DS_Store', '12.bak', 'notes.txt', '1', '0000000000001']
  for (const name of others) writeFileSync(join(folder, 'values', name), 'mine')
  mkdirSync(join(folder, 'values', 'folder'))
  await reopen()
  expect(files().sort()).toEqual([...others, 'folder'].sort())
})

describe('a folder of files that', () => {
  const refused = (words: RegExp) => {
    expect(open).toThrow(words)
    // Nothing is held that a second try needs.
    expect(open).toThrow(words)
  }

  test('is gone from a ledger that may point into it is refused, and its records are whole when it is back', async () => {
    await put(keys.clock, frame(keys.clock, large(7).subarray(1)))
    await put('a/1', large(1))
    await store.close()
    renameSync(join(folder, 'values'), join(folder, 'away'))
    refused(/ledger\.path: .*values cannot be used: it is gone/)
    renameSync(join(folder, 'away'), join(folder, 'values'))
    store = open()
    expect(store.get('a/1')).toEqual(Buffer.from(large(1)))
  })

  test('is no folder is refused with a sentence', async () => {
    await store.close()
    rmSync(join(folder, 'values'), { recursive: true })
    writeFileSync(join(folder, 'values'), 'mine')
    refused(/ledger\.path: .*values cannot be used: ENOTDIR/)
    rmSync(join(folder, 'values'))
    store = open()
  })
})

test('a record that goes while it is read is not there, and not a damaged one', () => {
  const stored = [Uint8Array.from(Buffer.from('F000000000077')), undefined]
  const db = { getBinary: () => stored[0], resetReadTxn: () => void stored.shift() }
  expect(readValue(folder, db, 'a/1')).toBeUndefined()
})

test('what files take is counted, before and after a start', async () => {
  const empty = store.usedBytes()
  await put('a/1', new Uint8Array(1e6))
  expect(store.usedBytes() - empty).toBeGreaterThanOrEqual(1e6)
  await reopen()
  expect(store.usedBytes() - empty).toBeGreaterThanOrEqual(1e6)
  await put('a/1', null)
  expect(store.usedBytes() - empty).toBeLessThan(1e5)
})
