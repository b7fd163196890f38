// The board: figures with their colours, panels with notes for what is missing, and the named Prometheus as a source.
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { createDashboard } from '../grafana/dashboard.ts'
import { type Board, boardQueries, createBoard } from './board.ts'
import { evaluateQuery } from './evaluate.ts'
import { createMemorySource } from './memory-source.ts'
import { createPrometheusSource } from './prometheus-source.ts'

const NOW = 1_800_000_000

const idOf = (title: string) => createDashboard().panels.find((one) => one.title === title)!.id!

describe('over samples in memory', () => {
  let queries = 0
  const source = createMemorySource(boardQueries(), 10, async (query) => {
    queries++
    return evaluateQuery(query)
  })
  const finished = (outcome: string, value: number, env = 'office') => ({
    name: 'paddock_groups_finished_total',
    labels: { env, mode: 'train', outcome },
    value,
  })
  const begun = ['office', 'arithmetic'].map((env) => ({
    name: 'paddock_groups_started_total',
    labels: { env, mode: 'train' },
    value: 0,
  }))
  // Three valid groups and one flat one in each ten seconds.
  for (let n = 0; n < 40; n++)
    source.add(NOW - 400 + 10 * n, [
      finished('valid', 3 * n),
      finished('zero_variance', n),
      // Two updates of the weights, 200 s and 100 s ago.
      { name: 'paddock_policy_version', labels: {}, value: n < 20 ? 1 : n < 30 ? 2 : 3 },
      ...begun,
    ])
  let now = NOW
  const board = createBoard(source, () => now)

  test('a figure has its last value and the colour of its threshold', async () => {
    const figures = await board.figures()
    expect(figures).toHaveLength(6)
    expect(figures[0]).toMatchObject({ title: 'Valid groups', unit: 'percentunit', color: 'green' })
    expect(figures[0]?.value).toBeCloseTo(0.75, 9)
    expect(figures[1]?.value).toBeCloseTo(0.25, 9)
    expect(figures[2]).toMatchObject({ title: 'Infra failures', value: null, color: 'none' })
  })

  test('a panel has a line for each value of its label, under the name of its legend', async () => {
    const { series, notes, times } = await board.panel(idOf('Groups by outcome'), 60)
    expect(series.map(({ name }) => name)).toEqual(['valid', 'zero_variance'])
    expect(series[0]?.values).toHaveLength(times.length)
    expect(series[0]?.values.at(-1)).toBeCloseTo(0.3, 9)
    expect(notes).toEqual([])
  })

  test('a panel says which series cannot be shown', async () => {
    const { notes } = await board.panel(idOf('Event loop lag p99 / utilisation'), 60)
    expect(notes).toEqual([expect.stringMatching(/^nodejs_eventloop_lag_p99_seconds is not kept/)])
  })

  test('of the variables there are the values that there are, in order', async () => {
    expect((await board.describe()).variables).toEqual([
      { name: 'env', values: ['arithmetic', 'office'] },
      { name: 'mode', values: ['train'] },
      { name: 'backend', values: [] },
    ])
  })

  test.each([
    [{ env: ['office'] }, ['valid', 'zero_variance']],
    [{ env: ['office', 'arithmetic'], mode: [] }, ['valid', 'zero_variance']],
    [{ env: ['arithmetic'] }, []],
    [{ mode: ['eval'] }, []],
    [{ env: ['offic.'] }, []],
  ])('of %o a panel has the lines %j', async (chosen, names) => {
    const { series } = await board.panel(idOf('Groups by outcome'), 60, chosen)
    expect(series.map(({ name }) => name)).toEqual(names)
  })

  test('a figure of one mode says nothing of another', async () => {
    const evaluated = await board.panel(idOf('Valid groups'), 60, { mode: ['eval'] })
    expect(evaluated.series).toEqual([])
    const trained = await board.panel(idOf('Valid groups'), 60, { mode: ['train'] })
    expect(trained.series[0]?.values.at(-1)).toBeCloseTo(0.75, 9)
  })

  test('annotations are spans of what was seen, and say what cannot be', async () => {
    const [alerts, updates] = await board.annotations(60)
    expect(alerts).toMatchObject({
      name: 'Alerts',
      spans: [],
      notes: [expect.stringContaining('by Prometheus')],
    })
    // Each is seen for the minute of its window; two samples apart it would be a third one.
    expect(updates).toMatchObject({ name: 'Weight updates', color: 'blue', notes: [] })
    expect(updates?.spans).toMatchObject([{ text: 'weights' }, { text: 'weights' }])
    for (const [place, at] of [NOW - 200, NOW - 100].entries()) {
      const span = updates?.spans[place]
      expect(span?.from).toBeGreaterThanOrEqual(at)
      expect(span?.from).toBeLessThan(at + 30)
      expect(span!.to - span!.from).toBeLessThanOrEqual(60)
    }
  })

  test('between two samples the same question is computed once, however often it is asked', async () => {
    const id = idOf('Groups by outcome')
    await board.panel(id, 15)
    const before = queries
    const answers = await Promise.all([board.panel(id, 15), board.panel(id, 15)])
    expect(answers[0]).toBe(answers[1])
    expect(queries).toBe(before)
    now = NOW + 10
    await board.panel(id, 15)
    expect(queries).toBe(before + 1)
    now = NOW
  })

  test('there is no panel of another id', async () => {
    await expect(board.panel(9999, 60)).rejects.toMatchObject({ code: 'not_found' })
  })

  test('it keeps the metrics that the dashboard asks for, through its recording rules, and no others', () => {
    expect(source.metrics).toContain('paddock_reward_squares_sum_total')
    expect(source.metrics).toContain('paddock_reward')
    expect(source.metrics).not.toContain('paddock_build_info')
    expect(source.metrics).not.toContain('nodejs_eventloop_lag_p99_seconds')
  })
})

