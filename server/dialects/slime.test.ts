// slime against a whole server, by programs with the calls, the checks and the fatal errors of slime's own.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { generateTask } from '../../envs/arithmetic/tasks.ts'
import { type House, openHouse } from '../testkit/house.testkit.ts'
import { python } from './python.testkit.ts'

const MINUTE = 60_000

interface Sample {
  index: number
  prompt: string
  messages: { role: string; content: string }[]
  reward: number
  status: string
  metadata: { raw_reward: number; round_number: number; paddock: { outcome: string } }
}
interface Report {
  started?: { message: string; groups: number; tasks: number; run: string }
  rollout: number
  groups: Sample[][]
  fetched: [items: number, samples: number, mean: number]
  metadata: Record<string, number[]>
}

let folder: string
let house: House
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'paddock-slime-'))
  const mix = { correct: 0.5, wrong: 0.4, truncated: 0.1 }
  house = await openHouse({
    office: true,
    simulator: { style: { format: 'hermes', thinking: false, mix }, weightVersion: '7' },
    settings: { dialects: { slime: { data_dir: folder, rollout_batch_size: 4 } } },
  })
}, MINUTE)
afterEach(() => house.setFaults())
afterAll(async () => {
  await house.close()
  rmSync(folder, { recursive: true })
})

function train(...flags: (string | number)[]): Promise<Report[]> {
  const fixed = ['--url', house.url, '--engine', house.policyUrl, '--pause', 0.02]
  return python<Report>('slime_buffer_client', [...fixed, ...flags]).done
}

/** The first sums, in a file that trainer and server both see. */
function selection(count: number): string {
  const file = join(folder, `${count}.jsonl`)
  const rows = Array.from({ length: count }, (_, index) => ({ prompt: '', task: `sum-${index}` }))
  writeFileSync(file, rows.map((row) => JSON.stringify(row)).join('\n'))
  return file
}

const indices = (reports: Report[]) =>
  reports.flatMap(({ groups = [] }) => groups.map(([first]) => first?.index))

describe('a trainer with slime’s flags alone', () => {
  test(
    'trains three rollouts of whole groups, each instance once',
    async () => {
      const [begun, ...rollouts] = await train('--num-rollout', 3)
      expect(begun?.started).toMatchObject({ message: 'Rollout started', groups: 900 })
      for (const { groups, fetched } of rollouts) {
        expect(groups.map((group) => group.length)).toEqual([4, 4, 4, 4])
        // Its batch size is set, so that it throws nothing away.
        expect(fetched.slice(0, 2)).toEqual([16, 16])
        for (const group of groups) {
          expect(new Set(group.map(({ index }) => index)).size).toBe(1)
          expect(new Set(group.map(({ prompt }) => prompt)).size).toBe(4)
          for (const { reward, metadata, messages, status } of group) {
            const answers = messages.filter(({ role }) => role === 'assistant')
            expect(reward).toBe(metadata.raw_reward)
            expect([0, 1]).toContain(reward)
            // What the policy was shown: slime's own rendering has no tools.
            expect(messages[0]?.content).toContain('"name": "calculator"')
            expect(metadata.round_number).toBe(answers.length)
            expect(status === 'truncated').toBe(metadata.paddock.outcome === 'ok_truncated')
          }
        }
      }
      const trained = indices(rollouts)
      expect(new Set(trained).size).toBe(trained.length)
    },
    MINUTE,
  )

  test(
    'trains on while the policy fails in every way, and no failure is a reward',
    async () => {
      await house.setFaults(
        { kind: '500', rate: 0.1 },
        { kind: 'reset', rate: 0.03 },
        { kind: 'nan', rate: 0.03 },
        { kind: 'abort', rate: 0.1 },
        { kind: 'nologprobs', rate: 0.03 },
      )
      const [, ...rollouts] = await train('--num-rollout', 2, '--task-type', 'arithmetic')
      const samples = rollouts.flatMap(({ groups }) => groups.flat())
      expect(samples).toHaveLength(32)
      for (const { metadata } of samples)
        expect(['ok', 'ok_truncated']).toContain(metadata.paddock.outcome)
    },
    MINUTE,
  )

  test(
    'comes back from its checkpoint and gets what is left of the passes, each instance once',
    async () => {
      const checkpoint = join(folder, 'metadata.json')
      const flags = ['--checkpoint', checkpoint, '--prompt-data', selection(8), '--num-epoch', 2]
      const before = await train(...flags, '--num-rollout', 2)
      const kept = JSON.parse(readFileSync(checkpoint, 'utf8')) as Record<string, number[]>
      expect(Object.values(kept).flat().sort()).toEqual(indices(before).sort())
      const after = await train(...flags, '--first-rollout', 2, '--num-rollout', 2)
      expect(after[0]?.started).toMatchObject({ tasks: 8, run: before[0]?.started?.run })
      const trained = [...indices(before), ...indices(after)].map(Number)
      expect(trained.sort((a, b) => a - b)).toEqual(Array.from({ length: 16 }, (_, index) => index))
    },
    MINUTE,
  )
})

describe('remote_rm', () => {
  const samples = [0, 1, 2, 3].map((index) => ({
    prompt: [{ role: 'user', content: String(generateTask(index, 1).request) }],
    response: index % 2 === 0 ? `There are ${generateTask(index, 1).answer}.<|im_end|>` : 'None.',
    label: index < 2 ? `sum-${index}` : generateTask(index, 1).answer,
  }))
  const lines = samples.map((sample) => JSON.stringify(sample)).join('\n')
  const url = (pack: string) => `${house.url}/v1/compat/slime?pack=${pack}`

  test(
    'gets the number of every response, by task and by reference answer',
    async () => {
      const { done } = python<number>('remote_rm_client', ['--rm-url', url('arithmetic')], lines)
      expect(await done).toEqual([1, 0, 1, 0])
    },
    MINUTE,
  )

  test(
    'hears of what cannot be graded as an error, and never as a number',
    async () => {
      const flags = ['--rm-url', url('office'), '--pause', 0.001]
      await expect(python('remote_rm_client', flags, lines).done).rejects.toThrow('HTTP Error 400')
    },
    MINUTE,
  )
})
