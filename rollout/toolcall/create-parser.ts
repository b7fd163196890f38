// The entry: a parser of one turn's text for a format, fed in chunks of any size.
import { readContent } from './content.ts'
import { Draft } from './draft.ts'
import { hermesForm } from './hermes.ts'
import { readFncall, readReact } from './legacy.ts'
import type { Delta, FinishReason, ParsedTurn, ParserOptions, TurnParser } from './parser.ts'
import { qwen3CoderForm } from './qwen3-coder.ts'
import { readReasoning } from './reasoning.ts'
import { type Reader, Source } from './source.ts'
import { Toolbox } from './toolbox.ts'

/**
 * A parser of one turn. Every split of the text into chunks gives the same result, in time linear in the text. Deltas
 * may lag behind the text: a call is sent when its block is closed and found good, since only then can it not be
 * refused any more. No text makes it throw; what is wrong with a text stands in `errors`.
 */
export function createParser(options: ParserOptions): TurnParser {
  const source = new Source()
  const draft = new Draft()
  const reader = readTurn(source, draft, options)
  let isDone = false
  const run = () => {
    if (!isDone) isDone = reader.next().done === true
  }
  return {
    feed(chunk: string): Delta[] {
      source.append(chunk)
      run()
      return draft.takeDeltas()
    },
    end(finish: FinishReason): ParsedTurn {
      source.end(finish)
      run()
      return draft.finish()
    },
  }
}

function* readTurn(source: Source, draft: Draft, options: ParserOptions): Reader<void> {
  const { format, thinking } = options
  const toolbox = new Toolbox(options.tools)
  const isKnown = (name: string) => toolbox.has(name)
  const begin = yield* readReasoning(
    source,
    draft,
    thinking,
    options.thinkingEndsAtToolCall === true,
  )
  if (format === 'qwen-fncall') return yield* readFncall(source, draft, begin, isKnown)
  if (format === 'react') return yield* readReact(source, draft, begin, isKnown)
  const form = format === 'hermes' ? hermesForm(isKnown, options) : qwen3CoderForm(toolbox, options)
  yield* readContent(source, draft, form, begin, thinking !== 'none')
}
