// The scripts a simulated policy plays: one task per line, with transcripts of what it may say turn by turn.
import { z } from 'zod'
import type { Conversation } from './conversation.ts'

const callSchema = z.object({ call: z.string(), args: z.record(z.string(), z.unknown()) })

/** Other keys (`expect_user`, `expect_error`) are for those who check transcripts, not for the policy. */
const stepSchema = z
  .object({
    say: z.string().optional(),
    call: z.string().optional(),
    args: z.record(z.string(), z.unknown()).default({}),
    calls: z.array(callSchema).optional(),
    /** The turn's exact text: no lead-in, no thinking, no tag form. */
    raw: z.string().optional(),
  })
  .refine((step) => step.say ?? step.call ?? step.calls ?? step.raw, {
    message: 'a step has say, call, calls or raw',
  })

const scriptSchema = z.object({
  id: z.string().optional(),
  match: z.string().min(1),
  transcripts: z.record(z.string(), z.object({ steps: z.array(stepSchema) })),
})

export type Step = z.output<typeof stepSchema>
export type Script = z.output<typeof scriptSchema>

/** Parses JSON Lines; blank lines are skipped. Throws with the line number of the first line that does not fit. */
export function parseScripts(text: string): Script[] {
  return text.split('\n').flatMap((line, index) => {
    if (line.trim() === '') return []
    try {
      return [scriptSchema.parse(JSON.parse(line))]
    } catch (cause) {
      const reason = cause instanceof z.ZodError ? z.prettifyError(cause) : String(cause)
      throw new Error(`scripts, line ${index + 1}: ${reason}`, { cause })
    }
  })
}

/**
 * Looks a task up by what the policy can see of it: the marker's first group (or whole match) against `id` or `match`;
 * else the first user message, equal to `match`; else a prompt that contains `match`, the longest match first.
 */
export function createScriptFinder(
  scripts: readonly Script[],
  marker: RegExp | null,
): (conversation: Conversation) => Script | null {
  const byMatch = new Map(scripts.map((script) => [script.match.normalize('NFC').trim(), script]))
  const byId = new Map(scripts.flatMap((script) => (script.id ? [[script.id, script]] : [])))
  const longestFirst = [...byMatch].sort(([a], [b]) => b.length - a.length)
  return ({ text, firstUser }) => {
    // Control tokens are borders, so that \S+ does not run over the end of a message.
    const found = marker?.exec(text.replaceAll(/<\|im_(start|end)\|>/g, '\n'))
    if (found) {
      const mark = found[1] ?? found[0]
      const script = byId.get(mark) ?? byMatch.get(mark)
      if (script) return script
    }
    return (
      byMatch.get(firstUser.trim()) ??
      longestFirst.find(([match]) => text.includes(match))?.[1] ??
      null
    )
  }
}
