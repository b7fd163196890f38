// A task file read as the gate takes it: a JSON object, or what is wrong with the file as a problem of that task.
import { readFile, stat } from 'node:fs/promises'
import type { TaskProblem } from '../../../envs/environment.ts'
import { PaddockError } from '../../../protocol/errors.ts'
import { isPlainObject, type JsonObject } from '../../../protocol/json.ts'
import { parseJsonBody } from '../../../protocol/json-body.ts'
import { MAX_BODY_BYTES } from '../../../protocol/limits.ts'

/** `file` is the path as it was asked for, or within the pack. */
export type TaskFile = { file: string; spec: JsonObject } | { file: string; problem: TaskProblem }

/** Reads the file at `path`, which is shown as `file`. Never throws: a file that cannot be read is a problem (V01). */
export async function readTaskFile(path: string, file: string): Promise<TaskFile> {
  try {
    const facts = await stat(path)
    if (!facts.isFile()) return unreadable(file, 'a file', 'something else, such as a folder')
    // As an inline spec, which comes in a request's body.
    if (facts.size > MAX_BODY_BYTES)
      return unreadable(file, `at most ${MAX_BODY_BYTES} bytes`, `${facts.size}`)
    const spec = parseJsonBody(await readFile(path))
    if (isPlainObject(spec)) return { file, spec: spec as JsonObject }
    return unreadable(file, 'a JSON object', Array.isArray(spec) ? 'a list' : typeof spec)
  } catch (error) {
    const why = (error as Error).message
    return error instanceof PaddockError
      ? unreadable(file, 'one JSON object with each key once', why)
      : unreadable(file, 'a file that can be read', why)
  }
}

/** A task that there is no spec of. */
export function unreadable(file: string, expected: string, found: string): TaskFile {
  const message = `V01 ${file}: expected ${expected}, found ${found}`
  return { file, problem: { rule: 'V01', path: '', expected, found, message } }
}
