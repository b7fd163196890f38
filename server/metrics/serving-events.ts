// What happens in the machinery, as the series of the catalogue count it: backends, tools, delivery, trainers, our edge, the ledger.
import type { Mode } from '../../protocol/batch.ts'
import type { Bound, ErrorCode } from '../../protocol/errors.ts'
import type { AckResult } from '../../protocol/group.ts'
import type { Settlement } from '../../protocol/outcomes.ts'
import type { Spent } from '../runtime/threads/timed-environment.ts'
import { createBackendHealth, type OnSilence } from './backend-health.ts'
import { LABEL_LISTS, type LabelValue } from './labels.ts'
import type { Series } from './series.ts'

/** A group as it is handed out. */
interface LeasedOut {
  mode: Mode
  /** 1 for the first time. */
  delivery: number
  /** Announced version minus the oldest in the group; null where one of them is unknown. */
  staleness: number | null
}

export interface ServingEvents {
  /** One try of a policy request; `what` came of it, in words. */
  backendTry(backend: string, code: LabelValue<'backend_code'>, seconds: number, what: string): void
  /** A policy request with all its tries: what the last came to. */
  backendAsked(backend: string, code: LabelValue<'backend_code'>): void
  /** None of its endpoints may be asked for a while, since they failed. */
  backendLeftAlone(backend: string): void
  backendRetry(backend: string, reason: LabelValue<'retry_reason'>): void
  breaker(backend: string, state: LabelValue<'breaker_state'>): void
  /** Backends whose latest requests brought no token, and since when, unix seconds. */
  backendsDown(): ReadonlyMap<string, number>
  retryBudget(backend: string, ratio: number): void
  firstToken(backend: string, seconds: number): void
  tokenGap(backend: string, seconds: number): void
  /** A turn asked somebody beside the policy. */
  asked(
    kind: LabelValue<'request_kind'>,
    result: LabelValue<'request_result'>,
    seconds: number,
  ): void
  workerExit(exit: LabelValue<'worker_exit'>): void
  /** What one job spent in its environment. */
  spent(spent: Spent): void
  leased(group: LeasedOut): void
  /** From ready to the first lease. */
  readyWaited(seconds: number): void
  leasesExpired(leases: number): void
  /** What an ack or nack of one group came to. */
  acknowledged(result: AckResult): void
  settled(mode: Mode, result: Settlement, groups: number): void
  submittedAgain(): void
  trainerPolled(dialect: LabelValue<'dialect'>, groups: number): void
  calledBack(result: LabelValue<'callback_result'>): void
  /** A trainer was heard of; unix seconds. */
  trainerSeen(at: number): void
  heartbeat(step: number, checkpointStep: number | null, at: number): void
  /** Groups that a trainer gave back; `reason` in its own words. */
  trainerSkipped(reason: string, groups: number): void
  policyVersion(version: number): void
  /** Tokens that a batch may sample at most. */
  budgeted(tokens: number): void
  /** One answered request of our own HTTP; `route` is a path pattern, `refusal` the code of its problem document, or the bound that is full. */
  httpAnswered(
    route: string,
    status: number,
    seconds: number,
    refusal: ErrorCode | Bound | null,
  ): void
  socketOpened(): void
  socketClosed(code: number): void
  /** One commit of the ledger. */
  committed(op: LabelValue<'store_op'>, seconds: number): void
  commitFailed(op: LabelValue<'store_op'>): void
  /** A damaged record of the ledger, by its key. */
  quarantined(key: string): void
  recovered(item: LabelValue<'recovered_item'>, count: number): void
  draining(): void
}

