// Why a prompt does not extend the token chain before it: the causes of the drift ledger.
import type { Sample } from '../../protocol/group.ts'
import type { DriftCause } from '../../protocol/turn-counts.ts'

/**
 * What each cause would explain: the texts agree once it is taken out of both. Tried in this order.
 *
 * `thinking_stripped`: reasoning of an earlier turn was taken out or put in. `json_spacing`: the JSON of a call was
 * written anew. `whitespace`: only white space differs. `template`: the text is the same and its ids are not, or what
 * the policy never sampled was written differently. `unknown`: none of these, or no tokenizer to tell.
 */
const NORMALISERS: [DriftCause, (text: string) => string][] = [
  ['template', (text) => text],
  ['json_spacing', compactCalls],
  ['whitespace', withoutWhitespace],
  ['thinking_stripped', (text) => withoutWhitespace(withoutThinking(text))],
  ['thinking_stripped', (text) => withoutWhitespace(compactCalls(withoutThinking(text)))],
  ['json_spacing', (text) => withoutWhitespace(compactCalls(text))],
]

/** The cause of a cut between a chain and a prompt that should have extended it. Pure comparison of texts. */
export function classifyCut(
  chain: Pick<Sample<Int32Array, Uint8Array>, 'ids' | 'mask'>,
  promptIds: Int32Array,
  decode: ((ids: Int32Array) => string) | null,
): DriftCause {
  if (decode === null) return 'unknown'
  const before = decode(chain.ids)
  const after = decode(promptIds)
  for (const [cause, normalise] of NORMALISERS) {
    if (normalise(after).startsWith(normalise(before))) return cause
  }
  const border = chain.ids.findIndex((id, index) => id !== promptIds[index])
  return chain.mask[border] === 0 ? 'template' : 'unknown'
}

/**
 * Without closed `<think>` blocks, and without what stands before a `</think>` whose opening tag is not there. No block
 * reaches over the next opening tag, which also keeps the search linear on text full of unclosed ones.
 */
function withoutThinking(text: string): string {
  return text
    .replace(/<think>(?:(?!<think>)[\s\S])*?<\/think>/g, '')
    .replace(/(<\|im_start\|>assistant\n)(?:(?!<\|im_(?:start|end)\|>)[\s\S])*?<\/think>/g, '$1')
}

function compactCalls(text: string): string {
  return text.replace(
    /<tool_call>((?:(?!<tool_call>)[\s\S])*?)<\/tool_call>/g,
    (whole, body: string) => {
      const json = compactJson(body)
      return json === null ? whole : `<tool_call>\n${json}\n</tool_call>`
    },
  )
}

function compactJson(text: string): string | null {
  try {
    return JSON.stringify(JSON.parse(text))
  } catch {
    return null
  }
}

function withoutWhitespace(text: string): string {
  return text.replace(/\s+/g, '')
}
