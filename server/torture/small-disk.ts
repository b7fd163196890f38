// A disk of a few megabytes, for what happens when it is full. Mounting one needs root.
import { execFile } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { promisify } from 'node:util'

const run = promisify(execFile)

export interface SmallDisk {
  /** Makes room, as an operator would. */
  grow(): Promise<void>
  close(): Promise<void>
}

/** Mounts a tmpfs at the folder; rejects with mount's own words where it may not. */
export async function openDisk(folder: string, megabytes: number): Promise<SmallDisk> {
  let size = megabytes
  await mkdir(folder, { recursive: true })
  await run('mount', ['-t', 'tmpfs', '-o', `size=${size}m`, 'tmpfs', folder])
  return {
    async grow() {
      size += megabytes
      await run('mount', ['-o', `remount,size=${size}m`, folder])
    },
    async close() {
      await run('umount', [folder])
    },
  }
}
