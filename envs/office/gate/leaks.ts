// V07: nothing that is to be found out stands in what the model reads first.
import { isPlainObject, type JsonObject, type JsonValue } from '../../../protocol/json.ts'
import type { TaskProblem } from '../../environment.ts'
import type { Fields } from '../catalogue/derive.ts'
import { entityNamed, TOOLS } from '../catalogue/registry.ts'
import { toList } from '../grading/evidence.ts'
import { normalised } from '../grading/text.ts'
import { shown } from '../kernel/values.ts'
import { openingMessages } from '../prompt.ts'
import type { Check, TaskSpec } from '../spec.ts'
import { problem } from './problem.ts'

/**
 * Hidden strings and graded ids that the opening messages give away. Tool definitions are not searched: they are the
 * same for every task of these services, so what they say gives nothing of one away.
 */
export function leakProblems(spec: TaskSpec): TaskProblem[] {
  const shownFirst = normalised(
    openingMessages(spec)
      .map(({ content }) => content)
      .join('\n'),
  )
  const graded = new Set(spec.grading.completion.flatMap((check) => gradedIds(check)))
  return [
    ...spec.hidden.flatMap((hidden, i) =>
      shownFirst.includes(normalised(hidden))
        ? [problem('V07', `hidden[${i}]`, 'to be absent from the first messages', shown(hidden))]
        : [],
    ),
    ...[...graded]
      .filter((id) => holdsWord(shownFirst, normalised(id)))
      .map((id) =>
        problem(
          'V07',
          'grading.completion',
          'graded ids to be absent from the first messages',
          shown(id),
        ),
      ),
  ]
}

/** True where text holds the word as such and not as part of a longer one (PE-1 is not in PE-10). */
function holdsWord(text: string, word: string): boolean {
  const isPart = (character: string | undefined) => /[\p{L}\p{N}]/u.test(character ?? '')
  for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + 1))
    if (!isPart(text[at - 1]) && !isPart(text[at + word.length])) return true
  return false
}

/** Ids of records that a completion check asks for. */
function gradedIds(check: Check): string[] {
  switch (check.kind) {
    case 'read':
      return check.ids
    case 'state':
      return idsWithin(check.where, entityNamed(check.entity).fields)
    case 'call':
      return toList(check.tool).flatMap((tool) => idsWithin(check.args, TOOLS.get(tool)!.params))
    case 'cover':
      return check.items.flatMap((item) => {
        if (check.source === 'calls')
          return toList(check.tool!).flatMap((tool) => idsWithin(item, TOOLS.get(tool)!.params))
        return idsWithin(item, entityNamed(check.entity!).fields)
      })
    case 'all':
    case 'any':
    case 'mean':
      return check.of.flatMap(gradedIds)
    case 'best':
      return check.of.flatMap((option) => gradedIds(option.check))
    default:
      return []
  }
}

/** Literals that conditions ask of fields which hold an id or a reference. */
function idsWithin(where: JsonObject = {}, fields: Fields): string[] {
  return Object.entries(where).flatMap(([name, condition]) => {
    const type = fields.get(name)?.t
    if (type !== 'id' && type !== 'ref') return []
    const wanted = isPlainObject(condition) ? [condition.eq, condition.in] : [condition]
    return (wanted as (JsonValue | undefined)[]).flat().filter((one) => typeof one === 'string')
  })
}
