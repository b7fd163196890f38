// The closed lists of how an episode and a group can end, and the law that ties rewards to them.

/** How an episode ended, in the order in which the first that applies wins. */
export const EPISODE_OUTCOMES = [
  'aborted',
  'contract_violation',
  'infra_store',
  'infra_worker',
  'infra_backend',
  'infra_tool',
  'infra_env',
  'timeout',
  'verifier_error',
  'parse_error',
  'ok_truncated',
  'ok',
] as const
export type EpisodeOutcome = (typeof EPISODE_OUTCOMES)[number]

/** How a group ended. `infra` stands for every `infra_*` of its episodes. */
export const GROUP_VERDICTS = [
  'valid',
  'zero_variance',
  'partial',
  'contract_violation',
  'verifier_error',
  'parse_error',
  'infra',
  'timeout',
  'aborted',
] as const
export type GroupVerdict = (typeof GROUP_VERDICTS)[number]

/** Where the common reward of a zero-variance group sits in the contract's range. */
export const LEVELS = ['floor', 'mid', 'ceiling'] as const
export type Level = (typeof LEVELS)[number]

/** What became of a finished group: how it left the ready store. */
export const SETTLEMENTS = ['acked', 'stale', 'nacked', 'undeliverable', 'dropped'] as const
export type Settlement = (typeof SETTLEMENTS)[number]

/** True for the two outcomes that carry a reward; every other outcome has reward null. */
export function isScored(outcome: EpisodeOutcome): boolean {
  return outcome === 'ok' || outcome === 'ok_truncated'
}