describe('over a Prometheus', () => {
  let server: Server | null = null
  afterEach(() => server?.close())

  async function boardOver(
    answer: (url: URL) => { status?: number; body: unknown },
  ): Promise<Board> {
    server = createServer((request, response) => {
      const { status = 200, body } = answer(new URL(request.url!, 'http://here'))
      response.writeHead(status, { 'content-type': 'application/json', location: '/elsewhere' })
      response.end(JSON.stringify(body))
    })
    await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    return createBoard(createPrometheusSource(`http://127.0.0.1:${port}/`, 15), () => NOW)
  }

  test('it is asked with the variables filled in, and its values stand at their moments', async () => {
    const asked: URL[] = []
    const board = await boardOver((url) => {
      asked.push(url)
      const end = Number(url.searchParams.get('end'))
      const result = [
        {
          metric: { outcome: 'valid' },
          values: [
            [end - 30, '0.5'],
            [end, '+Inf'],
          ],
        },
      ]
      return { body: { status: 'success', data: { resultType: 'matrix', result } } }
    })
    const { series } = await board.panel(idOf('Groups by outcome'), 60)
    expect(asked[0]?.pathname).toBe('/api/v1/query_range')
    expect(asked[0]?.searchParams.get('query')).toBe(
      'sum by (outcome) (rate(paddock_groups_finished_total{env=~".*",mode=~".*"}[60s]))',
    )
    expect(asked[0]?.searchParams.get('step')).toBe('30')
    expect(series[0]?.values.slice(-3)).toEqual([null, 0.5, null])
  })

  test('values with the marks of a pattern or a string match themselves only', async () => {
    const asked: string[] = []
    const board = await boardOver((url) => {
      asked.push(url.searchParams.get('query')!)
      return { body: { status: 'success', data: { resultType: 'matrix', result: [] } } }
    })
    await board.panel(idOf('Groups by outcome'), 60, { env: ['a.b', 'c"} or up{x="'] })
    expect(asked[0]).toContain(String.raw`{env=~"a\\.b|c\"\\} or up\\{x=\"",mode=~".*"}`)
  })

  test('the figures are of training alone', async () => {
    const asked: string[] = []
    const board = await boardOver((url) => {
      asked.push(url.searchParams.get('query')!)
      return { body: { status: 'success', data: { resultType: 'matrix', result: [] } } }
    })
    await board.figures()
    const modes = asked.flatMap((query) => query.match(/mode=~"[^"]*"/g) ?? [])
    expect(modes.length).toBeGreaterThan(3)
    expect([...new Set(modes)]).toEqual(['mode=~"train"'])
  })

  test.each([
    [503, 'status 503'],
    [302, 'redirect'],
  ])('status %i leaves a note in the place of the picture', async (status, why) => {
    const board = await boardOver(() => ({ status, body: {} }))
    const { series, notes } = await board.panel(idOf('Groups by outcome'), 60)
    expect(series).toEqual([])
    expect(notes[0]).toMatch(/^The Prometheus of dashboard.prometheus does not answer/)
    if (status === 503) expect(notes[0]).toContain(why)
  })
})
