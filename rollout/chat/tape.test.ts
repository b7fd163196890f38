import { deserialize, serialize } from 'node:v8'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { emptyTape, extendTape, type SampledTurn, type Tape, tapeSamples } from './tape.ts'

const ids = (...list: number[]) => Int32Array.from(list)
const turn = (prompt: number[], sampled: number[], version: number | null = 1): SampledTurn => ({
  promptIds: ids(...prompt),
  ids: ids(...sampled),
  logprobs: Float32Array.from(sampled, (id) => -id / 8),
  versions: [{ version, count: sampled.length }],
})
const play = (...turns: SampledTurn[]): Tape =>
  turns.reduce((tape, each) => extendTape(tape, each).tape, emptyTape())

describe('extendTape', () => {
  test('a prompt that extends the chain is appended with mask 0, sampled ids with mask 1', () => {
    const tape = play(turn([1, 2], [3, 4]), turn([1, 2, 3, 4, 5], [6]))
    expect(tapeSamples(tape)).toEqual([
      {
        ids: ids(1, 2, 3, 4, 5, 6),
        mask: Uint8Array.of(0, 0, 1, 1, 0, 1),
        logprobs: Float32Array.of(0, 0, -3 / 8, -4 / 8, 0, -6 / 8),
        prompt_length: 2,
        versions: [
          { version: 1, start: 2, end: 4 },
          { version: 1, start: 5, end: 6 },
        ],
      },
    ])
  })

  test('a turn says where its sampled ids lie', () => {
    const first = extendTape(emptyTape(), turn([1, 2], [3, 4]))
    expect([first.turn, first.cut]).toEqual([{ sample: 0, start: 2, end: 4 }, null])
    const second = extendTape(first.tape, turn([9], [8]))
    expect([second.turn, second.cut]).toEqual([{ sample: 1, start: 1, end: 2 }, 'unknown'])
  })

  test('a prompt that spells a turn with fewer ids cuts the chain, and both samples stay whole', () => {
    const spelled = [522, 14172, 13429, 29]
    const tape = play(turn([1, 2], [...spelled, 151645]), turn([1, 2, 151658, 151645, 198], [7]))
    const [first, second] = tapeSamples(tape)
    expect(first?.ids).toEqual(ids(1, 2, ...spelled, 151645))
    expect(first?.mask).toEqual(Uint8Array.of(0, 0, 1, 1, 1, 1, 1))
    expect(second?.ids).toEqual(ids(1, 2, 151658, 151645, 198, 7))
    expect(second?.mask).toEqual(Uint8Array.of(0, 0, 0, 0, 0, 1))
  })

  test('a cut is classified by the decoder', () => {
    const decode = (list: Int32Array) => [...list].map((id) => (id === 3 ? ' ' : 'x')).join('')
    const { tape } = extendTape(emptyTape(), turn([1], [3, 1]))
    expect(extendTape(tape, turn([1, 1, 2], [4]), decode).cut).toBe('whitespace')
  })

  test('a turn that goes on after an abort joins its span where the version is the same', () => {
    const [sample] = tapeSamples(play(turn([1], [2, 3], 7), turn([1, 2, 3], [4], 7)))
    expect(sample?.versions).toEqual([{ version: 7, start: 1, end: 4 }])
  })

  test('a weight update in mid-turn is one border between two spans', () => {
    const { tape } = extendTape(emptyTape(), {
      ...turn([1], [2, 3, 4]),
      versions: [
        { version: 7, count: 2 },
        { version: 8, count: 1 },
      ],
    })
    expect(tapeSamples(tape)[0]?.versions).toEqual([
      { version: 7, start: 1, end: 3 },
      { version: 8, start: 3, end: 4 },
    ])
  })

  test('a version that was asked around the call is marked', () => {
    const versions = [{ version: 7, count: 1, approximate: true }]
    const { tape } = extendTape(emptyTape(), { ...turn([1], [2]), versions })
    expect(tapeSamples(tape)[0]?.versions).toEqual([
      { version: 7, start: 1, end: 2, approximate: true },
    ])
  })

  test('a first turn without ids leaves the prompt open until something is sampled', () => {
    const [sample] = tapeSamples(play(turn([1, 2], []), turn([1, 2, 3], [4])))
    expect(sample?.prompt_length).toBe(3)
  })

  test.each([
    ['a log-probability that is NaN', { logprobs: Float32Array.of(Number.NaN) }],
    ['an infinite log-probability', { logprobs: Float32Array.of(-Infinity) }],
    ['a missing log-probability', { logprobs: new Float32Array(0) }],
    ['version runs that do not add up', { versions: [{ version: 1, count: 2 }] }],
    [
      'a negative run',
      {
        versions: [
          { version: 1, count: 2 },
          { version: 1, count: -1 },
        ],
      },
    ],
  ])('%s does not get on the tape', (_, part) => {
    expect(() => extendTape(emptyTape(), { ...turn([1], [2]), ...part })).toThrow(
      expect.objectContaining({ code: 'internal' }),
    )
  })
})

