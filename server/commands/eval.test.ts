// `paddock eval` against a whole server: the table, the JSON, and failures of the machinery apart.
import { once } from 'node:events'
import { mkdtempSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { type EvaluatedTask, evaluationReport } from '../../reward/evaluation.ts'
import { arithmeticRequest, type House, openHouse } from '../testkit/house.testkit.ts'
import { type EvalOptions, evaluate } from './eval.ts'
import { evaluationText } from './eval-table.ts'
import { explain } from './explain.ts'
import { keptStreams } from './streams.testkit.ts'

let house: House
beforeAll(async () => {
  house = await openHouse({
    office: true,
    tokens: false,
    simulator: { style: { format: 'hermes', thinking: false, mix: { correct: 1, wrong: 1 } } },
    // Fewer finished groups than there are tasks: what waits to be read must not stop an evaluation.
    settings: { limits: { max_groups_ready: 2 } },
  })
}, 60_000)
afterAll(() => house.close())
afterEach(() => house.setFaults())

const run = async (names: string[], some: Partial<EvalOptions> = {}) => {
  const { streams, out, err } = keptStreams()
  const options = { url: house.url, episodes: 4, backend: 'main', temperature: 1, maxTokens: 256 }
  const code = await evaluate(names, { ...options, seed: 3, ...some }, streams)
  return { code, out: out(), err: err() }
}

const SUMS = [0, 1, 2, 3, 4].map((index) => `arithmetic/sum-${index}`)

test('prints rates for each k and mean rewards with their intervals, and writes them as JSON', async () => {
  const file = join(mkdtempSync(join(tmpdir(), 'paddock-eval-')), 'report.json')
  const { code, out, err } = await run(SUMS, { k: [1, 4], json: file })
  expect(code).toBe(0)
  expect(err).toContain('5 tasks × 4 episodes')
  expect(err).toMatch(/Episodes 20\/20\n$/)
  const report = JSON.parse(readFileSync(file, 'utf8'))
  expect(report).toMatchObject({ episodes: 20, scored: 20, unscored: {}, settings: { seed: 3 } })
  expect(report.pass.map(({ k }: { k: number }) => k)).toEqual([1, 4])
  // Rewards are 1 and 0 here: pass@1 is the mean reward.
  expect(report.pass[0].rates.pass_at_k).toBeCloseTo(report.reward.mean, 12)
  expect(out).toContain('pass^4 unbiased')
  expect(out).toMatch(new RegExp(`^all +5 +${report.reward.mean.toFixed(3)} `, 'm'))
  expect(out).not.toContain('\u001b')
})

test('leaves what was never scored out of every mean and says so', async () => {
  await house.setFaults({ kind: 'nofinish', match: arithmeticRequest(1) })
  const { out } = await run(SUMS, { json: true })
  const report = JSON.parse(out)
  expect(report).toMatchObject({ scored: 16, unscored: { infra_backend: 4 } })
  expect(report.pass[0]).toMatchObject({ tasks: 4, short: 1 })
  expect(report.reward.tasks).toBe(4)
}, 60_000)

test('refuses an unknown name, and a batch that trains', async () => {
  await expect(run(['nowhere'])).rejects.toThrow(/no task and no pack nowhere.*office/)
  const { id } = await house.api.submit({ tasks: [{ task: 'arithmetic/sum-0' }], group_size: 1 })
  await expect(house.api.evaluation(id, '')).rejects.toThrow(/mode train.*submit it in mode eval/)
})

const settings = { k: [1], threshold: 0.75, seed: 0, resamples: 100, level: 0.95 }
const evaluated = (task: string, ...rewards: number[]) => ({
  task,
  family: 'x',
  episodes: rewards.map((reward) => ({ outcome: 'ok' as const, reward })),
})
const textOf = (tasks: EvaluatedTask[], k: number[], byTask = false) =>
  evaluationText(evaluationReport(tasks, { ...settings, k }), byTask)

test('says why there is no interval', () => {
  const one = textOf([evaluated('a', 1, 0)], [1])
  expect(one).toMatch(/^95 % interval +one task +one task +one task +one task +one task$/m)
  expect(one).toMatch(/^standard error +one task/m)
  expect(one).toContain('one task: how sure a figure is shows between tasks')
  const alike = textOf([evaluated('a', 1, 0), evaluated('b', 0, 1)], [1])
  expect(alike).toMatch(/^95 % interval +no spread +no spread/m)
  expect(alike).toContain('no spread: no two tasks of a family differ')
})

test('explains pass@k and the three numbers called pass^k beside their figures', () => {
  const text = textOf([evaluated('a', 1, 0, 0, 0), evaluated('b', 1, 1, 0, 1)], [4])
  expect(text).toContain('pass@4: at least one of 4 episodes passes')
  expect(text).toContain('pass^4: all 4 pass, counted as all_passed:')
})

test('shows rows of tasks where they are asked for', () => {
  const tasks = [evaluated('p/a', 1, 0, 0, 0), evaluated('p/b', 1, 1, 0, 1)]
  expect(textOf(tasks, [2])).not.toContain('p/a')
  // pass@2 of a: 1 - C(3,2)/C(4,2) = 1/2; (1/4)^2 = 0.0625; of b: 1; (3/4)^2 = 0.5625; C(3,2)/C(4,2) = 1/2.
  const text = textOf(tasks, [2], true)
  expect(text).toMatch(/^p\/a +1 of 4 +0\.250 +0\.500 +0\.000 +0\.063 +0\.000$/m)
  expect(text).toMatch(/^p\/b +3 of 4 +0\.750 +1\.000 +0\.000 +0\.563 +0\.500$/m)
})

test('a terminal of 120 columns breaks no line, and the names of the rates say themselves which they are', () => {
  const long = (name: string) => `office/${name}-of-premium-customers-with-several-open-invoices`
  const tasks = [evaluated(long('one'), 1, 0, 0, 0), evaluated(long('two'), 1, 1, 0, 1)]
  const report = evaluationReport(tasks, { ...settings, k: [2] })
  const lines = evaluationText(report, true, 120).split('\n')
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(120)
  expect(lines[2]).toMatch(/pass@2 +all_passed +power +unbiased$/)
  expect(lines[4]).toMatch(/^office\/one-of-\S+/)
  expect(evaluationText(report, true)).toContain(long('one'))
})

test('says in the text what has no number', () => {
  const episodes = [{ outcome: 'infra_tool' as const, reward: null }]
  const text = evaluationText(evaluationReport([{ task: 'a', family: 'x', episodes }], settings))
  expect(text).toContain('in no mean and no rate: 1 infra_tool')
  expect(text).toMatch(/^all +0 +– +– +– +– +–$/m)
  expect(text).not.toContain('NaN')
})

test('where no server answers, or another one, it says so and names --url', async () => {
  const other = createServer((_, response) => response.end('<html>')).listen(0, '127.0.0.1')
  await once(other, 'listening')
  const url = `http://127.0.0.1:${(other.address() as AddressInfo).port}`
  await expect(run(SUMS, { url })).rejects.toThrow(/expected a Paddock .*--url/)
  other.closeAllConnections()
  other.close()
  await once(other, 'close')
  const nobody = /no server answers at http:.*ECONNREFUSED.*--url/
  await expect(run(SUMS, { url })).rejects.toThrow(nobody)
  await expect(explain('b.g0', { url }, keptStreams().streams)).rejects.toThrow(nobody)
})
