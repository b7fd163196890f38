// How far a command is, for a person who waits: a bar with an estimate on a terminal, a line each tenth in a pipe.
import type { Writable } from 'node:stream'
import { SingleBar } from 'cli-progress'

export interface ProgressBar {
  update(done: number): void
  stop(): void
}

/** Counts `noun` (`Episodes`) up to `total`. */
export function progressBar(
  noun: string,
  total: number,
  stream: Writable & { isTTY?: boolean },
): ProgressBar {
  if (stream.isTTY) {
    const bar = new SingleBar({
      format: `${noun} {bar} {value}/{total}, {duration_formatted}, {eta_formatted} to go`,
      barCompleteChar: '█',
      barIncompleteChar: '░',
      hideCursor: true,
      stream: stream as NodeJS.WritableStream,
    })
    bar.start(total, 0)
    return { update: (done) => bar.update(done), stop: () => bar.stop() }
  }
  let told = -1
  return {
    update(done) {
      const tenth = Math.floor((10 * done) / total)
      if (tenth > told) stream.write(`${noun} ${done}/${total}\n`)
      told = Math.max(told, tenth)
    },
    stop: () => {},
  }
}
