// The lower half of the dashboard: does the machinery hold.
import {
  BACKEND,
  ENV,
  ENV_MODE,
  type PanelPlan,
  panel,
  q,
  quantile,
  type RowPlan,
} from './panel-plan.ts'

/** The two quantiles of a histogram in seconds, by a label, of those series that are picked. */
function latency(
  what: string,
  metric: string,
  by: 'env' | 'backend',
  picked: string,
  description: string,
): PanelPlan {
  const selector = `paddock_${metric}_bucket{${picked}}`
  return panel('timeseries', `${what} p50/p95`, 's', description, [
    q(`p50 {{${by}}}`, quantile(0.5, `, ${by}`, selector)),
    q(`p95 {{${by}}}`, quantile(0.95, `, ${by}`, selector)),
  ])
}

export const SERVING_ROWS: RowPlan[] = [
  {
    title: 'Latency',
    panels: [
      latency(
        'Time to first token',
        'time_to_first_token_seconds',
        'backend',
        BACKEND,
        'Only of backends with stream: true.',
      ),
      latency(
        'Backend request',
        'backend_request_duration_seconds',
        'backend',
        BACKEND,
        'Whole time of one try.',
      ),
      latency(
        'Tool call',
        'tool_call_duration_seconds',
        'env',
        ENV,
        'One call inside a worker thread.',
      ),
      latency(
        'Env step',
        'env_step_duration_seconds',
        'env',
        ENV,
        "The environment's share of one turn.",
      ),
      latency('Episode', 'episode_duration_seconds', 'env', ENV_MODE, "An episode's last attempt."),
      latency(
        'Group completion',
        'group_duration_seconds',
        'env',
        ENV_MODE,
        'First attempt to verdict: the slowest member decides.',
      ),
    ],
  },
  {
    title: 'Capacity and backends',
    panels: [
      panel(
        'timeseries',
        'Queue fill',
        'percentunit',
        'Queues that are bounded, against their bound.',
        [q('{{queue}}', 'paddock_queue_depth / (paddock_queue_capacity > 0)')],
      ),
      panel(
        'timeseries',
        'Pool utilisation',
        'percentunit',
        'Thread-seconds of work a second and thread.',
        [q('{{pool}}', 'pool:paddock_pool:utilization_rate5m')],
      ),
      panel(
        'state-timeline',
        'Backend breaker',
        'short',
        '1 while the breaker is open: nothing is sent but probes.',
        [
          q(
            '{{backend}}',
            `max by (backend) (paddock_backend_breaker_state{state="open",${BACKEND}})`,
          ),
        ],
      ),
      panel(
        'timeseries',
        'Backend errors',
        'percentunit',
        'Share of tries that brought no completion.',
        [q('{{backend}}', `backend:paddock_backend_errors:ratio_rate5m{${BACKEND}}`)],
      ),
      panel(
        'timeseries',
        'Weight staleness p50/p90',
        'short',
        'Versions between the trainer and the oldest tokens of a leased group.',
        [
          q('p50', quantile(0.5, '', 'paddock_group_staleness_versions_bucket{mode=~"$mode"}')),
          q('p90', quantile(0.9, '', 'paddock_group_staleness_versions_bucket{mode=~"$mode"}')),
          q(
            'trainer ahead of backends',
            `max(paddock_policy_version) - min(paddock_backend_policy_version{${BACKEND}})`,
          ),
        ],
      ),
      panel(
        'timeseries',
        'Event loop lag p99 / utilisation',
        'short',
        'The main loop: seconds of lag, and its busy share.',
        [
          q('lag p99', 'nodejs_eventloop_lag_p99_seconds{job="paddock"}'),
          q('utilisation', 'paddock_eventloop_utilization_ratio'),
        ],
      ),
    ],
  },
  {
    title: 'Delivery and durability',
    panels: [
      panel(
        'timeseries',
        'Leases, redeliveries, acks',
        'short',
        'Groups on their way to the trainer.',
        [
          q('leased now', 'paddock_leases_active'),
          q('handed out again / s', 'sum(rate(paddock_redeliveries_total[$__rate_interval]))'),
          q('{{result}} / s', 'sum by (result) (rate(paddock_acks_total[$__rate_interval]))'),
        ],
      ),
      panel('timeseries', 'Commit p99', 's', 'Write to durable in the ledger.', [
        q('{{op}}', quantile(0.99, ', op', 'paddock_store_commit_seconds_bucket')),
      ]),
      panel(
        'timeseries',
        'Conservation gap (must be 0)',
        'short',
        'Groups that are counted nowhere, or twice.',
        [
          q('started, finished, in flight', 'paddock_groups_conservation:gap'),
          q('finished, settled, ready, leased', 'paddock_groups_delivery:gap'),
        ],
        { below: 'green', steps: [['red', 1]] },
      ),
    ],
  },
]
