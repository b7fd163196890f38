// `paddock new task`: a task of the office to start from, which passes the gate as it is.
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { PaddockError } from '../../protocol/errors.ts'
import type { Streams } from './streams.ts'
import { scaffold } from './task-scaffold.ts'

/** As the schema of task specs has it, and the name of a file. */
const TASK_ID = /^[a-z0-9][a-z0-9-]{0,99}$/

/** Writes `<folder>/<id>.json` and says where; a file that is there stays as it is. */
export async function newTask(
  id: string,
  { dir: folder, json = false }: { dir: string; json?: boolean },
  streams: Streams = process,
): Promise<void> {
  if (!TASK_ID.test(id))
    throw new PaddockError(
      'invalid_request',
      `expected an id of a to z, 0 to 9 and hyphens, at most 100, that begins with no hyphen; got ${JSON.stringify(id.slice(0, 120))}`,
    )
  const file = join(folder, `${id}.json`)
  await mkdir(folder, { recursive: true })
  await writeFile(file, `${JSON.stringify(scaffold(id), null, 2)}\n`, { flag: 'wx' }).catch(
    (cause: NodeJS.ErrnoException) => {
      const why = cause.code === 'EEXIST' ? 'is there already; choose another id' : cause.message
      throw new PaddockError('invalid_request', `${file} ${why}`, { cause })
    },
  )
  streams.stdout.write(`${json ? JSON.stringify({ file }) : file}\n`)
  streams.stderr.write(`Change it, then: paddock validate ${file}\n`)
}
