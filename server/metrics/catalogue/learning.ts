// Metrics of what is learned from: groups, sampling, episodes, rewards, contract, parser, drift.
import {
  counter,
  EPISODE_SECONDS,
  gauge,
  gaugeOnceKnown,
  histogram,
  STEP_SECONDS,
} from './definition.ts'

const RATIO = [0, 0.25, 0.5, 0.75, 0.9, 0.999, 1]

export const GROUPS = {
  groups_started_total: counter('env mode', 'groups', 'Groups of which a first attempt began'),
  groups_finished_total: counter(
    'env mode outcome:group_outcome',
    'groups',
    'Groups by verdict, exactly one each; `valid` are those with variance',
  ),
  groups_in_flight: gauge('env mode', 'groups', 'Groups started minus groups finished'),
  groups_zero_variance_total: counter(
    'env mode level',
    'groups',
    'Zero-variance groups by where the common reward sits: floor (too hard or broken), ceiling (too easy), mid',
  ),
  group_reward_std: histogram(
    'env mode',
    'reward',
    [1e-8, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2],
    'Population std of the reward inside one group; exact zeros have a counter of their own',
  ),
  group_scored_ratio: histogram(
    'env mode',
    'ratio',
    RATIO,
    'Scored episodes divided by group size, per finished group',
  ),
  group_duration_seconds: histogram(
    'env mode',
    'seconds',
    EPISODE_SECONDS,
    'First attempt of a group to its verdict',
  ),
} as const

export const SAMPLING = {
  group_distinct_ratio: histogram(
    'env mode',
    'ratio',
    [0.126, 0.25, 0.5, 0.75, 0.9, 0.999, 1],
    'Distinct completions divided by scored episodes, per group of at least two at a temperature above 0',
  ),
  groups_identical_total: counter(
    'env mode',
    'groups',
    'Groups at a temperature above 0 whose completions are all identical and not trivially short: greedy_suspect',
  ),
  sampling_mismatch_total: counter(
    'backend param:sampling_param',
    'requests',
    'The backend echoed another sampling parameter than it was asked for',
  ),
  sampled_logprob: histogram(
    'env mode',
    'nats',
    [-8, -4, -2, -1, -0.5, -0.25, -0.1, -0.01, -0.0001, 0],
    'Mean log-probability of the sampled tokens of an episode; a hint only: engines that report untempered ones show no mass at 0 under greedy decoding',
  ),
  first_token_distinct_ratio: gaugeOnceKnown(
    'env mode',
    'ratio',
    'Distinct openings of the completions divided by scored episodes, mean over the latest groups',
  ),
} as const

export const EPISODES = {
  attempts_total: counter(
    'env mode outcome:episode_outcome',
    'attempts',
    'Attempts by outcome, those that are tried again too',
  ),
  attempt_tokens_total: counter(
    'env mode outcome:episode_outcome',
    'tokens',
    'Sampled tokens of attempts, by outcome',
  ),
  attempt_seconds_total: counter(
    'env mode outcome:episode_outcome',
    'seconds',
    'Seconds from start to seal of attempts, by outcome',
  ),
  episodes_finished_total: counter(
    'env mode outcome:episode_outcome',
    'episodes',
    'Episodes by the outcome of their last attempt; only ok and ok_truncated carry a reward',
  ),
  episode_retries_total: counter(
    'env outcome:episode_outcome',
    'attempts',
    'Attempts that failed and were tried again',
  ),
  episode_turns: histogram(
    'env mode',
    'turns',
    [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64],
    'Policy turns per finished episode',
  ),
  episode_samples_total: counter('env mode', 'samples', 'Training rows cut from finished episodes'),
  episode_completion_tokens: histogram(
    'env mode',
    'tokens',
    [64, 128, 256, 512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536, 131_072],
    'Sampled tokens per finished episode',
  ),
  episode_duration_seconds: histogram(
    'env mode',
    'seconds',
    EPISODE_SECONDS,
    "Start to end of an episode's last attempt",
  ),
} as const

export const REWARDS = {
  reward: histogram(
    'env mode',
    'reward',
    [-1, -0.5, -0.25, -0.1, 0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.999, 1, 2],
    'Scalar reward of scored episodes, one each; do not rate() its _sum, which falls when rewards are negative: use the three sums',
  ),
  reward_positive_sum_total: counter('env mode', 'reward', 'Sum of max(reward, 0)'),
  reward_negative_sum_total: counter('env mode', 'reward', 'Sum of max(-reward, 0)'),
  reward_squares_sum_total: counter(
    'env mode',
    'reward²',
    'Sum of reward squared; with the other sums gives mean and std over any window',
  ),
  reward_component_values_total: counter('env component', 'values', 'Values per reward component'),
  reward_component_positive_sum_total: counter('env component', 'reward', 'Sum of max(value, 0)'),
  reward_component_negative_sum_total: counter('env component', 'reward', 'Sum of max(-value, 0)'),
  reward_component_squares_sum_total: counter('env component', 'reward²', 'Sum of value squared'),
  reward_component_flat_groups_total: counter(
    'env component',
    'groups',
    'Judged groups in which the component had no variance',
  ),
  reward_component_missing_total: counter(
    'env component',
    'episodes',
    'Scored episodes in which the component is null',
  ),
  reward_duration_seconds: histogram(
    'env',
    'seconds',
    STEP_SECONDS,
    'Time of the grader per episode',
  ),
} as const

export const CONTRACT = {
  contract_violations_total: counter(
    'env field:contract_field kind:contract_kind',
    'records',
    'Records that broke their contract, by field and kind; alias: a known wrong name, as reward for score',
  ),
  contract_records_total: counter('env', 'records', 'Records checked against their contract'),
  canary_checks_total: counter(
    'result:canary_result',
    'groups',
    'First groups of a new combination of contract, graders, environment, backend and other models asked, by what their check came to',
  ),
  parser_turns_total: counter('env', 'turns', 'Turns parsed'),
  parser_errors_total: counter(
    'env code:parser_code',
    'turns',
    'Turns with a refusal of the tool-call parser, by code',
  ),
  parser_flags_total: counter(
    'env flag:parser_flag',
    'turns',
    'Turns with a fact that the tool-call parser reports of what it took',
  ),
  parser_leniencies_total: counter(
    'env leniency:parser_leniency',
    'turns',
    'Turns in which a lenient reading that the batch asked for made a difference',
  ),
  control_tokens_total: counter(
    'env',
    'observations',
    'Observations that spelled out a control token',
  ),
  drift_total: counter(
    'env cause:drift_cause',
    'cuts',
    'Token chains cut since a prompt did not extend them, by cause',
  ),
  text_mismatch_total: counter(
    'env',
    'turns',
    'Turns whose text, as the backend gave it, is not what the sampled ids decode to',
  ),
} as const
