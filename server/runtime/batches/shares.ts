// What may be taken on: each batch's share of the bounds while it plays, and why another batch is refused.
import type { Bound } from '../../../protocol/errors.ts'
import type { Ledger } from '../../../rollout/ports.ts'
import type { Config } from '../../config.ts'
import type { PolicyBoard } from '../policy/policy-board.ts'
import type { BatchPlan } from './batch-plan.ts'
import type { BatchRun } from './batch-run.ts'
import type { Gate, Scheduler } from './scheduler.ts'

export interface Shares {
  /** Draws all gates anew: no group of a batch starts while nobody takes its finished ones, or its backend is paused. */
  apply(): void
  /** The gate of one batch where `open` are played. */
  gateOf(plan: BatchPlan, open: number): Gate
  /** Whether the ledger has no room for what another group would write; looked at once a second. */
  isLedgerFull(): boolean
  /** Nothing is looked at any more. */
  stop(): void
  /** Why no other batch is taken now; `submitting` are on their way in. Null where there is room. */
  refusal(submitting: number): Refusal | null
}

interface Refusal {
  bound: Bound
  sentence: string
}

/** Asking a disk for its room may take its time, and gates are drawn with each delivery. */
const LOOK_MS = 1000
/** Room comes from anywhere, and nobody tells of it. */
const LOOK_AGAIN_MS = 2000

interface SharesWorld {
  runs: ReadonlyMap<string, BatchRun>
  ledger: Ledger
  board: PolicyBoard
  scheduler: Scheduler
  limits: Config['limits']
}

export function createShares({ runs, ledger, board, scheduler, limits }: SharesWorld): Shares {
  let looked = { at: Number.NEGATIVE_INFINITY, full: false }
  let timer: ReturnType<typeof setTimeout> | null = null
  let stopped = false

  function apply(): void {
    const open = [...runs.values()].filter((run) => !run.isPlayed())
    const unread = playedButUnread()
    for (const { plan } of open) scheduler.gate(plan.id, gateOf(plan, open.length, unread))
    if (timer || stopped || open.length === 0 || !looked.full) return
    timer = setTimeout(() => {
      timer = null
      apply()
    }, LOOK_AGAIN_MS)
    timer.unref()
  }

  function isLedgerFull(): boolean {
    const now = performance.now()
    if (!stopped && now - looked.at >= LOOK_MS) looked = { at: now, full: ledger.full() !== null }
    return looked.full
  }

  /**
   * A bound is a batch's share of it: one that nobody reads stops itself and not its neighbours. What cannot be read
   * yet holds nothing up, or a batch whose advantages need its last group would wait for itself.
   */
  function gateOf(
    { id, policy: asked }: BatchPlan,
    open: number,
    waiting = playedButUnread(),
  ): Gate {
    if (board.of(asked.backend).paused) return 'paused'
    // What has started goes on: its groups may be good ones.
    if (runs.get(id)?.pause() || isLedgerFull()) return 'held'
    const { ready, leased } = ledger.deliveries(id)
    const { max_groups_ready, max_bytes } = limits
    const tooMany = ready >= Math.max(1, Math.floor((max_groups_ready - waiting.groups) / open))
    const share = Math.max(0, max_bytes - waiting.bytes) / open
    const tooLarge = ready + leased > 0 && ledger.heldBytes(id) >= share
    return tooMany || tooLarge ? 'held' : 'open'
  }

  /** What batches that are played still hold, which is taken from the share of those that play. */
  function playedButUnread(): { groups: number; bytes: number } {
    const played = [...runs.keys()].filter((id) => runs.get(id)?.isPlayed())
    const sum = (value: (id: string) => number) =>
      played.reduce((total, id) => total + value(id), 0)
    return { groups: sum((id) => ledger.deliveries(id).ready), bytes: sum(ledger.heldBytes) }
  }

  /** Why finished groups must be taken before more is taken on; null where there is room. */
  function waitingTooMuch(): Refusal | null {
    const { max_groups_ready, max_bytes } = limits
    const { ready } = ledger.standing()
    const bytes = [...runs.keys()].reduce((sum, id) => sum + ledger.heldBytes(id), 0)
    if (ready >= max_groups_ready)
      return {
        bound: 'ready_full',
        sentence: `${ready} finished groups wait to be leased, which is the limit (limits.max_groups_ready); lease and acknowledge some`,
      }
    if (bytes >= max_bytes)
      return {
        bound: 'bytes_full',
        sentence: `${bytes} bytes of episodes wait to be leased or for their group's end, which is the limit (limits.max_bytes)`,
      }
    return null
  }

  return {
    apply,
    gateOf,
    isLedgerFull,
    stop() {
      stopped = true
      if (timer) clearTimeout(timer)
    },
    refusal(submitting) {
      const { max_batches, max_groups_ready } = limits
      const open = [...runs.values()].filter((run) => !run.isDone())
      const unread = open.filter((run) => run.isPlayed()).length
      const playing = open.length - unread + submitting
      const full = ledger.full()
      if (full !== null) return { bound: 'disk_full', sentence: full }
      const waiting = waitingTooMuch()
      if (waiting !== null) return waiting
      if (playing >= max_batches)
        return {
          bound: 'queue_full',
          sentence: `${playing} batches are played, which is the limit (limits.max_batches)`,
        }
      // One that is played and not read holds at least one group.
      if (unread >= max_groups_ready)
        return {
          bound: 'ready_full',
          sentence: `${unread} batches wait to be read, which is the limit (limits.max_groups_ready); lease and acknowledge some`,
        }
      return null
    },
  }
}
