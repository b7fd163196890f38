import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createProgram, readOptions } from './flags.ts'
import { DEFAULTS } from './options.ts'

const read = (...flags: string[]) => {
  const program = createProgram()
    .exitOverride()
    .configureOutput({ writeErr: () => {} })
  return readOptions(program, flags)
}

test('without a flag the defaults hold', async () => {
  expect(await read()).toEqual(DEFAULTS)
})

test('flags become options', async () => {
  const flags = [
    ...[
      '--port',
      '8001',
      '--model',
      'tiny',
      '--version',
      '7',
      '--seed',
      '3',
      '--fallback-seed',
      '0',
    ],
    ...['--mix', 'correct=0.6,prose=0.4', '--format', 'qwen3-coder', '--thinking', '--prepared'],
    ...['--latency', 'lognormal:200,0.5', '--marker', 'task (\\S+)', '--logprobs-mode', 'raw'],
  ]
  expect(await read(...flags)).toEqual({
    ...DEFAULTS,
    port: 8001,
    model: 'tiny',
    weightVersion: '7',
    seed: 3,
    fallbackSeed: 0,
    style: { format: 'qwen3-coder', thinking: true, mix: { correct: 0.6, prose: 0.4 } },
    prepared: true,
    latency: { kind: 'lognormal', medianMs: 200, sigma: 0.5 },
    marker: /task (\S+)/,
    logprobsMode: 'raw',
  })
})

test('faults are collected, and their targets hold for all of them', async () => {
  const faults = ['--fault', '503=0.25', '--fault', 'abort', '--fault-turns', '1,2']
  const targets = ['--fault-match', 'secret', '--fault-after', '60', '--fault-times', '1']
  const target = { turns: [1, 2], match: 'secret', after: 60, times: 1 }
  expect((await read(...faults, ...targets)).faults).toEqual([
    { kind: '503', rate: 0.25, ...target },
    { kind: 'abort', rate: 1, ...target },
  ])
})

test.each([
  [['--fault', 'earthquake=1'], 'KIND=RATE'],
  [['--fault', '500=2'], 'a rate up to 1'],
  [['--mix', 'correct'], 'name=weight'],
  [['--latency', 'soon'], 'lognormal:MEDIAN_MS,SIGMA'],
  [['--latency', '0.3'], 'fixed:MS'],
  [['--port', 'x'], 'whole number'],
  [['--scripts', '/nowhere/scripts.jsonl'], 'ENOENT'],
  [['--format', 'react'], 'hermes'],
  [['--temperature', '1'], 'unknown option'],
])('%j is refused with what was expected', async (flags, said) => {
  await expect(read(...flags)).rejects.toThrow(said)
})

test('a mix of transcripts that no script has is refused with the names that there are', async () => {
  const file = join(mkdtempSync(join(tmpdir(), 'paddock-mix-')), 'scripts.jsonl')
  const steps = [{ say: 'Blue.' }]
  writeFileSync(file, JSON.stringify({ match: 'm', transcripts: { right: { steps } } }))
  await expect(read('--scripts', file, '--mix', 'right=1,nosuch=1')).rejects.toThrow(
    '--mix: expected right, malformed, truncated, prose; got nosuch',
  )
  expect((await read('--scripts', file, '--mix', 'right=1,prose=1')).style.mix).toEqual({
    ...{ right: 1, prose: 1 },
  })
  // The default names a transcript that need not be there.
  await read('--scripts', file)
})
