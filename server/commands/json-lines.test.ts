// JSON Lines: any cut of the input gives the same answers, and a slow reader is waited for.
import { Writable } from 'node:stream'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { PaddockError } from '../../protocol/errors.ts'
import { type Answer, answerLines, MAX_LINE_BYTES } from './json-lines.ts'

async function run(chunks: Uint8Array[], answer: Answer = (line) => ({ got: line })) {
  const written: string[] = []
  const output = new Writable({
    decodeStrings: false,
    write(text: string, _encoding, done) {
      written.push(text)
      done()
    },
  })
  async function* input() {
    yield* chunks
  }
  const unread = await answerLines(input(), output, answer)
  return { written, unread }
}

test('any cut of the bytes into chunks gives the same answers', async () => {
  const text = Buffer.from('{"a":"é"}\n\n{"b":"😀"}\r\nnope\n{"c":1}')
  const whole = await run([text])
  expect(whole.unread).toBe(1)
  expect(whole.written.slice(0, 2)).toEqual(['{"got":{"a":"é"}}\n', '{"got":{"b":"😀"}}\n'])
  expect(whole.written).toHaveLength(4)
  const cut = fc.uniqueArray(fc.nat(text.length), { maxLength: 12 })
  await fc.assert(
    fc.asyncProperty(cut, async (places) => {
      const edges = [0, ...places.sort((a, b) => a - b), text.length]
      const chunks = edges.slice(1).map((end, index) => text.subarray(edges[index], end))
      expect(await run(chunks)).toEqual(whole)
    }),
  )
})

test('a line that is no question is answered by its id or name, with its number', async () => {
  const { written, unread } = await run([Buffer.from('{"id":7}\n\n{"name":"a"}\n')], () => {
    throw new PaddockError('invalid_request', 'format: expected one of hermes')
  })
  expect(unread).toBe(2)
  const error = { code: 'invalid_request', message: 'line 1: format: expected one of hermes' }
  expect(JSON.parse(written[0]!)).toEqual({ id: 7, error })
  expect(JSON.parse(written[1]!)).toMatchObject({ name: 'a' })
})

test('a fault is not taken for a line that cannot be read', async () => {
  const fault = run([Buffer.from('{}\n')], () => {
    throw new TypeError('a bug')
  })
  await expect(fault).rejects.toThrow('a bug')
})

test('a line over the limit is refused and the next one answered', async () => {
  const megabyte = Buffer.alloc(1024 * 1024, 'x')
  const chunks = Array.from({ length: MAX_LINE_BYTES / megabyte.length + 1 }, () => megabyte)
  const { written, unread } = await run([...chunks, Buffer.from('\n{}\n')])
  expect(JSON.parse(written[0]!).error.code).toBe('body_too_large')
  expect(written[1]).toBe('{"got":{}}\n')
  expect(unread).toBe(1)
})

test('nothing is read ahead of a reader that does not take its answers', async () => {
  let asked = 0
  async function* input() {
    for (; asked < 1000; asked++) yield Buffer.from(`{"n":${asked}}\n`)
  }
  const untaken: (() => void)[] = []
  const output = new Writable({
    highWaterMark: 1,
    write(_chunk, _encoding, done) {
      untaken.push(done)
    },
  })
  const finished = answerLines(input(), output, (line) => line)
  // Each turn of the event loop could have read a line.
  for (let turn = 0; turn < 100; turn++) await new Promise(setImmediate)
  expect(asked).toBeLessThan(3)
  for (let taken = 0; taken < 1000; taken++) {
    untaken.shift()?.()
    await new Promise(setImmediate)
  }
  expect(await finished).toBe(0)
})
