// `paddock advantages`: the advantage estimators over JSON Lines.
import { PaddockError } from '../../protocol/errors.ts'
import { answerAdvantages } from '../../reward/answer.ts'
import { runLines } from './json-lines.ts'

/** That an estimator refuses its input is an answer; a line without a name asks nothing. */
export function advantages(): Promise<void> {
  return runLines((line) => {
    if (typeof line.name === 'string') return answerAdvantages(line)
    throw new PaddockError('invalid_request', 'name: expected a string')
  })
}
