// The upper half of the dashboard: is the run learning, and if not, why.
import {
  ENV,
  ENV_MODE,
  GOOD_HIGH,
  GOOD_LOW,
  INTERVAL,
  panel,
  q,
  type RowPlan,
  share,
  sum,
  sumBy,
} from './panel-plan.ts'

export const LEARNING_ROWS: RowPlan[] = [
  {
    title: 'Reward health now',
    panels: [
      panel(
        'stat',
        'Valid groups',
        'percentunit',
        'Share of finished groups whose rewards differ: only they carry a gradient.',
        [
          share(
            `sum(env_mode:paddock_groups:rate5m{${ENV_MODE},outcome="valid"})`,
            `sum(env_mode:paddock_groups:rate5m{${ENV_MODE}})`,
          ),
        ],
        GOOD_HIGH,
      ),
      panel(
        'stat',
        'Zero-variance',
        'percentunit',
        'Share of judged groups whose rewards are all the same. 30 to 50 % is usual.',
        [
          share(
            `sum(env_mode:paddock_groups:rate5m{${ENV_MODE},outcome="zero_variance"})`,
            `sum(env_mode:paddock_groups:rate5m{${ENV_MODE},outcome=~"valid|zero_variance"})`,
          ),
        ],
        GOOD_LOW,
      ),
      panel(
        'stat',
        'Infra failures',
        'percentunit',
        'Share of episodes that the machinery lost. They have no reward.',
        [
          share(
            sum(`paddock_episodes_finished_total{${ENV_MODE},outcome=~"infra_.*|timeout"}`),
            sum(`paddock_episodes_finished_total{${ENV_MODE}}`),
          ),
        ],
        {
          below: 'green',
          steps: [
            ['orange', 0.02],
            ['red', 0.1],
          ],
        },
      ),
      panel(
        'stat',
        'Contract violations / s',
        'cps',
        'Records that broke their contract. Any at all is a fault to mend.',
        [sum(`paddock_contract_violations_total{${ENV}}`)],
        { below: 'green', steps: [['red', 0.0001]] },
      ),
      panel(
        'stat',
        'Tokens wasted',
        'percentunit',
        'Share of the sampled tokens whose group carries no gradient.',
        [
          `1 - ${share(sum(`paddock_cost_tokens_total{${ENV_MODE},outcome="valid"}`), sum(`paddock_cost_tokens_total{${ENV_MODE}}`))}`,
        ],
        GOOD_LOW,
      ),
      panel(
        'stat',
        'Steps since checkpoint',
        'short',
        'Training steps that would be lost now; all of them where the trainer has told of no checkpoint.',
        [
          'max(paddock_trainer_step - (paddock_trainer_checkpoint_step or 0 * paddock_trainer_step))',
        ],
        {
          below: 'green',
          steps: [
            ['orange', 20],
            ['red', 50],
          ],
        },
      ),
    ],
  },
  {
    title: 'Groups and rewards',
    panels: [
      panel('timeseries', 'Groups by outcome', 'ops', 'What became of the groups that finished.', [
        q('{{outcome}}', sumBy('outcome', `paddock_groups_finished_total{${ENV_MODE}}`)),
      ]),
      panel(
        'timeseries',
        'Reward mean and std',
        'short',
        'Over scored episodes, one each, whatever their number of turns.',
        [
          q('mean {{env}} {{mode}}', `env_mode:paddock_reward:mean5m{${ENV_MODE}}`),
          q('std {{env}} {{mode}}', `env_mode:paddock_reward:std5m{${ENV_MODE}}`),
        ],
      ),
      panel('heatmap', 'Reward distribution', 'short', 'Rewards of scored episodes.', [
        q('{{le}}', `sum by (le) (increase(paddock_reward_bucket{${ENV_MODE}}${INTERVAL}))`),
      ]),
      panel(
        'heatmap',
        'Within-group reward std',
        'short',
        'The lowest row is groups without a gradient.',
        [
          q(
            '{{le}}',
            `sum by (le) (increase(paddock_group_reward_std_bucket{${ENV_MODE}}${INTERVAL}))`,
          ),
        ],
      ),
      panel(
        'timeseries',
        'Zero variance: floor, mid, ceiling',
        'percentunit',
        'Floor: too hard, or broken. Ceiling: too easy. Mid: the grader or the sampling.',
        [
          q(
            '{{level}}',
            `${sumBy('level', `paddock_groups_zero_variance_total{${ENV_MODE}}`)} / on () group_left () (${sum(`paddock_groups_finished_total{${ENV_MODE},outcome=~"valid|zero_variance"}`)} > 0)`,
          ),
        ],
      ),
      panel(
        'timeseries',
        'Component std',
        'short',
        'Spread of each reward component over episodes.',
        [q('{{env}} {{component}}', `env_component:paddock_reward_component:std5m{${ENV}}`)],
      ),
      panel(
        'timeseries',
        'Component flat in group',
        'percentunit',
        'Share of groups in which the component says nothing.',
        [
          q(
            '{{env}} {{component}}',
            `env_component:paddock_reward_component_flat:ratio_rate5m{${ENV}}`,
          ),
        ],
        { below: 'green', steps: [['red', 0.98]] },
      ),
    ],
  },
  {
    title: 'Contract, parser, sampling',
    panels: [
      panel(
        'table',
        'Contract violations by field (range)',
        'short',
        'Which field, in which way, how often in the range shown.',
        [
          `topk(15, sum by (env, field, kind) (increase(paddock_contract_violations_total{${ENV}}[$__range])) > 0)`,
        ],
      ),
      panel('timeseries', 'Parser errors / turn', 'percentunit', 'Refused tool calls by code.', [
        q(
          '{{code}}',
          `${sumBy('code', `paddock_parser_errors_total{${ENV}}`)} / on () group_left () (${sum(`paddock_parser_turns_total{${ENV}}`)} > 0)`,
        ),
      ]),
      panel(
        'timeseries',
        'Distinct completions in group (mean)',
        'percentunit',
        'Below: does the temperature act at all? Openings differ before whole answers do.',
        [
          q(
            'distinct {{env}}',
            share(
              sumBy('env', `paddock_group_distinct_ratio_sum{${ENV_MODE}}`),
              sumBy('env', `paddock_group_distinct_ratio_count{${ENV_MODE}}`),
            ),
          ),
          q('openings {{env}}', `avg by (env) (paddock_first_token_distinct_ratio{${ENV_MODE}})`),
        ],
        GOOD_HIGH,
      ),
    ],
  },
  {
    title: 'Cost',
    panels: [
      panel(
        'timeseries',
        'Completion tokens by outcome',
        'short',
        'Sampled tokens a second, by what their group came to.',
        [q('{{outcome}}', sumBy('outcome', `paddock_cost_tokens_total{${ENV_MODE}}`))],
      ),
      panel(
        'timeseries',
        'Tokens per valid group',
        'short',
        'What one group with a gradient costs.',
        [
          share(
            sum(`paddock_cost_tokens_total{${ENV_MODE}}`),
            sum(`paddock_groups_finished_total{${ENV_MODE},outcome="valid"}`),
          ),
        ],
      ),
      panel(
        'timeseries',
        'Seconds by outcome',
        'short',
        'Backend and thread seconds a second, by what their group came to.',
        [q('{{outcome}}', sumBy('outcome', `paddock_cost_seconds_total{${ENV}}`))],
      ),
      panel(
        'timeseries',
        'Share of token budget spent',
        'percentunit',
        'Where what runs has a budget: all tokens, and those of valid groups.',
        [
          q('spent', 'sum(paddock_cost_tokens_total) / (max(paddock_budget_tokens_limit) > 0)'),
          q(
            'on valid groups',
            'sum(paddock_cost_tokens_total{outcome="valid"}) / (max(paddock_budget_tokens_limit) > 0)',
          ),
        ],
      ),
      panel(
        'state-timeline',
        'Admission paused',
        'short',
        '1 while no new group starts for this reason.',
        [q('{{reason}}', 'max by (reason) (paddock_admission_paused)')],
      ),
    ],
  },
]
