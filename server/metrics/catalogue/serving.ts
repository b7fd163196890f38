// Metrics of the machinery: tools, queues, threads, backends, delivery, trainers, cost, our own HTTP, the ledger.
import {
  BACKEND_SECONDS,
  counter,
  EPISODE_SECONDS,
  gauge,
  gaugeOnceKnown,
  histogram,
  STEP_SECONDS,
} from './definition.ts'

export const IDENTITY = {
  build_info: gauge('version node', '1', 'Constant 1; what runs'),
  draining: gauge('', 'bool', '1 from SIGTERM until the exit'),
  label_overflow_total: counter(
    'label:overflow_label',
    'values',
    'Label values counted as `other` since no list has them',
  ),
} as const

export const TOOLS = {
  tool_calls_total: counter(
    'env tool outcome:tool_outcome',
    'calls',
    'Tool calls; a name that the model was not offered is `other`',
  ),
  tool_call_duration_seconds: histogram('env', 'seconds', STEP_SECONDS, 'Time of one tool call'),
  env_step_duration_seconds: histogram(
    'env',
    'seconds',
    STEP_SECONDS,
    "The environment's share of one turn, its calls together",
  ),
} as const

export const CAPACITY = {
  queue_depth: gauge('queue', 'items', 'Items that wait'),
  queue_capacity: gauge('queue', 'items', 'Items that may wait; 0 where nothing bounds them'),
  queue_bytes: gauge('queue:held_queue', 'bytes', 'Bytes held by what waits'),
  queue_oldest_age_seconds: gauge(
    'queue',
    'seconds',
    'Age of the oldest item that waits; 0 where none does',
  ),
  pool_threads: gauge('pool state:thread_state', 'threads', 'Worker threads by state'),
  pool_busy_seconds_total: counter(
    'pool',
    'seconds',
    'Thread-seconds spent on jobs; rate / threads = utilisation',
  ),
  pool_worker_exits_total: counter('pool cause:worker_exit', 'threads', 'Worker threads lost'),
  eventloop_utilization_ratio: gauge(
    '',
    'ratio',
    'Busy share of the main loop since the last scrape',
  ),
} as const

export const BACKENDS = {
  backend_up: gaugeOnceKnown(
    'backend',
    'bool',
    '1 while tokens come: 0 after three requests in a row that brought none, each with all its tries, or where after failures no endpoint may be asked, until one brings some',
  ),
  backend_breaker_state: gauge('backend state:breaker_state', 'bool', '1 for the state that holds'),
  backend_requests_total: counter(
    'backend code:backend_code',
    'requests',
    'Tries of policy requests by what they came to',
  ),
  backend_request_duration_seconds: histogram(
    'backend',
    'seconds',
    BACKEND_SECONDS,
    'Whole time of one try',
  ),
  backend_retries_total: counter(
    'backend reason:retry_reason',
    'requests',
    'Tries after the first',
  ),
  backend_retry_budget_ratio: gauge(
    'backend',
    'ratio',
    'What is left of the retry budget: 1 full, 0 no retries',
  ),
  backend_in_flight: gauge('backend', 'requests', 'Open requests'),
  backend_policy_version: gaugeOnceKnown(
    'backend',
    'version',
    'Weight version that the backend last reported',
  ),
  time_to_first_token_seconds: histogram(
    'backend',
    'seconds',
    BACKEND_SECONDS,
    'Request sent to first streamed token; only of backends with stream: true',
  ),
  inter_token_seconds: histogram(
    'backend',
    'seconds',
    [0.001, 0.0025, 0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28],
    'Mean gap between the streamed tokens of one request',
  ),
  requests_total: counter(
    'kind:request_kind result:request_result',
    'requests',
    'Requests of turns to others than the policy: simulated user, judge, grader, reward model, tool',
  ),
  request_duration_seconds: histogram(
    'kind:request_kind',
    'seconds',
    BACKEND_SECONDS,
    'Time of such a request, its tries together',
  ),
} as const

