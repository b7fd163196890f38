// Unit tests of the alerts in promtool's form: for each a history that fires it, and one that looks alike and must not.
import { alertRules, WINDOWS } from './rules.ts'

/** One sample a minute: `0+3x20` grows by 3 twenty times. */
type History = Record<string, string>

interface Fires {
  history: History
  /** Minutes after which it fires. */
  after: number
  labels: Record<string, string>
  summary: string
}

interface AlertTest {
  fires: Fires[]
  quiet: { why: string; history: History }[]
}

const GROUPS = 'paddock_groups_finished_total'
const groups = (outcome: string) => `${GROUPS}{env="office",mode="train",outcome="${outcome}"}`
const EPISODES = 'paddock_episodes_finished_total'
const episodes = (outcome: string) => `${EPISODES}{env="office",mode="train",outcome="${outcome}"}`
const tokens = (outcome: string) =>
  `paddock_cost_tokens_total{env="office",mode="train",outcome="${outcome}"}`
const office = { env: 'office' }

export const ALERT_TESTS: Record<string, AlertTest> = {
  RewardContractBroken: {
    fires: [
      {
        history: {
          'paddock_contract_violations_total{env="office",field="score",kind="alias"}': '0+3x20',
          'paddock_contract_records_total{env="office"}': '0+100x20',
        },
        after: 10,
        labels: { ...office, field: 'score', kind: 'alias' },
        summary: 'office: 3% of the records break their contract at score (alias)',
      },
    ],
    quiet: [
      {
        why: 'the one record of a quiet server',
        history: {
          'paddock_contract_violations_total{env="office",field="score",kind="alias"}':
            '0 0 1+0x40',
          'paddock_contract_records_total{env="office"}': '0+1x40',
        },
      },
      {
        why: 'one record in two hundred',
        history: {
          'paddock_contract_violations_total{env="office",field="score",kind="alias"}': '0+1x20',
          'paddock_contract_records_total{env="office"}': '0+200x20',
        },
      },
    ],
  },
  NoValidGroups: {
    fires: [
      {
        history: { [groups('zero_variance')]: '0+10x20', [groups('valid')]: '0+0x20' },
        after: 10,
        labels: {},
        summary: '0% of the finished groups carry a gradient',
      },
    ],
    quiet: [
      {
        why: 'a third is valid',
        history: { [groups('zero_variance')]: '0+10x20', [groups('valid')]: '0+5x20' },
      },
      {
        why: 'a single group without variance',
        history: { [groups('zero_variance')]: '0 0 0 0 1+0x40', [groups('valid')]: '0+0x44' },
      },
      {
        why: 'a quiet server, whose few groups may be so by chance',
        history: { [groups('zero_variance')]: '0+1x40', [groups('valid')]: '0+0x40' },
      },
      {
        why: 'nothing finishes',
        history: { [groups('zero_variance')]: '7+0x20', [groups('valid')]: '0+0x20' },
      },
      {
        why: 'the counters start anew',
        history: {
          [groups('zero_variance')]: '0+10x10 0+10x10',
          [groups('valid')]: '0+10x10 0+10x10',
        },
      },
    ],
  },
  ZeroVarianceHigh: {
    fires: [
      {
        history: { [groups('zero_variance')]: '0+8x40', [groups('valid')]: '0+2x40' },
        after: 25,
        labels: office,
        summary: 'office: 80% of the judged groups have no variance',
      },
    ],
    quiet: [
      {
        why: 'every second one, which is usual',
        history: { [groups('zero_variance')]: '0+5x40', [groups('valid')]: '0+5x40' },
      },
    ],
  },
  SamplingDegenerate: {
    fires: [
      {
        history: {
          'paddock_groups_identical_total{env="office",mode="train"}': '0+2x20',
          [groups('zero_variance')]: '0+2x20',
          [groups('valid')]: '0+8x20',
        },
        after: 10,
        labels: office,
        summary: 'office: in 20% of the groups every completion is the same',
      },
    ],
    quiet: [
      {
        why: 'one group of a quiet server',
        history: {
          'paddock_groups_identical_total{env="office",mode="train"}': '0 0 0 0 0 1+0x40',
          [groups('zero_variance')]: '0+1x40',
          [groups('valid')]: '0+0x40',
        },
      },
      {
        why: 'an evaluation, whose groups are in no share of the training',
        history: {
          'paddock_groups_identical_total{env="office",mode="eval"}': '0+8x40',
          [groups('zero_variance')]: '0+8x40',
          [groups('valid')]: '0+8x40',
        },
      },
      {
        why: 'flat groups whose completions differ',
        history: {
          'paddock_groups_identical_total{env="office",mode="train"}': '0+0x20',
          [groups('zero_variance')]: '0+8x20',
          [groups('valid')]: '0+2x20',
        },
      },
    ],
  },
  SamplingParamMismatch: {
    fires: [
      {
        history: {
          'paddock_sampling_mismatch_total{backend="main",param="temperature"}': '0 0 0 1+0x10',
        },
        after: 6,
        labels: { backend: 'main', param: 'temperature' },
        summary: 'main samples with another temperature than it is asked for',
      },
    ],
    quiet: [
      {
        why: 'none, ever',
        history: {
          'paddock_sampling_mismatch_total{backend="main",param="temperature"}': '0+0x20',
        },
      },
    ],
  },
  RewardComponentFlat: {
    fires: [
      {
        history: {
          'paddock_reward_component_flat_groups_total{env="office",component="safety"}': '0+10x60',
          [groups('valid')]: '0+10x60',
        },
        after: 40,
        labels: { ...office, component: 'safety' },
        summary: 'office: component safety is the same within 100% of the groups',
      },
    ],
    quiet: [
      {
        why: 'flat in half of the evaluated groups, and in none that is trained on',
        history: {
          'paddock_reward_component_flat_groups_total{env="office",component="safety"}': '0+5x60',
          [groups('valid')]: '0+5x60',
          [groups('valid').replace('train', 'eval')]: '0+10x60',
        },
      },
      {
        why: 'flat in every second group',
        history: {
          'paddock_reward_component_flat_groups_total{env="office",component="safety"}': '0+5x60',
          [groups('valid')]: '0+10x60',
        },
      },
    ],
  },
  InfraFailuresHigh: {
    fires: [
      {
        history: { [episodes('infra_backend')]: '0+2x20', [episodes('ok')]: '0+8x20' },
        after: 12,
        labels: office,
        summary: 'office: 20% of the episodes fail by the machinery',
      },
    ],
    quiet: [
      {
        why: 'what the model does badly is no failure of the machinery',
        history: {
          [episodes('infra_backend')]: '0+0x20',
          [episodes('parse_error')]: '0+5x20',
          [episodes('ok')]: '0+5x20',
        },
      },
    ],
  },
  BudgetWasted: {
    fires: [
      {
        history: { [tokens('zero_variance')]: '0+90x40', [tokens('valid')]: '0+10x40' },
        after: 25,
        labels: office,
        summary: 'office: 90% of the sampled tokens buy no gradient',
      },
    ],
    quiet: [
      {
        why: 'half of them',
        history: { [tokens('zero_variance')]: '0+50x40', [tokens('valid')]: '0+50x40' },
      },
    ],
  },
  AdmissionPaused: {
    fires: [
      {
        history: { 'paddock_admission_paused{reason="contract"}': '1+0x20' },
        after: 5,
        labels: { reason: 'contract' },
        summary: 'no new group starts: contract',
      },
    ],
    quiet: [
      {
        why: 'a person wanted it',
        history: { 'paddock_admission_paused{reason="operator"}': '1+0x20' },
      },
    ],
  },
  PauseForgotten: {
    fires: [
      {
        history: { 'paddock_admission_paused{reason="operator"}': '1+0x60' },
        after: 40,
        labels: {},
        summary: 'a backend is paused, batches wait for it, and nobody has let it go on',
      },
    ],
    quiet: [
      {
        why: 'each weight update pauses, and ends',
        history: { 'paddock_admission_paused{reason="operator"}': '1x14 0 1x24 0 1x20' },
      },
      {
        why: 'the server paused by itself, which pages',
        history: {
          'paddock_admission_paused{reason="operator"}': '0+0x60',
          'paddock_admission_paused{reason="waste"}': '1+0x60',
        },
      },
    ],
  },
  ConservationBroken: {
    fires: [
      {
        history: {
          'paddock_groups_started_total{env="office",mode="train"}': '0+2x20',
          [groups('valid')]: '0+1x20',
          'paddock_groups_in_flight{env="office",mode="train"}': '0+0x20',
        },
        after: 10,
        labels: {},
        summary: '10 groups are counted nowhere, or twice',
      },
      {
        history: {
          [groups('valid')]: '0+2x20',
          'paddock_recovered_items_total{item="group"}': '0+0x20',
          'paddock_groups_settled_total{mode="train",result="acked"}': '0+1x20',
          'paddock_queue_depth{queue="ready"}': '0+0x20',
          paddock_leases_active: '0+0x20',
        },
        after: 10,
        labels: {},
        summary: '10 groups are counted nowhere, or twice',
      },
    ],
    quiet: [
      {
        why: 'what was found at the start has no finish here',
        history: {
          [groups('valid')]: '0+1x20',
          'paddock_recovered_items_total{item="group"}': '7+0x20',
          'paddock_groups_settled_total{mode="train",result="acked"}': '0+1x20',
          'paddock_queue_depth{queue="ready"}': '5+0x20',
          paddock_leases_active: '2+0x20',
        },
      },
      {
        why: 'what has not finished is in flight',
        history: {
          'paddock_groups_started_total{env="office",mode="train"}': '0+2x20',
          [groups('valid')]: '0+1x20',
          'paddock_groups_in_flight{env="office",mode="train"}': '0+1x20',
        },
      },
    ],
  },
  BackendDown: {
    fires: [
      {
        history: { 'paddock_backend_up{backend="main"}': '0+0x20' },
        after: 5,
        labels: { backend: 'main' },
        summary: 'backend main gives no tokens',
      },
      {
        history: {
          'paddock_backend_up{backend="main"}': '1+0x20',
          'paddock_backend_breaker_state{backend="main",state="open"}': '1+0x20',
        },
        after: 5,
        labels: { backend: 'main', state: 'open' },
        summary: 'backend main gives no tokens',
      },
    ],
    quiet: [
      {
        why: 'one bad minute',
        history: {
          'paddock_backend_up{backend="main"}': '1 1 0 1+0x20',
          'paddock_backend_breaker_state{backend="main",state="open"}': '0 0 1 0+0x20',
        },
      },
    ],
  },
  RetryBudgetSpent: {
    fires: [
      {
        history: { 'paddock_backend_retry_budget_ratio{backend="main"}': '0.05+0x20' },
        after: 10,
        labels: { backend: 'main' },
        summary: 'backend main: 5% of the retry budget is left',
      },
    ],
    quiet: [
      {
        why: 'half is left',
        history: { 'paddock_backend_retry_budget_ratio{backend="main"}': '0.5+0x20' },
      },
    ],
  },
  WeightsStale: {
    fires: [
      {
        history: {
          'paddock_group_staleness_versions_bucket{mode="train",le="4"}': '0+1x20',
          'paddock_group_staleness_versions_bucket{mode="train",le="8"}': '0+10x20',
          'paddock_group_staleness_versions_bucket{mode="train",le="+Inf"}': '0+10x20',
        },
        after: 10,
        labels: {},
        // The ninth of ten is the eighth of the nine between 4 and 8: 4 + 4 × 8/9.
        summary: 'a tenth of the leased groups are more than 7.556 weight versions behind',
      },
    ],
    quiet: [
      {
        why: 'all within four versions',
        history: {
          'paddock_group_staleness_versions_bucket{mode="train",le="4"}': '0+10x20',
          'paddock_group_staleness_versions_bucket{mode="train",le="8"}': '0+10x20',
          'paddock_group_staleness_versions_bucket{mode="train",le="+Inf"}': '0+10x20',
        },
      },
    ],
  },
  QueueSaturated: {
    fires: [
      {
        history: {
          'paddock_queue_depth{queue="ready"}': '95+0x20',
          'paddock_queue_capacity{queue="ready"}': '100+0x20',
        },
        after: 10,
        labels: { queue: 'ready' },
        summary: 'queue ready is 95% full',
      },
    ],
    quiet: [
      {
        why: 'nothing bounds it',
        history: {
          'paddock_queue_depth{queue="turn"}': '95+0x20',
          'paddock_queue_capacity{queue="turn"}': '0+0x20',
        },
      },
    ],
  },
  WorkersCrashing: {
    fires: [
      {
        history: { 'paddock_pool_worker_exits_total{pool="turn",cause="oom"}': '0+1x20' },
        after: 12,
        labels: { pool: 'turn', cause: 'oom' },
        summary: '10 worker threads were lost to oom',
      },
    ],
    quiet: [
      {
        why: 'one thread',
        history: { 'paddock_pool_worker_exits_total{pool="turn",cause="oom"}': '0 1+0x20' },
      },
    ],
  },
  EventLoopBlocked: {
    fires: [
      {
        history: { 'nodejs_eventloop_lag_p99_seconds{job="paddock",instance="a:1"}': '0.5+0x20' },
        after: 10,
        labels: { job: 'paddock', instance: 'a:1' },
        summary: 'the main loop of a:1 stands still for 500ms',
      },
    ],
    quiet: [
      {
        why: 'ten milliseconds',
        history: { 'nodejs_eventloop_lag_p99_seconds{job="paddock",instance="a:1"}': '0.01+0x20' },
      },
    ],
  },
  RolloutServerDown: {
    fires: [
      {
        history: { 'up{job="paddock",instance="a:1"}': '0+0x20' },
        after: 5,
        labels: { job: 'paddock', instance: 'a:1' },
        summary: 'no answer from the rollout server a:1',
      },
      {
        history: { 'up{job="other"}': '1+0x20' },
        after: 5,
        labels: { job: 'paddock' },
        summary: 'no answer from the rollout server ',
      },
    ],
    quiet: [{ why: 'it answers', history: { 'up{job="paddock",instance="a:1"}': '1+0x40' } }],
  },
  CheckpointBehind: {
    fires: [
      {
        history: { paddock_trainer_step: '122+0x20', paddock_trainer_checkpoint_step: '0+0x20' },
        after: 1,
        labels: {},
        summary:
          'the trainer is 122 steps past the last checkpoint that it told of, or past its start',
      },
      {
        // It has told of none.
        history: { paddock_trainer_step: '122+0x20' },
        after: 1,
        labels: {},
        summary:
          'the trainer is 122 steps past the last checkpoint that it told of, or past its start',
      },
    ],
    quiet: [
      {
        why: 'no trainer has told its step',
        history: { 'paddock_queue_depth{queue="ready"}': '3+0x20' },
      },
      {
        why: 'forty steps',
        history: { paddock_trainer_step: '122+0x20', paddock_trainer_checkpoint_step: '82+0x20' },
      },
      {
        why: 'forty steps without any checkpoint',
        history: { paddock_trainer_step: '40+0x20' },
      },
    ],
  },
  TrainerGone: {
    fires: [
      {
        history: {
          paddock_trainer_silent_seconds: '0+60x20',
          'paddock_queue_depth{queue="ready"}': '3+0x20',
        },
        after: 15,
        labels: {},
        summary: 'groups are ready, and no trainer was heard of for 15m 0s',
      },
    ],
    quiet: [
      {
        why: 'it was heard of each minute',
        history: {
          paddock_trainer_silent_seconds: '59+0x20',
          'paddock_queue_depth{queue="ready"}': '3+0x20',
        },
      },
      {
        why: 'the server started anew, with what was ready before',
        history: {
          paddock_trainer_silent_seconds: '0+60x9 0+60x9',
          'paddock_queue_depth{queue="ready"}': '3+0x20',
        },
      },
      {
        why: 'nothing waits for it',
        history: {
          paddock_trainer_silent_seconds: '0+60x20',
          'paddock_queue_depth{queue="ready"}': '0+0x20',
        },
      },
    ],
  },
  StoreFailing: {
    fires: [
      {
        history: { 'paddock_store_errors_total{op="settle"}': '0 0 1+0x10' },
        after: 4,
        labels: {},
        summary: "the ledger's commits fail, or its volume is nearly full",
      },
      {
        history: {
          paddock_store_free_bytes: '1000000000+0x20',
        },
        after: 1,
        labels: {},
        summary: "the ledger's commits fail, or its volume is nearly full",
      },
    ],
    quiet: [
      {
        why: 'a ledger in memory has no volume',
        history: {
          'paddock_store_errors_total{op="settle"}': '0+0x20',
          'paddock_store_bytes{kind="db"}': '0+0x20',
        },
      },
    ],
  },
  RedeliveriesHigh: {
    fires: [
      {
        history: {
          paddock_redeliveries_total: '0+1x40',
          'paddock_acks_total{result="acked"}': '0+10x40',
        },
        after: 25,
        labels: {},
        summary: '10% of the acknowledged groups were handed out more than once',
      },
    ],
    quiet: [
      {
        why: 'one in a hundred',
        history: {
          paddock_redeliveries_total: '0+1x40',
          'paddock_acks_total{result="acked"}': '0+100x40',
        },
      },
    ],
  },
}

