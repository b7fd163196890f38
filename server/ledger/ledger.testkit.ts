// Ledgers for tests: in memory or in a folder of their own, under a clock that the test moves.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { EpisodeHeader, SealedEpisode } from '../../protocol/sealed.ts'
import type { BatchEvent, GroupRecord, Ledger, SettledGroup } from '../../rollout/ports.ts'
import { createLedger, type LedgerOptions } from './ledger.ts'
import { openLmdbStore } from './lmdb-store.ts'
import { createMemoryStore } from './memory-store.ts'
import type { Store } from './store.ts'

export interface Bench {
  ledger: Ledger
  store: Store
  /** Keys of records that were found damaged. */
  bad: string[]
  /** Moves the clock. */
  pass(seconds: number): void
  /** Opens the same records again, as after a kill: nothing was closed in order. */
  again(): Promise<Bench>
  close(): Promise<void>
}

/** `files`: lmdb with each value in a file of its own. */
export const STORES = ['memory', 'lmdb', 'files'] as const

export async function openBench(
  kind: (typeof STORES)[number],
  options: Partial<LedgerOptions> = {},
): Promise<Bench> {
  const folder = kind === 'memory' ? null : mkdtempSync(join(tmpdir(), 'paddock-ledger-'))
  const onFailure = (error: Error) => {
    throw error
  }
  const fresh = () =>
    folder === null
      ? createMemoryStore()
      : openLmdbStore(folder, onFailure, ...(kind === 'files' ? [1] : []))
  return benchOver(fresh(), folder === null ? null : fresh, folder, options)
}

function benchOver(
  store: Store,
  reopen: (() => Store) | null,
  folder: string | null,
  options: Partial<LedgerOptions>,
): Bench {
  let seconds = 0
  const bad: string[] = []
  const ledger = createLedger(store, {
    clock: () => seconds,
    keepBytes: 2 ** 20,
    maxBytes: 2 ** 30,
    disk: null,
    onBad: (key) => void bad.push(key),
    onExpired: () => {},
    ...options,
  })
  return {
    ledger,
    store,
    bad,
    pass(more) {
      seconds += more
    },
    async again() {
      // A folder has one owner; its records are as they were committed last.
      if (reopen) await store.close()
      return benchOver(reopen ? reopen() : store, reopen, folder, options)
    },
    async close() {
      await ledger.close()
      if (folder !== null) rmSync(folder, { recursive: true })
    },
  }
}

export const place = (batch: string, group = 0, index = 0) => ({
  batch,
  group: `${batch}.g${group}`,
  episode: `${batch}.g${group}.e${index}`,
})

export function endOf(group: number, index: number, attempt = 1) {
  const end = {
    outcome: 'ok' as const,
    reason: null,
    header: null,
    cost: { prompt_tokens: 1, completion_tokens: 2, seconds: 0.5 },
  }
  return { type: 'end', group, index, attempt, end } as Extract<BatchEvent, { type: 'end' }>
}

export function sealedOf(text: string, rowBytes = 1): SealedEpisode {
  const header = { row_bytes: rowBytes } as EpisodeHeader
  return { header, blob: new TextEncoder().encode(text) }
}

/** A finished group of one episode. */
export function settledOf(
  batch: string,
  group: number,
  as: 'ready' | 'dropped' = 'ready',
  oldest: number | null = null,
): SettledGroup {
  const { group: id, episode } = place(batch, group)
  const record = {
    id,
    batch,
    head: {
      id,
      policy: { model: null, version_min: oldest, version_max: oldest },
      loss_normalizer: { kind: 'tokens_in_sample', value: null },
    },
    episodes: [{ id: episode }],
  } as unknown as GroupRecord
  return {
    record,
    event: { type: 'settle', group, verdict: 'valid', as, fault: null, replacement: null },
  }
}

/** A batch with so many finished groups, each with one sealed episode. */
export async function withReady(ledger: Ledger, batch: string, groups: number): Promise<void> {
  await ledger.submit({ id: batch, request: '{"asked":true}', digest: 'd', plan: { of: batch } })
  for (let group = 0; group < groups; group++) {
    await ledger.end(place(batch, group), endOf(group, 0), sealedOf(`${batch} ${group}`))
    await ledger.settle(batch, [settledOf(batch, group)], () => {})
  }
}