/** `now` gives monotonic milliseconds. */
export function createServingEvents(
  series: Series,
  backends: readonly string[],
  now: () => number,
  onSilence: OnSilence,
): ServingEvents {
  const health = createBackendHealth(onSilence)
  let sockets = 0
  let budget = 0
  /** As far as heartbeats have told. */
  let heardAt = now()
  series.beforeScrape(() => series.set('trainer_silent_seconds', {}, (now() - heardAt) / 1000))

  function heard(at: number): void {
    heardAt = now()
    series.set('trainer_last_seen_timestamp_seconds', {}, at)
  }

  const showBreaker = (backend: string, now: LabelValue<'breaker_state'>) => {
    for (const state of LABEL_LISTS.breaker_state)
      series.set('backend_breaker_state', { backend, state }, state === now ? 1 : 0)
  }

  /** A refusal of one request says nothing of the backend. */
  function showHealth(backend: string, code: LabelValue<'backend_code'> | null = null): void {
    if (code === '4xx') return
    series.set('backend_up', { backend }, health.isDown(backend) ? 0 : 1)
  }

  for (const backend of backends) {
    series.set('backend_retry_budget_ratio', { backend }, 1)
    showBreaker(backend, 'closed')
  }

  return {
    backendTry(backend, code, seconds, what) {
      health.tried(backend, code, seconds, what)
      showHealth(backend, code)
      series.inc('backend_requests_total', { backend, code })
      series.observe('backend_request_duration_seconds', { backend }, seconds)
    },
    backendAsked(backend, code) {
      health.asked(backend, code)
      showHealth(backend, code)
    },
    backendLeftAlone(backend) {
      health.leftAlone(backend)
      showHealth(backend)
    },
    backendRetry: (backend, reason) => series.inc('backend_retries_total', { backend, reason }),
    breaker: showBreaker,
    backendsDown: health.down,
    retryBudget: (backend, ratio) => series.set('backend_retry_budget_ratio', { backend }, ratio),
    firstToken: (backend, seconds) =>
      series.observe('time_to_first_token_seconds', { backend }, seconds),
    tokenGap: (backend, seconds) => series.observe('inter_token_seconds', { backend }, seconds),
    asked(kind, result, seconds) {
      series.inc('requests_total', { kind, result })
      series.observe('request_duration_seconds', { kind }, seconds)
    },
    workerExit: (cause) => series.inc('pool_worker_exits_total', { pool: 'turn', cause }),
    spent({ env, calls, graded, seconds }) {
      series.observe('env_step_duration_seconds', { env }, seconds)
      if (graded !== null) series.observe('reward_duration_seconds', { env }, graded)
      for (const { tool, outcome, seconds } of calls) {
        if (tool === null) series.inc('label_overflow_total', { label: 'tool' })
        series.inc('tool_calls_total', { env, tool: tool ?? 'other', outcome })
        series.observe('tool_call_duration_seconds', { env }, seconds)
      }
    },
    leased({ mode, delivery, staleness }) {
      if (delivery > 1) series.inc('redeliveries_total', {})
      if (staleness !== null) series.observe('group_staleness_versions', { mode }, staleness)
    },
    readyWaited: (seconds) => series.observe('ready_wait_seconds', {}, seconds),
    leasesExpired: (leases) => series.inc('leases_expired_total', {}, leases),
    acknowledged: (result) => series.inc('acks_total', { result }),
    settled: (mode, result, groups) => series.inc('groups_settled_total', { mode, result }, groups),
    submittedAgain: () => series.inc('submissions_deduplicated_total', {}),
    trainerPolled: (dialect, groups) =>
      series.inc('trainer_polls_total', { dialect, result: groups > 0 ? 'groups' : 'empty' }),
    calledBack: (result) => series.inc('callbacks_total', { result }),
    trainerSeen: heard,
    heartbeat(step, checkpointStep, at) {
      series.set('trainer_step', {}, step)
      if (checkpointStep !== null) series.set('trainer_checkpoint_step', {}, checkpointStep)
      heard(at)
    },
    trainerSkipped(said, groups) {
      const reason = LABEL_LISTS.skip_reason.find((known) => known === said) ?? 'other'
      series.inc('trainer_skipped_groups_total', { reason }, groups)
    },
    policyVersion: (version) => series.set('policy_version', {}, version),
    budgeted(tokens) {
      budget += tokens
      series.set('budget_tokens_limit', {}, budget)
    },
    httpAnswered(route, status, seconds, refusal) {
      const code = httpCode(status)
      series.observe('http_request_duration_seconds', { route: routeOf(route), code }, seconds)
      const reason = rejectReason(status, refusal)
      if (reason) series.inc('requests_rejected_total', { reason })
    },
    socketOpened() {
      sockets++
      series.set('ws_connections', {}, sockets)
    },
    socketClosed(code) {
      sockets--
      series.set('ws_connections', {}, sockets)
      series.inc('ws_closed_total', { code: closeCode(code) })
    },
    committed: (op, seconds) => series.observe('store_commit_seconds', { op }, seconds),
    commitFailed: (op) => series.inc('store_errors_total', { op }),
    quarantined(key) {
      const item = LABEL_LISTS.store_item.find((known) => key.startsWith(`${known}/`)) ?? 'other'
      series.inc('store_quarantined_total', { item })
    },
    recovered: (item, count) => series.inc('recovered_items_total', { item }, count),
    draining: () => series.set('draining', {}, 1),
  }
}

/** What each of our path patterns is for, the first that matches. */
const ROUTES: [RegExp, LabelValue<'route'>][] = [
  [/^\/healthz?$/, 'health'],
  [/^\/readyz$/, 'ready'],
  [/^\/metrics$/, 'metrics'],
  [/^\/v1\/stream$/, 'ws'],
  [/^\/v1\/batches$/, 'submit'],
  [/\/lease$/, 'lease'],
  [/\/n?ack$/, 'ack'],
  [/^\/v1\/(batches|groups|episodes)\//, 'groups'],
  [/^\/v1\/(parse|advantages)$/, 'score'],
  [/^\/v1\/(policy|heartbeat|tasks)/, 'admin'],
  [/^(\/|\/docs.*|\/dash.*|\/openapi\.json)$/, 'pages'],
  // Trainers' own wire forms have paths of their own.
  [/^\/(?!v1\/)/, 'dialect'],
]

function routeOf(pattern: string): LabelValue<'route'> {
  return ROUTES.find(([form]) => form.test(pattern))?.[1] ?? 'other'
}

function httpCode(status: number): LabelValue<'http_code'> {
  if (status === 429) return '429'
  if (status < 300) return '2xx'
  return status < 400 ? '3xx' : status < 500 ? '4xx' : '5xx'
}

/** Statuses with which a request is refused before work begins, and why. */
const REJECTIONS: Record<number, LabelValue<'reject_reason'>> = {
  400: 'invalid',
  401: 'unauthorized',
  403: 'forbidden',
  404: 'not_found',
  405: 'invalid',
  413: 'body_too_large',
  415: 'bad_content_type',
  422: 'invalid',
}

/** Codes that share a status. What failed in mid-work (not graded, not kept) was no refusal. */
const REJECTED_CODES: Partial<Record<ErrorCode | Bound, LabelValue<'reject_reason'>>> = {
  queue_full: 'queue_full',
  ready_full: 'ready_full',
  bytes_full: 'bytes_full',
  disk_full: 'disk_full',
  too_many_requests: 'rate_limited',
  draining: 'draining',
}

function rejectReason(
  status: number,
  refusal: ErrorCode | Bound | null,
): LabelValue<'reject_reason'> | null {
  return (refusal && REJECTED_CODES[refusal]) ?? REJECTIONS[status] ?? null
}

function closeCode(code: number): LabelValue<'ws_close'> {
  return LABEL_LISTS.ws_close.find((known) => known === String(code)) ?? 'other'
}
