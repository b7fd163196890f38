// slime's rollout buffer against a whole server, by a client with the calls, the checks and the fatal errors of slime's own.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type House, openHouse } from '../testkit/house.testkit.ts'

const CLIENT = fileURLToPath(new URL('testdata/slime_buffer_client.py', import.meta.url))
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
  started?: { message: string; groups: number; input_file?: string }
  rollout: number
  groups: Sample[][]
  fetched: [items: number, samples: number, mean: number]
  metadata: Record<string, number[]>
}

let folder: string
let house: House
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'paddock-slime-'))
  const style = {
    format: 'hermes' as const,
    thinking: false,
    mix: { correct: 0.5, wrong: 0.4, truncated: 0.1 },
  }
  house = await openHouse({
    simulator: { style, weightVersion: '7' },
    settings: { dialects: { slime: { data_dir: folder } } },
  })
}, MINUTE)
afterAll(async () => {
  await house.close()
  rmSync(folder, { recursive: true })
})

async function train(url: string, ...flags: (string | number)[]): Promise<Report[]> {
  const fixed = ['--url', url, '--engine', house.policyUrl, '--pause', '0.02']
  const child = spawn('python3', ['-W', 'error', CLIENT, ...fixed, ...flags.map(String)], {
    env: { ...process.env, PYTHONDONTWRITEBYTECODE: '1' },
  })
  const [out, errors, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit'),
  ])
  expect(code, errors).toBe(0)
  return out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Report)
}

const indices = (reports: Report[]) =>
  reports.flatMap(({ groups }) => groups.map(([first]) => first?.index))

describe('a trainer with slime’s flags alone', () => {
  test(
    'trains three rollouts of whole groups, each instance once',
    async () => {
      const [begun, ...rollouts] = await train(house.url, '--num-rollout', 3)
      expect(begun?.started).toMatchObject({ message: 'Rollout started', groups: 900 })
      for (const { groups } of rollouts) {
        expect(groups.map((group) => group.length)).toEqual([4, 4, 4, 4])
        for (const group of groups) {
          expect(new Set(group.map(({ index }) => index)).size).toBe(1)
          expect(new Set(group.map(({ prompt }) => prompt)).size).toBe(4)
          for (const { reward, metadata, messages, status } of group) {
            expect(reward).toBe(metadata.raw_reward)
            expect([0, 1]).toContain(reward)
            expect(messages[0]?.content).toContain('"name": "calculator"')
            expect(metadata.round_number).toBe(
              messages.filter(({ role }) => role === 'assistant').length,
            )
            expect(status === 'truncated').toBe(metadata.paddock.outcome === 'ok_truncated')
          }
        }
      }
      const trained = indices(rollouts)
      expect(new Set(trained).size).toBe(trained.length)
    },
    MINUTE,
  )
})
