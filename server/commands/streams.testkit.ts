// For tests: streams that keep what a command writes.
import { Writable } from 'node:stream'
import type { Streams } from './streams.ts'

/** Streams and what has been written to them so far. */
export function keptStreams(): { streams: Streams; out(): string; err(): string } {
  const [stdout, stderr] = [keeping(), keeping()]
  return { streams: { stdout, stderr }, out: () => stdout.text, err: () => stderr.text }
}

function keeping(): Writable & { text: string } {
  const stream = new Writable({
    write(chunk, _encoding, done) {
      stream.text += String(chunk)
      done()
    },
  }) as Writable & { text: string }
  stream.text = ''
  return stream
}
