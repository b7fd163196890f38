// A transcript from a file: {steps}, each a call or a message in the form that task specs have.
import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import type { SpecStep } from '../../envs/office/spec.ts'
import { PaddockError } from '../../protocol/errors.ts'
import { isPlainObject } from '../../protocol/json.ts'
import { parseJsonBody } from '../../protocol/json-body.ts'

/** Taken as it is: what a policy wrote may hold keys that no schema would keep, such as __proto__. */
const args = z.custom<Record<string, never>>(isPlainObject, 'expected an object')

const stepSchema = z.union(
  [
    z.strictObject({ call: z.string(), args, expect_error: z.string().optional() }),
    z.strictObject({
      say: z.string(),
      expect_user: z.string().optional(),
      expect_end: z.string().optional(),
    }),
  ],
  'expected {call, args, expect_error?} or {say, expect_user?, expect_end?}',
)

/** As in a spec, a transcript may have a note and what it should score beside its steps. */
const transcriptSchema = z.object({ steps: z.array(stepSchema) })

/** Throws `invalid_request` that names the file and the step. */
export async function readTranscriptFile(path: string): Promise<SpecStep[]> {
  const bytes = await readFile(path).catch((cause: Error) => {
    throw new PaddockError('invalid_request', `${path} cannot be read: ${cause.message}`, { cause })
  })
  const checked = transcriptSchema.safeParse(parsed(path, bytes))
  if (checked.success) return checked.data.steps
  const [issue] = checked.error.issues
  const at = issue?.path.join('.') || 'transcript'
  throw new PaddockError('invalid_request', `${path}: ${at}: ${issue?.message}`, { path: at })
}

function parsed(path: string, bytes: Uint8Array): unknown {
  try {
    return parseJsonBody(bytes, { anyKeys: true })
  } catch (cause) {
    throw new PaddockError('malformed_json', `${path}: ${(cause as Error).message}`, { cause })
  }
}