/** The file that `promtool test rules` reads; beside the rules. */
export function ruleTests(): object {
  const tests = alertRules(WINDOWS).flatMap(({ alert, labels, annotations }) => {
    const { fires = [], quiet = [] } = ALERT_TESTS[alert] ?? {}
    return [
      ...fires.map(({ history, after, labels: own, summary }) => ({
        name: `${alert} fires`,
        interval: '1m',
        input_series: seriesOf(history),
        alert_rule_test: [
          {
            eval_time: `${after}m`,
            alertname: alert,
            exp_alerts: [
              { exp_labels: { ...labels, ...own }, exp_annotations: { ...annotations, summary } },
            ],
          },
        ],
      })),
      ...quiet.map(({ why, history }) => ({
        name: `${alert} stays quiet: ${why}`,
        interval: '1m',
        input_series: seriesOf(history),
        alert_rule_test: QUIET_AT.map((eval_time) => ({ eval_time, alertname: alert })),
      })),
    ]
  })
  return {
    rule_files: ['recording.rules.yml', 'alerts.rules.yml'],
    evaluation_interval: '1m',
    // An alert sees what was recorded in the same minute.
    group_eval_order: ['paddock-recording', 'paddock-alerts'],
    tests,
  }
}

/** A condition of a moment must not fire at any of them. */
const QUIET_AT = ['3m', '8m', '18m', '35m']

function seriesOf(history: History): { series: string; values: string }[] {
  return Object.entries(history).map(([series, values]) => ({ series, values }))
}
