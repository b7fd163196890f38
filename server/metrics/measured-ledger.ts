// A ledger whose writes are timed and whose groups are counted as they leave; everything else of it is as it was.
import type { Mode } from '../../protocol/batch.ts'
import { SETTLEMENTS } from '../../protocol/outcomes.ts'
import type { LeasedGroup, Ledger } from '../../rollout/ports.ts'
import type { LabelValue } from './labels.ts'
import type { Metrics } from './metrics.ts'

/** `now` gives monotonic milliseconds. */
export function measuredLedger(
  ledger: Ledger,
  metrics: Metrics,
  now = () => performance.now(),
): Ledger & {
  /** Seconds that the oldest group has been ready for; 0 where none is. */
  oldestReady(): number
} {
  /** When groups became ready that nobody has leased yet, by batch. */
  const ready = new Map<string, Map<string, number>>()

  async function timed<T>(op: LabelValue<'store_op'>, write: Promise<T>): Promise<T> {
    const started = now()
    try {
      const result = await write
      metrics.committed(op, (now() - started) / 1000)
      return result
    } catch (error) {
      metrics.commitFailed(op)
      throw error
    }
  }

  function takeOut(batch: string, { record, lease }: LeasedGroup): void {
    const since = ready.get(batch)?.get(record.id)
    ready.get(batch)?.delete(record.id)
    if (since !== undefined && lease.delivery === 1) metrics.readyWaited((now() - since) / 1000)
  }

  return {
    ...ledger,
    submit: (entry) => timed('submit', ledger.submit(entry)),
    tell: (...told) => timed('other', ledger.tell(...told)),
    keepNote: (...note) => timed('other', ledger.keepNote(...note)),
    turn: (...kept) => timed('turn', ledger.turn(...kept)),
    end: (...kept) => timed('seal', ledger.end(...kept)),
    settle: (batch, groups, apply) =>
      timed(
        'settle',
        ledger.settle(batch, groups, () => {
          const places = ready.get(batch) ?? new Map<string, number>()
          for (const { record, event } of groups)
            if (event.as === 'ready') places.set(record.id, now())
          ready.set(batch, places)
          apply()
        }),
      ),
    async lease(batch, ...asked) {
      const leased = await timed('lease', ledger.lease(batch, ...asked))
      for (const group of leased) takeOut(batch, group)
      return leased
    },
    ack: (...given) => timed('ack', ledger.ack(...given)),
    nack: (...given) => timed('nack', ledger.nack(...given)),
    takeBack: (...given) => timed('nack', ledger.takeBack(...given)),
    forget(batch) {
      ready.delete(batch)
      return ledger.forget(batch)
    },
    oldestReady() {
      const since = [...ready.values()].flatMap((groups) => [...groups.values()])
      return since.length === 0 ? 0 : (now() - Math.min(...since)) / 1000
    },
  }
}

/** Counts a batch's groups as they leave the ready store, from now on; those found ready or leased are `recovered`. */
export function countSettlements(
  ledger: Ledger,
  batch: { id: string; mode: Mode },
  metrics: Metrics,
): void {
  const { id, mode } = batch
  let before = ledger.deliveries(id)
  metrics.recovered('group', before.ready + before.leased)
  ledger.watch(id, () => {
    const after = ledger.deliveries(id)
    for (const settlement of SETTLEMENTS)
      metrics.settled(mode, settlement, after[settlement] - before[settlement])
    before = after
  })
}
