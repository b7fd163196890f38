// What a dashboard costs the thread that serves everyone: samples are taken and handed over there, and nothing is evaluated.
import { expect, test } from 'vitest'
import { createSeries } from '../metrics/series.ts'
import { boardQueries } from './board.ts'
import { createMemorySource } from './memory-source.ts'

/** Milliseconds, the least of some: a busy machine lets any of them wait, and counts the process only for what it did. */
async function least(rounds: number, work: () => unknown): Promise<number> {
  const taken: number[] = []
  for (let round = 0; round < rounds; round++) {
    const [started, spent] = [performance.now(), process.cpuUsage()]
    await work()
    const { user, system } = process.cpuUsage(spent)
    taken.push(Math.min(performance.now() - started, (user + system) / 1000))
  }
  return Math.min(...taken)
}

test('with 8,000 series neither a sample nor any query holds the main thread for 25 ms', async () => {
  const env = Array.from({ length: 9 }, (_, place) => `env-${place}`)
  const series = createSeries({
    env,
    backend: ['main', 'second', 'third'],
    component: Object.fromEntries(env.map((name) => [name, ['completion', 'safety']])),
    version: '1',
    node: 'v20',
  })
  for (const name of env)
    for (let tool = 0; tool < 10; tool++)
      series.inc('tool_calls_total', { env: name, tool: `tool-${tool}`, outcome: 'ok' })
  const { text } = await series.text('plain')
  expect(text.match(/^paddock_/gm)?.length).toBeGreaterThan(8000)

  const queries = boardQueries()
  let crossed = 0
  // As a message to a thread: copied here, evaluated there.
  const source = createMemorySource(queries, 10, async (query) => {
    structuredClone(query)
    crossed++
    return []
  })
  const samples = await series.samples(source.metrics)
  for (let at = 0; at < 400; at++) source.add(10 * at, samples)
  expect(await least(10, () => source.add(5000, samples))).toBeLessThan(25)
  const grid = Array.from({ length: 120 }, (_, at) => 30 * at)
  for (const query of queries.filter((one) => source.obstacle(one) === null))
    expect(await least(5, () => source.range(query, grid)), query).toBeLessThan(25)
  expect(crossed).toBeGreaterThan(200)
})
