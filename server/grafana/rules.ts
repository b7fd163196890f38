// Recording rules and alerts over the catalogue: what ops are told, and when.

/** Durations of the rules. The live test shortens them; the rules stay the same. */
export interface Windows {
  /** Of rates. */
  short: string
  /** Of rare events. */
  long: string
  /** How long a condition of so many minutes has to hold. */
  hold(minutes: number): string
  /** Seconds without a word from the trainer while groups wait for it. */
  trainerGone: number
  /** Bytes that the ledger's volume must have free. */
  freeBytes: number
  /** What a share has to be of, in the short window, before it pages: of fewer, it says what chance made. */
  least: { groups: number; records: number }
}

export const WINDOWS: Windows = {
  short: '5m',
  long: '10m',
  hold: (minutes) => `${minutes}m`,
  trainerGone: 600,
  freeBytes: 5e9,
  // Where every second group has variance, which is usual, ten in a row without any come once in a thousand.
  least: { groups: 10, records: 20 },
}

export interface RecordingRule {
  record: string
  expr: string
}

export interface AlertRule {
  alert: string
  expr: string
  for: string
  labels: { severity: 'page' | 'warn' }
  annotations: { summary: string; runbook: string; panel: string }
}

/** Sums over instances come from here, so that panels and alerts agree. `rate5m` in a name is the usual window. */
export function recordingRules({ short }: Windows): RecordingRule[] {
  const rate = (selector: string) => `rate(${selector}[${short}])`
  const byEnv = (selector: string) => `sum by (env) (${rate(selector)})`
  const byMode = (selector: string) => `sum by (env, mode) (${rate(selector)})`
  const byComponent = (selector: string) => `sum by (env, component) (${rate(selector)})`
  const rule = (record: string, expr: string): RecordingRule => ({ record, expr })
  const reward = (level: string, by: (selector: string) => string, of: string) => {
    const count = `(${by(`paddock_reward_count${of}`)} > 0)`
    const [positive, negative, squares] = ['positive', 'negative', 'squares'].map((part) =>
      by(`paddock_reward_${part}_sum_total${of}`),
    )
    const mean = `${level}:paddock_reward:mean5m`
    return [
      rule(mean, `(${positive} - ${negative}) / ${count}`),
      rule(
        `${level}:paddock_reward:std5m`,
        `sqrt(clamp_min(${squares} / ${count} - ${mean} ^ 2, 0))`,
      ),
    ]
  }
  return [
    rule(
      'env_mode:paddock_groups:rate5m',
      `sum by (env, mode, outcome) (${rate('paddock_groups_finished_total')})`,
    ),
    rule(
      'env:paddock_groups:rate5m',
      `sum by (env, outcome) (${rate('paddock_groups_finished_total{mode="train"}')})`,
    ),
    rule(
      'env:paddock_group_outcome:ratio_rate5m',
      'env:paddock_groups:rate5m / on (env) group_left () (sum by (env) (env:paddock_groups:rate5m) > 0)',
    ),
    rule(
      'env:paddock_groups_valid:ratio_rate5m',
      'sum by (env) (env:paddock_groups:rate5m{outcome="valid"}) / (sum by (env) (env:paddock_groups:rate5m) > 0)',
    ),
    rule(
      'paddock_groups_valid:ratio_rate5m',
      'sum(env:paddock_groups:rate5m{outcome="valid"}) / (sum(env:paddock_groups:rate5m) > 0)',
    ),
    rule(
      'env:paddock_groups_zero_variance:ratio_rate5m',
      'sum by (env) (env:paddock_groups:rate5m{outcome="zero_variance"}) / (sum by (env) (env:paddock_groups:rate5m{outcome=~"valid|zero_variance"}) > 0)',
    ),
    rule(
      'env:paddock_episodes_infra:ratio_rate5m',
      `${byEnv('paddock_episodes_finished_total{outcome=~"infra_.*|timeout"}')} / (${byEnv('paddock_episodes_finished_total')} > 0)`,
    ),
    ...reward('env', byEnv, '{mode="train"}'),
    ...reward('env_mode', byMode, ''),
    rule(
      'env_component:paddock_reward_component:mean5m',
      `(${byComponent('paddock_reward_component_positive_sum_total')} - ${byComponent('paddock_reward_component_negative_sum_total')}) / (${byComponent('paddock_reward_component_values_total')} > 0)`,
    ),
    rule(
      'env_component:paddock_reward_component:std5m',
      `sqrt(clamp_min(${byComponent('paddock_reward_component_squares_sum_total')} / (${byComponent('paddock_reward_component_values_total')} > 0) - env_component:paddock_reward_component:mean5m ^ 2, 0))`,
    ),
    rule(
      'env_component:paddock_reward_component_flat:ratio_rate5m',
      `${byComponent('paddock_reward_component_flat_groups_total')} / on (env) group_left () (${byEnv('paddock_groups_finished_total{outcome=~"valid|zero_variance"}')} > 0)`,
    ),
    rule(
      'env:paddock_tokens_wasted:ratio_rate5m',
      `1 - ${byEnv('paddock_cost_tokens_total{mode="train",outcome="valid"}')} / (${byEnv('paddock_cost_tokens_total{mode="train"}')} > 0)`,
    ),
    rule(
      'pool:paddock_pool:utilization_rate5m',
      `sum by (pool) (${rate('paddock_pool_busy_seconds_total')}) / (sum by (pool) (paddock_pool_threads{state=~"busy|idle"}) > 0)`,
    ),
    rule(
      'backend:paddock_backend_errors:ratio_rate5m',
      `sum by (backend) (${rate('paddock_backend_requests_total{code!="2xx"}')}) / (sum by (backend) (${rate('paddock_backend_requests_total')}) > 0)`,
    ),
    rule(
      'paddock_groups_conservation:gap',
      'sum(paddock_groups_started_total) - sum(paddock_groups_finished_total) - sum(paddock_groups_in_flight)',
    ),
    rule(
      'paddock_groups_delivery:gap',
      'sum(paddock_groups_finished_total) + sum(paddock_recovered_items_total{item="group"}) - sum(paddock_groups_settled_total) - sum(paddock_queue_depth{queue="ready"}) - sum(paddock_leases_active)',
    ),
  ]
}

