// `paddock ledger`: what is in a ledger's folder, whether it is whole, and its episodes as rows.
import { mkdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { open as openLmdb } from 'lmdb'
import { PaddockError } from '../../protocol/errors.ts'
import type { GroupRecord } from '../../rollout/ports.ts'
import { batchGroups, groupsUnderWay } from '../ledger/batch-groups.ts'
import { exportRows } from '../ledger/export-rows.ts'
import { lockFolder } from '../ledger/folder-lock.ts'
import { keys, nameOf } from '../ledger/keys.ts'
import { type LedgerReader, openLedgerReader } from '../ledger/open-reader.ts'
import { parquetOf } from '../ledger/parquet.ts'
import type { BatchRecord, DeliveryRecord } from '../ledger/resume.ts'

type Print = (line: string) => void
const toStdout: Print = (line) => void process.stdout.write(`${line}\n`)

async function reading<T>(folder: string, use: (ledger: LedgerReader) => T): Promise<T> {
  const ledger = openLedgerReader(folder)
  try {
    return use(ledger)
  } finally {
    await ledger.close()
  }
}

/** One JSON line a batch: its groups by how they stand. */
export function listLedger(folder: string, print: Print = toStdout): Promise<void> {
  return reading(folder, (ledger) => {
    const underWay = new Set(ledger.keys('turn/').flatMap((turn) => turn.split('/')[1] ?? []))
    for (const key of ledger.keys('batch/')) {
      const batch = nameOf(key)
      const groups: Record<string, number> = {}
      for (const one of ledger.keys(`delivery/${batch}/`)) {
        const state = ledger.json<DeliveryRecord>(one)?.state
        const name = state ? (state.settlement ?? state.phase) : 'damaged'
        groups[name] = (groups[name] ?? 0) + 1
      }
      const open = groupsUnderWay(ledger, batch)
      if (open > 0) groups.under_way = open
      const playing = [...underWay].filter((episode) => episode.startsWith(`${batch}.g`)).length
      const tasks = ledger.json<BatchRecord>(key)?.entry.plan.tasks
      const size = Array.isArray(tasks) ? tasks.length : 0
      print(JSON.stringify({ batch, tasks: size, groups, episodes_under_way: playing }))
    }
  })
}

/** A batch with how its groups stand, a group or an episode, by its id, as JSON. */
export function showLedger(folder: string, id: string, print: Print = toStdout): Promise<void> {
  return reading(folder, (ledger) => {
    const batch = ledger.json<BatchRecord>(keys.batch(id))
    if (batch)
      return print(
        JSON.stringify({
          ...batch.entry,
          request: JSON.parse(batch.entry.request),
          groups: batchGroups(ledger, batch.entry),
        }),
      )
    const group = ledger.keys('group/').find((key) => nameOf(key) === id)
    if (group) return print(JSON.stringify(ledger.json<GroupRecord>(group)))
    const blob = ledger.bytes(keys.blob(id))
    if (!blob) throw new PaddockError('not_found', `${folder}: ${whyMissing(ledger, folder, id)}`)
    const rowBytes = new DataView(blob.buffer, blob.byteOffset).getUint32(0, true)
    print(new TextDecoder().decode(blob.subarray(4 + rowBytes)))
  })
}

/** A group or an episode may be known by what happened to it alone. */
function whyMissing(ledger: LedgerReader, folder: string, id: string): string {
  const batch = /^(.+)\.g\d+(?:\.e\d+)?$/.exec(id)?.[1]
  const entry = batch === undefined ? null : ledger.json<BatchRecord>(keys.batch(batch))?.entry
  const groups = entry ? batchGroups(ledger, entry) : []
  const group = groups.find((one) => one.id === id)
  const episode = groups.flatMap(({ episodes }) => episodes).find((one) => one.id === id)
  if (!group && !episode) return `no batch, group or episode ${id}`
  if (group?.verdict ?? episode?.outcome)
    return `${id} is no longer kept; paddock ledger show ${folder} ${batch} has what came of it`
  return `${id} has not finished; paddock ledger show ${folder} ${batch} says how far it is`
}

/** Checks every record; true where all are what was written. */
export function verifyLedger(folder: string, print: Print = toStdout): Promise<boolean> {
  return reading(folder, (ledger) => {
    const all = ledger.keys('')
    const bad = all.filter((key) => key.startsWith('bad/') || ledger.bytes(key) === null)
    for (const key of bad) print(JSON.stringify({ damaged: key }))
    print(JSON.stringify({ records: all.length, damaged: bad.length }))
    return bad.length === 0
  })
}

/** Writes the folder anew without free pages; no server may have it. */
export async function compactLedger(folder: string, print: Print = toStdout): Promise<void> {
  await reading(folder, () => {})
  const unlock = lockFolder(folder)
  const [data, aside] = [join(folder, 'data.mdb'), join(folder, 'compact')]
  try {
    rmSync(aside, { recursive: true, force: true })
    mkdirSync(aside)
    const before = statSync(data).size
    const db = openLmdb({ path: folder, encoding: 'binary' })
    await db.backup(aside, true)
    await db.close()
    renameSync(join(aside, 'data.mdb'), data)
    rmSync(join(folder, 'lock.mdb'), { force: true })
    print(JSON.stringify({ bytes_before: before, bytes: statSync(data).size }))
  } finally {
    rmSync(aside, { recursive: true, force: true })
    unlock()
  }
}

/** Writes finished episodes, as Parquet where the file's name says so, else as JSON Lines; nobody reads half a file. */
export async function exportLedger(
  folder: string,
  { out, batch }: { out: string; batch: string | null },
  print: Print = toStdout,
): Promise<void> {
  const rows = await reading(folder, (ledger) => [...exportRows(ledger, batch)])
  const content = out.endsWith('.parquet')
    ? parquetOf(rows)
    : rows.map((row) => `${JSON.stringify(row)}\n`)
  await writeFile(`${out}.part`, content)
  await rename(`${out}.part`, out)
  print(JSON.stringify({ file: out, rows: rows.length }))
}
