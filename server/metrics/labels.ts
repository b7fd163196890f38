// The closed lists of label values. What is in none of them is counted as `other`: a label that grows is a leak.

import { EPISODE_OUTCOMES, GROUP_VERDICTS, LEVELS, SETTLEMENTS } from '../../protocol/outcomes.ts'
import { LENIENCIES, PARSE_ERRORS, PARSE_FLAGS } from '../../protocol/parse-codes.ts'
import { DRIFT_CAUSES } from '../../protocol/turn-counts.ts'
import { CONTRACT_KINDS } from '../../reward/contract.ts'

/** Values by list. A label has the values of the list of its name, or of the one behind its colon. */
export const LABEL_LISTS = {
  mode: ['train', 'eval'],
  group_outcome: GROUP_VERDICTS,
  episode_outcome: EPISODE_OUTCOMES,
  level: LEVELS,
  settle: SETTLEMENTS,
  parser_code: PARSE_ERRORS,
  parser_flag: PARSE_FLAGS,
  /** What of a record broke its contract. A reward field of the contract that is not named here is `components`. */
  contract_field: [
    'reward',
    'score',
    'tokens',
    'logprobs',
    'loss_mask',
    'advantage',
    'group_id',
    'episode_id',
    'policy_version',
    'finish_reason',
    'messages',
    'tool_calls',
    'components',
    'sampling',
    'tools',
    'other',
  ],
  contract_kind: [...CONTRACT_KINDS, 'other'],
  parser_leniency: LENIENCIES,
  drift_cause: DRIFT_CAUSES,
  tool_outcome: ['ok', 'tool_error', 'bad_args', 'timeout', 'infra', 'denied'],
  backend_code: ['2xx', '3xx', '4xx', '429', '5xx', 'timeout', 'reset', 'truncated', 'invalid'],
  http_code: ['2xx', '3xx', '4xx', '429', '5xx'],
  retry_reason: ['connect', 'timeout', '429', '5xx', 'truncated', 'invalid', 'version'],
  sampling_param: ['temperature', 'top_p', 'top_k', 'max_tokens', 'seed', 'stop', 'n', 'other'],
  token_kind: ['prompt', 'completion'],
  breaker_state: ['closed', 'open', 'half_open'],
  /** submit: open batches; episode: starts that wait for a slot; turn: jobs that wait for a thread; ready: finished groups. */
  queue: ['submit', 'episode', 'turn', 'ready'],
  /** Whose items are bytes in memory: episodes of finished groups and of groups under way. */
  held_queue: ['ready'],
  pool: ['turn'],
  thread_state: ['busy', 'idle', 'starting'],
  worker_exit: ['crash', 'oom', 'hang_killed'],
  /** The first four are bounds: batches that are played, finished groups that wait, their bytes, the ledger or its disk. */
  reject_reason: [
    'queue_full',
    'ready_full',
    'bytes_full',
    'disk_full',
    'body_too_large',
    'bad_content_type',
    'invalid',
    'not_found',
    'unauthorized',
    'forbidden',
    'draining',
    'rate_limited',
  ],
  ack_result: ['acked', 'late', 'unknown', 'duplicate', 'nacked'],
  resource: ['backend', 'worker'],
  ws_close: ['1000', '1001', '1003', '1006', '1008', '1009', '1011', '1012', '1013', 'other'],
  /** What our own routes are for; their paths carry ids. */
  route: [
    'submit',
    'lease',
    'ack',
    'groups',
    'score',
    'health',
    'ready',
    'metrics',
    'admin',
    'dialect',
    'pages',
    'ws',
    'other',
  ],
  /** The methods of the ledger; other: an event of a batch, or a note. */
  store_op: ['submit', 'turn', 'seal', 'settle', 'lease', 'ack', 'nack', 'other'],
  /** First part of a record's key. */
  store_item: ['batch', 'event', 'group', 'delivery', 'blob', 'turn', 'other'],
  /** group: one that was ready or leased. */
  recovered_item: ['batch', 'group'],
  store_kind: ['db'],
  /** disk: the ledger has no room, or its disk too little. */
  pause_reason: ['operator', 'contract', 'waste', 'disk'],
  /** silent: nothing was graded, as where the backend is down. */
  canary_result: ['passed', 'refused', 'silent'],
  /** What a nack gives as its reason, where that is one of these words. */
  skip_reason: ['zero_advantage', 'contract', 'stale', 'filtered', 'overlong', 'other'],
  dialect: ['native', 'slime', 'polar'],
  poll_result: ['groups', 'empty'],
  callback_result: ['delivered', 'retried', 'failed'],
  /** Whom a turn asks beside the policy. */
  request_kind: ['user', 'judge', 'grade', 'reward', 'tool'],
  request_result: ['ok', 'timeout', 'unavailable', 'invalid'],
  overflow_label: ['env', 'backend', 'component', 'tool', 'other'],
} as const satisfies Record<string, readonly string[]>

/** Lists that the configuration fills: environments and backends, components of their contracts, tools they offer, the build. */
export type OpenList = 'env' | 'backend' | 'component' | 'tool' | 'version' | 'node'
export type ClosedList = keyof typeof LABEL_LISTS
export type LabelValue<List> = List extends ClosedList ? (typeof LABEL_LISTS)[List][number] : string
