// Which of the closed labels a contract violation is counted under: its field may be anyone's, its series may not.
import type { EpisodeHeader } from '../../protocol/sealed.ts'
import { LABEL_LISTS, type LabelValue } from './labels.ts'

type Violation = NonNullable<EpisodeHeader['violation']>

/** Words in the names of backends' fields, and what they are about. */
const FIELD_WORDS: [RegExp, LabelValue<'contract_field'>][] = [
  [/logprob/, 'logprobs'],
  [/version/, 'policy_version'],
  [/ids|tokens/, 'tokens'],
  [/content|reasoning|choices|text/, 'messages'],
]

/** The sampling parameter that was not taken as asked; null for every other violation. */
export function samplingParam({ field, kind }: Violation): LabelValue<'sampling_param'> | null {
  if (kind !== null) return null
  if (/^max_\w*tokens$/.test(field)) return 'max_tokens'
  if (field === 'sampling_seed') return 'seed'
  return LABEL_LISTS.sampling_param.find((name) => name !== 'other' && name === field) ?? null
}

export function contractField(violation: Violation): LabelValue<'contract_field'> {
  if (samplingParam(violation)) return 'sampling'
  const { field, kind } = violation
  const known = LABEL_LISTS.contract_field.find((name) => name === field)
  if (known) return known
  // Only a check of rewards names the kind; any other field of a reward record is one of its components.
  if (kind !== null) return 'components'
  return FIELD_WORDS.find(([words]) => words.test(field))?.[1] ?? 'other'
}

export function contractKind({ kind }: Violation): LabelValue<'contract_kind'> {
  return LABEL_LISTS.contract_kind.find((name) => name === kind) ?? 'other'
}
