// What a batch under way needs from the process, and what the rooms that play it share.
import type { GroupVerdict } from '../../../protocol/outcomes.ts'
import type { Ledger } from '../../../rollout/ports.ts'
import type { Metrics } from '../../metrics/metrics.ts'
import type { Suspects } from '../threads/suspects.ts'
import type { Admission } from './admission.ts'
import type { BatchPlan } from './batch-plan.ts'
import type { WritableEventLog } from './event-log.ts'
import type { GroupRun } from './group-run.ts'
import type { PlayerWorld } from './player.ts'
import type { Scheduler } from './scheduler.ts'

export interface BatchWorld {
  pool: PlayerWorld['pool']
  client: PlayerWorld['client']
  beside: PlayerWorld['beside']
  scheduler: Scheduler
  ledger: Ledger
  metrics: Metrics
  /** Unix seconds, for display only. */
  now(): number
  admission: Admission
  suspects: Suspects
  maxEvents: number
  onError(error: unknown): void
  /** A group that reaches no trainer. */
  onDropped(group: string, verdict: GroupVerdict, reason: string | null): void
  /** A group became ready, was leased, or left. */
  onDelivery(): void
}

export interface UnderWay {
  plan: BatchPlan
  world: BatchWorld
  events: WritableEventLog
  /** The batch's own in their order, then replacements. */
  groups: GroupRun[]
  admission: ReturnType<Admission['open']>
  /** Seconds of the ledger's clock. */
  startedAt: number
  cancelled: boolean
  /** Set when the server stops: attempts under way are left as they are, to go on after a restart. */
  halted: boolean
}
