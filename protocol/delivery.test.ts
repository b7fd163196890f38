// Delivered groups: JSON and msgpack hold the same, and the sealed bytes go out as they were sealed.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type GroupEnvelope, groupObject, leaseJson, leaseMsgpack } from './delivery.ts'
import { unpack } from './msgpack.ts'
import { sealBlob, type TapeSample } from './sealed.ts'
import { NO_COUNTS } from './turn-counts.ts'

const sample = fc
  .array(fc.tuple(fc.nat(151_000), fc.boolean(), fc.float({ noNaN: true, max: 0 })), {
    maxLength: 40,
  })
  .map(
    (tokens): TapeSample => ({
      ids: Int32Array.from(tokens, ([id]) => id),
      mask: Uint8Array.from(tokens, ([, sampled]) => Number(sampled)),
      logprobs: Float32Array.from(tokens, ([, sampled, logprob]) => (sampled ? logprob : 0)),
      prompt_length: 0,
      versions: [{ version: 3, start: 0, end: tokens.length }],
    }),
  )

const envelope = fc
  .array(fc.array(sample, { maxLength: 3 }), { minLength: 1, maxLength: 20 })
  .map((episodes): GroupEnvelope & { tapes: TapeSample[][] } => ({
    head: {
      id: 'b.g0',
      lease: { id: 'l', expires_in_s: 60, delivery: 1 },
      batch: 'b',
      task: 'office/x',
      seed: 1,
      metadata: { note: 'ä' },
      verdict: 'valid',
      level: null,
      contract: 'office@1#abc',
      loss_normalizer: { kind: 'tokens_in_sample', value: null },
      whitened: null,
      estimator: 'grpo',
      policy: { model: 'm', version_min: 3, version_max: 3, logprobs_mode: 'processed' },
      stats: {
        n: 2,
        scored: 2,
        mean: 0.5,
        std: 0.5,
        distinct: 2,
        components: {},
        shared_anchor_share: null,
      },
      cost: { prompt_tokens: 1, completion_tokens: 2, seconds: 0.25 },
      counts: NO_COUNTS,
      greedy_suspect: false,
    },
    episodes: episodes.map((samples, index) => {
      const { blob, rowBytes } = sealBlob({ status: 'scored' }, samples, { any: 'trajectory' })
      const turns = [{ sample: 0, start: 0, end: 1, advantage: 0.5, anchor: 'a' }]
      const head = { id: `e${index}`, index, attempt: 1, outcome: 'ok' as const, reason: null }
      return {
        head: {
          ...head,
          reward: 1,
          rewards: { score: 1 },
          shaping: [],
          advantage: 0.5,
          counts: NO_COUNTS,
          turns,
          seconds: { queued: 0.5, reset: 0.25, turns: 4, grading: 0.125 },
        },
        row: blob.slice(0, rowBytes),
      }
    }),
    tapes: episodes,
  }))

interface Binary {
  groups: {
    dtypes: Record<string, string>
    episodes: { samples: Record<'ids' | 'mask' | 'logprobs', Uint8Array>[] }[]
  }[]
  done: boolean
}

const bytesOf = (array: Int32Array | Uint8Array | Float32Array) =>
  Buffer.from(array.buffer, array.byteOffset, array.byteLength)

test('msgpack carries the arrays as their own bytes, and names how to read them', () => {
  fc.assert(
    fc.property(envelope, (group) => {
      const decoded = unpack(leaseMsgpack([group, group], false)) as Binary
      expect(decoded.done).toBe(false)
      expect(decoded.groups).toHaveLength(2)
      for (const { dtypes, episodes } of decoded.groups) {
        expect(dtypes).toEqual({ ids: '<i4', mask: '|u1', logprobs: '<f4' })
        for (const [index, { samples }] of episodes.entries())
          for (const [place, tape] of (group.tapes[index] ?? []).entries())
            for (const name of ['ids', 'mask', 'logprobs'] as const)
              expect(Buffer.from(samples[place]?.[name] ?? [])).toEqual(bytesOf(tape[name]))
      }
    }),
  )
})

test('JSON holds the same map with the numbers that the bytes stand for', () => {
  fc.assert(
    fc.property(envelope, (group) => {
      const [decoded] = JSON.parse(Buffer.from(leaseJson([group], true)).toString()).groups
      const { episodes, ...head } = decoded
      expect(head).toEqual(JSON.parse(JSON.stringify(group.head)))
      for (const [index, episode] of episodes.entries()) {
        expect(episode).toMatchObject({
          ...group.episodes[index]?.head,
          grade: { status: 'scored' },
        })
        for (const [place, tape] of (group.tapes[index] ?? []).entries()) {
          const delivered = episode.samples[place]
          expect(Int32Array.from(delivered.ids)).toEqual(tape.ids)
          expect(Uint8Array.from(delivered.mask)).toEqual(tape.mask)
          // JSON writes -0 as 0; both are the same number.
          expect(Float32Array.from(delivered.logprobs, (value: number) => value + 0)).toEqual(
            tape.logprobs.map((value) => value + 0),
          )
        }
      }
    }),
  )
})

test('a sealed blob holds the row first and the trajectory behind it, each readable alone', () => {
  const { blob, rowBytes } = sealBlob(null, [], { text: 'später' })
  expect(unpack(blob.subarray(0, rowBytes))).toEqual({ grade: null, samples: [] })
  expect(JSON.parse(Buffer.from(blob.subarray(rowBytes)).toString())).toEqual({ text: 'später' })
  expect(groupObject({ head: {} as GroupEnvelope['head'], episodes: [] }).episodes).toEqual([])
})
