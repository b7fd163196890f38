// The prompt file of a foreign request as a selection of tasks: JSON Lines in the configured folder, any other is ignored.
import { readFile, realpath, stat } from 'node:fs/promises'
import { isAbsolute, relative, resolve, sep } from 'node:path'
import { PaddockError } from '../../protocol/errors.ts'
import { isPlainObject } from '../../protocol/json.ts'
import type { SelectedTask } from './slime-start.ts'

/** A selection names tasks, it does not hold them. */
const MAX_BYTES = 64 * 2 ** 20

/**
 * Tasks in the order of the file's lines; null where the path is no file inside `folder`, as a path on the trainer's own
 * machine. A line names its task as `task`, or as slime's rows do, in `metadata.paddock`; the pack's name may be left
 * out. Throws PaddockError `invalid_request` with the number of a line that names none of `known`.
 */
export async function readSelection(
  folder: string | undefined,
  file: string | null | undefined,
  pack: string,
  known: ReadonlySet<string>,
): Promise<SelectedTask[] | null> {
  const path = folder && file ? await inside(folder, file) : null
  if (path === null) return null
  const lines = (await readFile(path, 'utf8')).split('\n')
  const tasks = lines.flatMap((line, index) =>
    line.trim() === '' ? [] : [readLine(line, index + 1, pack, known)],
  )
  if (tasks.length === 0) throw refusal('expected a line for each task, found an empty file')
  return tasks
}

async function inside(folder: string, file: string): Promise<string | null> {
  try {
    const root = await realpath(folder)
    const path = await realpath(resolve(root, file))
    const way = relative(root, path)
    if (way === '' || way.split(sep)[0] === '..' || isAbsolute(way)) return null
    const { size } = await stat(path).then((found) => (found.isFile() ? found : { size: -1 }))
    if (size > MAX_BYTES) throw refusal(`expected at most ${MAX_BYTES} bytes, found ${size}`)
    return size < 0 ? null : path
  } catch (error) {
    if (error instanceof PaddockError) throw error
    return null
  }
}

function readLine(
  line: string,
  number: number,
  pack: string,
  known: ReadonlySet<string>,
): SelectedTask {
  const row = parse(line, number)
  const metadata = isPlainObject(row.metadata) ? row.metadata : {}
  const named = isPlainObject(metadata.paddock) ? metadata.paddock : row
  const { task, seed } = named as Record<string, unknown>
  const id = typeof task === 'string' && !task.includes('/') ? `${pack}/${task}` : task
  if (typeof id !== 'string' || !known.has(id))
    throw refusal(
      `line ${number}: expected "task", one of the pack ${pack} (GET /v1/tasks?pack=${pack}), found ${JSON.stringify(task) ?? 'none'}`,
    )
  if (seed !== undefined && !(Number.isSafeInteger(seed) && Number(seed) >= 0))
    throw refusal(`line ${number}: expected "seed" as a whole number from 0`)
  return { task: id, ...(seed !== undefined && { seed: Number(seed) }) }
}

function parse(line: string, number: number): Record<string, unknown> {
  try {
    const row: unknown = JSON.parse(line)
    if (isPlainObject(row)) return row
  } catch {
    // Told below, with the line's number.
  }
  throw refusal(`line ${number}: expected a JSON object`)
}

const refusal = (message: string): PaddockError =>
  new PaddockError('invalid_request', `input_file: ${message}`, { path: 'input_file' })