export const DELIVERY = {
  ready_wait_seconds: histogram('', 'seconds', EPISODE_SECONDS, 'Group ready to its first lease'),
  leases_active: gauge('', 'leases', 'Groups leased and not yet acknowledged'),
  leases_expired_total: counter('', 'leases', 'Leases that ran out'),
  redeliveries_total: counter('', 'groups', 'Groups handed out again'),
  acks_total: counter('result:ack_result', 'groups', 'Acknowledged and returned groups by result'),
  groups_settled_total: counter(
    'mode result:settle',
    'groups',
    'Finished groups by how they left the ready store',
  ),
  submissions_deduplicated_total: counter(
    '',
    'submissions',
    'Submissions answered from an earlier one with the same id',
  ),
  trainer_polls_total: counter(
    'dialect result:poll_result',
    'polls',
    'Times that a trainer asked for groups',
  ),
  callbacks_total: counter(
    'result:callback_result',
    'callbacks',
    'Results posted to a trainer by what came of it',
  ),
  policy_version: gaugeOnceKnown('', 'version', 'Newest weight version that the trainer announced'),
  group_staleness_versions: histogram(
    'mode',
    'versions',
    [0, 1, 2, 3, 4, 6, 8, 16, 32],
    'Announced version at lease time minus the oldest version in the group',
  ),
  mixed_version_groups_total: counter(
    'mode',
    'groups',
    'Groups whose tokens came from more than one weight version',
  ),
  trainer_last_seen_timestamp_seconds: gauge(
    '',
    'unix s',
    "When a trainer last submitted, leased, acknowledged or gave a heartbeat, by the server's wall clock; 0 before the first",
  ),
  trainer_silent_seconds: gauge(
    '',
    'seconds',
    'Since a trainer last submitted, leased, acknowledged or gave a heartbeat, or since the server began, on its own clock',
  ),
  trainer_step: gaugeOnceKnown('', 'step', 'Step in the last heartbeat'),
  trainer_checkpoint_step: gaugeOnceKnown(
    '',
    'step',
    'Step of the last durable checkpoint that the trainer reported; absent where no heartbeat named one; step minus this is work at risk',
  ),
  trainer_skipped_groups_total: counter(
    'reason:skip_reason',
    'groups',
    'Groups that the trainer did not train on',
  ),
} as const

export const COST = {
  tokens_total: counter('env kind:token_kind', 'tokens', 'Tokens handled'),
  cost_tokens_total: counter(
    'env mode outcome:group_outcome',
    'tokens',
    'Sampled tokens charged to a group at its end, by verdict; wasted is all but valid',
  ),
  cost_seconds_total: counter(
    'env resource outcome:group_outcome',
    'seconds',
    'Backend and thread seconds charged to a group at its end, by verdict',
  ),
  budget_tokens_limit: gauge(
    '',
    'tokens',
    'Tokens that the batches admitted so far may sample at most',
  ),
  admission_paused: gauge(
    'reason:pause_reason',
    'bool',
    '1 while no new group of some batch starts for this reason',
  ),
} as const

export const EDGE = {
  http_request_duration_seconds: histogram(
    'route code:http_code',
    'seconds',
    STEP_SECONDS,
    'Our own HTTP by what the route is for',
  ),
  requests_rejected_total: counter(
    'reason:reject_reason',
    'requests',
    'Requests refused before work began',
  ),
  ws_connections: gauge('', 'connections', 'Open WebSockets'),
  ws_buffered_bytes: gauge('', 'bytes', 'Bytes written to WebSockets and not yet sent'),
  ws_closed_total: counter('code:ws_close', 'connections', 'WebSockets closed, by code'),
} as const

export const STORE = {
  store_commit_seconds: histogram(
    'op:store_op',
    'seconds',
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5],
    'Write to durable, fsync included',
  ),
  store_errors_total: counter('op:store_op', 'errors', 'Commits that failed'),
  store_bytes: gauge('kind:store_kind', 'bytes', 'Size on disk'),
  store_free_bytes: gaugeOnceKnown('', 'bytes', "Free bytes on the ledger's volume"),
  store_quarantined_total: counter(
    'item:store_item',
    'records',
    'Records whose checksum failed, set aside',
  ),
  recovered_items_total: counter(
    'item:recovered_item',
    'items',
    'Items found and resumed at the start',
  ),
} as const
