// A turn after its reasoning: runs of content with blocks between them, each block taken, refused or text after all.
import type { ParseFlag } from '../../protocol/parse-codes.ts'
import { type CallForm, THINK_CLOSE, THINK_OPEN } from './block.ts'
import type { Draft } from './draft.ts'
import { Passage } from './passage.ts'
import { type ContentStart, claimReasoning } from './reasoning.ts'
import type { Reader, Source } from './source.ts'
import { looksLikeCall } from './untagged.ts'

/** A run of content and what was noticed in it; that counts only if the run stays content. */
interface Run {
  passage: Passage
  flags: Set<ParseFlag>
  /** The first closing tag in it that closes nothing. */
  stray: { tag: string; at: number } | null
}

/** Reads content and calls to the end of the message. `thinks`: whether think tags mean anything. */
export function* readContent(
  source: Source,
  draft: Draft,
  form: CallForm,
  begin: ContentStart,
  thinks: boolean,
): Reader<void> {
  const tags = [...form.openers, ...form.closers, ...(thinks ? [THINK_OPEN, THINK_CLOSE] : [])]
  let { undecided } = begin
  let run = openRun(source, draft, begin.at, begin.touches)
  for (let at = begin.at; ; ) {
    const grow = undecided ? undefined : (to: number) => run.passage.grow(to)
    const found = yield* source.nextTag(at, tags, grow)
    if (found === null) break
    const { tag } = found
    at = found.at + tag.length
    if (tag === THINK_CLOSE && undecided) {
      claimReasoning(source, draft, found.at)
      undecided = false
      run = openRun(source, draft, at, true)
    } else if (tag === THINK_CLOSE) run.flags.add('STRAY_THINK_CLOSE')
    else if (tag === THINK_OPEN) run.flags.add('THINK_NOT_AT_START')
    else if (form.closers.includes(tag)) run.stray ??= found
    else {
      const block = yield* form.readBlock(source, found.at, run.passage.start)
      if (block.kind === 'text') {
        if (block.mention) run.flags.add('LITERAL_TAG')
        continue
      }
      undecided = false
      closeRun(source, draft, run, found.at, true)
      at = block.end
      if (block.kind === 'call') draft.take(block.call, found.at, at)
      else draft.refuse(block.refusal, found.at, at)
      run = openRun(source, draft, at, true)
    }
  }
  if (source.partialTagStart(run.passage.start, tags) >= 0) run.flags.add('PARTIAL_TAG')
  closeRun(source, draft, run, source.length, false)
  if (looksLikeCall(draft.content ?? '')) draft.flags.add('UNTAGGED_CALL')
}

function openRun(source: Source, draft: Draft, at: number, touches: boolean): Run {
  const passage = new Passage(source, at, touches, draft.contentRun())
  return { passage, flags: new Set(), stray: null }
}

function closeRun(source: Source, draft: Draft, run: Run, end: number, touches: boolean): void {
  run.passage.end(end, touches)
  for (const flag of run.flags) draft.flags.add(flag)
  if (run.stray !== null && !run.flags.has('LITERAL_TAG')) {
    const { tag, at } = run.stray
    const message = `expected an opening tag before ${tag}, came none: nothing was closed; write each call whole`
    draft.report({ code: 'STRAY_CLOSE_TAG', message }, at, at + tag.length)
  }
  const fences = source.slice(run.passage.start, end).match(/^[ \t]*```+[^`\n]*$/gm)?.length ?? 0
  if (fences % 2 === 1) draft.insideFence = !draft.insideFence
}
