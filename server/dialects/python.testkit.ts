// Runs a Python program of testdata/ as a trainer would: its standard output as JSON lines, and its exit.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'

export interface PythonProgram<Line> {
  /** Lines as they come. */
  lines: AsyncIterable<Line>
  /** All lines, once it has exited with 0. Throws with its standard error for another exit. */
  done: Promise<Line[]>
}

export function python<Line>(
  program: string,
  flags: readonly (string | number)[],
  input = '',
): PythonProgram<Line> {
  const path = fileURLToPath(new URL(`testdata/${program}.py`, import.meta.url))
  const child = spawn('python3', ['-W', 'error', path, ...flags.map(String)], {
    env: { ...process.env, PYTHONDONTWRITEBYTECODE: '1' },
  })
  child.stdin.end(input)
  const all: Line[] = []
  const waiting = new Set<() => void>()
  let over = false
  const wake = () => {
    for (const one of waiting) one()
    waiting.clear()
  }
  createInterface({ input: child.stdout }).on('line', (line) => {
    all.push(JSON.parse(line) as Line)
    wake()
  })
  const done = Promise.all([text(child.stderr), once(child, 'close')]).then(([errors, [code]]) => {
    over = true
    wake()
    if (code !== 0) throw new Error(`${program} ended with ${code}:\n${errors.slice(-4000)}`)
    return all
  })
  async function* lines() {
    for (let at = 0; ; at++) {
      while (at >= all.length && !over)
        await new Promise<void>((resolve) => waiting.add(() => resolve()))
      if (at >= all.length) return
      yield all[at] as Line
    }
  }
  return { lines: lines(), done }
}
