// Where a command writes: the process's own streams, or a test's.
import type { Writable } from 'node:stream'

/** Answers go to `stdout`, everything that is said about them to `stderr`. */
export interface Streams {
  stdout: Writable
  stderr: Writable & { isTTY?: boolean }
}
