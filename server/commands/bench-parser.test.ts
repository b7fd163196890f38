// The parser's bench: every way of reading is measured on every text, in both forms of output.
import { expect, test } from 'vitest'
import { benchParser } from './bench-parser.ts'
import { keptStreams } from './streams.testkit.ts'

test('MB/s of both formats, whole and in chunks, stand beside the plain pass; ids/s of the tokenizer', async () => {
  const { streams, out } = keptStreams()
  await benchParser({ rounds: 1, milliseconds: 1, json: true }, streams)
  const { parser, ids_per_s } = JSON.parse(out())
  expect(parser.map(({ format, text }: Record<string, string>) => `${format} ${text}`)).toEqual([
    'hermes turns',
    'hermes one 1 MB argument',
    'qwen3-coder turns',
    'qwen3-coder one 1 MB argument',
  ])
  for (const { mb_per_s } of parser) {
    expect(Object.keys(mb_per_s)).toEqual(['plain', 'whole', 'chunks'])
    for (const rate of Object.values(mb_per_s)) expect(rate).toBeGreaterThan(0)
  }
  expect(ids_per_s.encode).toBeGreaterThan(0)
  expect(ids_per_s.decode).toBeGreaterThan(0)
}, 60_000)
