// One process at a time on a ledger's folder: two that play the same batches would acknowledge groups twice.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PaddockError } from '../../protocol/errors.ts'

/**
 * Makes the folder where it is missing and takes it for this process; returns what gives it back. A lock whose process
 * is gone is taken over: kill -9 leaves one behind.
 */
export function lockFolder(folder: string): () => void {
  const file = join(folder, 'process.lock')
  try {
    mkdirSync(folder, { recursive: true })
    if (!take(file)) {
      const holder = holderOf(file)
      if (isAlive(holder))
        throw new PaddockError(
          'invalid_config',
          `ledger.path ${folder} is in use by process ${holder.split(' ')[0]}; stop that one, or name another folder`,
          { path: 'ledger.path' },
        )
      rmSync(file, { force: true })
      if (!take(file)) return lockFolder(folder)
    }
  } catch (cause) {
    if (cause instanceof PaddockError) throw cause
    throw new PaddockError(
      'invalid_config',
      `ledger.path ${folder} cannot be used: ${(cause as Error).message}`,
      { path: 'ledger.path', cause },
    )
  }
  return () => {
    if (holderOf(file) === name(process.pid)) rmSync(file, { force: true })
  }
}

/** Empty where nobody has it. */
function holderOf(file: string): string {
  try {
    return readFileSync(file, 'utf8').trim()
  } catch {
    return ''
  }
}

function take(file: string): boolean {
  try {
    writeFileSync(file, name(process.pid), { flag: 'wx' })
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

/** A process id comes again after a while, at once in a container: its start time does not. */
function name(pid: number): string {
  return `${pid} ${startOf(pid) ?? ''}`.trim()
}

function isAlive(holder: string): boolean {
  const pid = Number(holder.split(' ')[0])
  if (!Number.isSafeInteger(pid) || pid <= 0) return false
  if (pid === process.pid) return holder === name(pid)
  try {
    process.kill(pid, 0)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') return false
  }
  return holder === name(pid)
}

/** In clock ticks since boot; null where the system has no /proc. */
function startOf(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The second field, a name in parentheses, may hold blanks.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? null
  } catch {
    return null
  }
}