export function alertRules(windows: Windows): AlertRule[] {
  const { short, long, hold, trainerGone, freeBytes, least } = windows
  const increase = (selector: string) => `increase(${selector}[${short}])`
  const alert = (
    name: string,
    severity: AlertRule['labels']['severity'],
    minutes: number,
    expr: string,
    summary: string,
    panel: string,
  ): AlertRule => ({
    alert: name,
    expr,
    for: hold(minutes),
    labels: { severity },
    annotations: { summary, runbook: `docs/runbooks/${name}.md`, panel },
  })
  return [
    alert(
      'RewardContractBroken',
      'page',
      1,
      `sum by (env, field, kind) (rate(paddock_contract_violations_total[${short}])) / on (env) group_left () (sum by (env) (rate(paddock_contract_records_total[${short}])) > 0) > 0.01 and on (env) sum by (env) (${increase('paddock_contract_records_total')}) >= ${least.records}`,
      '{{ $labels.env }}: {{ $value | humanizePercentage }} of the records break their contract at {{ $labels.field }} ({{ $labels.kind }})',
      'Contract violations by field (range)',
    ),
    alert(
      'NoValidGroups',
      'page',
      3,
      `paddock_groups_valid:ratio_rate5m < 0.05 and on () sum(${increase('paddock_groups_finished_total{mode="train"}')}) >= ${least.groups}`,
      '{{ $value | humanizePercentage }} of the finished groups carry a gradient',
      'Groups by outcome',
    ),
    alert(
      'ZeroVarianceHigh',
      'warn',
      15,
      'env:paddock_groups_zero_variance:ratio_rate5m > 0.6',
      '{{ $labels.env }}: {{ $value | humanizePercentage }} of the judged groups have no variance',
      'Zero variance: floor, mid, ceiling',
    ),
    alert(
      'SamplingDegenerate',
      'page',
      2,
      `sum by (env) (rate(paddock_groups_identical_total{mode="train"}[${short}])) / (sum by (env) (env:paddock_groups:rate5m{outcome=~"valid|zero_variance"}) > 0) > 0.05 and on (env) sum by (env) (${increase('paddock_groups_finished_total{mode="train",outcome=~"valid|zero_variance"}')}) >= ${least.groups}`,
      '{{ $labels.env }}: in {{ $value | humanizePercentage }} of the groups every completion is the same',
      'Distinct completions in group (mean)',
    ),
    alert(
      'SamplingParamMismatch',
      'page',
      1,
      `sum by (backend, param) (increase(paddock_sampling_mismatch_total[${short}])) > 0`,
      '{{ $labels.backend }} samples with another {{ $labels.param }} than it is asked for',
      'Distinct completions in group (mean)',
    ),
    alert(
      'RewardComponentFlat',
      'warn',
      30,
      'env_component:paddock_reward_component_flat:ratio_rate5m > 0.98',
      '{{ $labels.env }}: component {{ $labels.component }} is the same within {{ $value | humanizePercentage }} of the groups',
      'Component flat in group',
    ),
    alert(
      'InfraFailuresHigh',
      'warn',
      5,
      'env:paddock_episodes_infra:ratio_rate5m > 0.1',
      '{{ $labels.env }}: {{ $value | humanizePercentage }} of the episodes fail by the machinery',
      'Infra failures',
    ),
    alert(
      'BudgetWasted',
      'warn',
      15,
      'env:paddock_tokens_wasted:ratio_rate5m > 0.7',
      '{{ $labels.env }}: {{ $value | humanizePercentage }} of the sampled tokens buy no gradient',
      'Tokens per valid group',
    ),
    alert(
      'AdmissionPaused',
      'page',
      1,
      'max by (reason) (paddock_admission_paused{reason!="operator"}) == 1',
      'no new group starts: {{ $labels.reason }}',
      'Admission paused',
    ),
    alert(
      'PauseForgotten',
      'warn',
      30,
      'max(paddock_admission_paused{reason="operator"}) == 1',
      'a backend is paused, batches wait for it, and nobody has let it go on',
      'Admission paused',
    ),
    alert(
      'ConservationBroken',
      'warn',
      5,
      'abs(paddock_groups_conservation:gap) > 0 or abs(paddock_groups_delivery:gap) > 0',
      '{{ $value }} groups are counted nowhere, or twice',
      'Conservation gap (must be 0)',
    ),
    alert(
      'BackendDown',
      'page',
      2,
      'paddock_backend_up == 0 or paddock_backend_breaker_state{state="open"} == 1',
      'backend {{ $labels.backend }} gives no tokens',
      'Backend breaker',
    ),
    alert(
      'RetryBudgetSpent',
      'warn',
      5,
      'paddock_backend_retry_budget_ratio < 0.1',
      'backend {{ $labels.backend }}: {{ $value | humanizePercentage }} of the retry budget is left',
      'Backend errors',
    ),
    alert(
      'WeightsStale',
      'warn',
      5,
      `histogram_quantile(0.9, sum by (le) (rate(paddock_group_staleness_versions_bucket{mode="train"}[${short}]))) > 4`,
      'a tenth of the leased groups are more than {{ $value | humanize }} weight versions behind',
      'Weight staleness p50/p90',
    ),
    alert(
      'QueueSaturated',
      'warn',
      5,
      'paddock_queue_depth / (paddock_queue_capacity > 0) > 0.9',
      'queue {{ $labels.queue }} is {{ $value | humanizePercentage }} full',
      'Queue fill',
    ),
    alert(
      'WorkersCrashing',
      'warn',
      0,
      `sum by (pool, cause) (increase(paddock_pool_worker_exits_total{cause=~"crash|oom|hang_killed"}[${long}])) > 5`,
      '{{ $value }} worker threads were lost to {{ $labels.cause }}',
      'Pool utilisation',
    ),
    alert(
      'EventLoopBlocked',
      'warn',
      5,
      'nodejs_eventloop_lag_p99_seconds{job="paddock"} > 0.2',
      'the main loop of {{ $labels.instance }} stands still for {{ $value | humanizeDuration }}',
      'Event loop lag p99 / utilisation',
    ),
    alert(
      'RolloutServerDown',
      'page',
      1,
      'up{job="paddock"} == 0 or absent(up{job="paddock"})',
      'no answer from the rollout server {{ $labels.instance }}',
      'Groups by outcome',
    ),
    alert(
      'CheckpointBehind',
      'page',
      0,
      // One that has told of no checkpoint has no such series, and all its steps at risk.
      'paddock_trainer_step - (paddock_trainer_checkpoint_step or 0 * paddock_trainer_step) > 50',
      'the trainer is {{ $value }} steps past the last checkpoint that it told of, or past its start',
      'Steps since checkpoint',
    ),
    alert(
      'TrainerGone',
      'page',
      1,
      `paddock_trainer_silent_seconds > ${trainerGone} and ignoring (queue) paddock_queue_depth{queue="ready"} > 0`,
      'groups are ready, and no trainer was heard of for {{ $value | humanizeDuration }}',
      'Leases, redeliveries, acks',
    ),
    alert(
      'StoreFailing',
      'page',
      0,
      `sum(increase(paddock_store_errors_total[${short}])) > 0 or paddock_store_free_bytes < ${freeBytes}`,
      "the ledger's commits fail, or its volume is nearly full",
      'Commit p99',
    ),
    alert(
      'RedeliveriesHigh',
      'warn',
      10,
      `sum(rate(paddock_redeliveries_total[${long}])) / (sum(rate(paddock_acks_total{result="acked"}[${long}])) > 0) > 0.05`,
      '{{ $value | humanizePercentage }} of the acknowledged groups were handed out more than once',
      'Leases, redeliveries, acks',
    ),
  ]
}
