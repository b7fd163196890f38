// `paddock parse`: the tool-call parser over JSON Lines.
import { answerParse } from '../../rollout/toolcall/answer.ts'
import { runLines } from './json-lines.ts'

export function parse(): Promise<void> {
  return runLines(answerParse, { anyKeys: true })
}
