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

export function contractField({ field, kind }: Violation): LabelValue<'contract_field'> {
  const known = LABEL_LISTS.contract_field.find((name) => name === field)
  if (known) return known
  // Only a check of rewards names the kind; any other field of a reward record is one of its components.
  if (kind !== null) return 'components'
  return FIELD_WORDS.find(([words]) => words.test(field))?.[1] ?? 'other'
}

export function contractKind({ kind }: Violation): LabelValue<'contract_kind'> {
  return LABEL_LISTS.contract_kind.find((name) => name === kind) ?? 'other'
}