/** A turn as a plan: whether its prompt extends what is there, and what it adds. */
const planned = fc.record({
  extend: fc.boolean(),
  bridge: fc.array(fc.nat(50), { maxLength: 4 }),
  sampled: fc.array(fc.nat(50), { maxLength: 5 }),
  version: fc.option(fc.nat(2)),
})

describe('whatever is played', () => {
  test('mask, log-probabilities, spans and places agree, and no sampled id is changed', () => {
    fc.assert(
      fc.property(fc.array(planned, { maxLength: 12 }), (plans) => {
        let tape = emptyTape()
        const places: { sample: number; start: number; sampled: number[] }[] = []
        for (const { extend, bridge, sampled, version } of plans) {
          const last = tape.samples.at(-1)
          // -1 is no id of any chain, so a prompt that begins with it extends none.
          const prompt = extend ? [...(last?.ids ?? []), ...bridge] : [-1, ...bridge]
          const extends_ = last === undefined || extend || startsWith(prompt, last.ids)
          const next = extendTape(tape, turn(prompt, sampled, version))
          expect(next.cut === null).toBe(extends_)
          expect(next.tape.samples.length).toBe(tape.samples.length + (last && extends_ ? 0 : 1))
          expect(next.turn.end - next.turn.start).toBe(sampled.length)
          places.push({ ...next.turn, sampled })
          tape = next.tape
        }
        checkSamples(tape, places)
        expect(structuredClone(tape)).toEqual(tape)
        expect(deserialize(serialize(tape))).toEqual(tape)
      }),
    )
  })

  test('the tape that was extended stays as it was', () => {
    const before = play(turn([1, 2], [3]))
    const copy = structuredClone(before)
    extendTape(before, turn([1, 2, 3, 4], [5]))
    extendTape(before, turn([9], [5]))
    expect(before).toEqual(copy)
  })
})

function startsWith(list: readonly number[], prefix: Int32Array): boolean {
  return prefix.every((id, index) => list[index] === id)
}

function checkSamples(
  tape: Tape,
  places: readonly { sample: number; start: number; sampled: number[] }[],
): void {
  for (const [number, sample] of tapeSamples(tape).entries()) {
    const length = sample.ids.length
    expect([sample.mask.length, sample.logprobs.length]).toEqual([length, length])
    const mask = new Uint8Array(length)
    for (const { start, sampled } of places.filter((place) => place.sample === number)) {
      expect([...sample.ids.slice(start, start + sampled.length)]).toEqual(sampled)
      mask.fill(1, start, start + sampled.length)
    }
    expect(sample.mask).toEqual(mask)
    const covered = new Uint8Array(length)
    for (const { start, end } of sample.versions) {
      expect(end).toBeGreaterThan(start)
      covered.fill(1, start, end)
    }
    expect(covered).toEqual(mask)
    const first = mask.indexOf(1)
    expect(sample.prompt_length).toBe(first < 0 ? length : first)
    for (const [index, logprob] of sample.logprobs.entries()) {
      expect(logprob).toBe(mask[index] ? Math.fround(-(sample.ids[index] as number) / 8) : 0)
    }
  }
}
