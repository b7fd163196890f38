// The evaluator against the cases that Prometheus tests itself with (promql/testdata/functions.test, histograms.test, operators.test).
import { describe, expect, test } from 'vitest'
import { createDashboard } from '../grafana/dashboard.ts'
import { filledIn } from '../grafana/filled-in.ts'
import { recordingRules, WINDOWS } from '../grafana/rules.ts'
import { evaluate, type Labels, type SampledSeries, type Samples } from './evaluate.ts'
import { parsePromql } from './promql.ts'

const MINUTE = 60

/** One sample every five minutes from 0 on. */
function series(labels: Labels, values: number[], step = 5 * MINUTE): SampledSeries {
  return {
    labels,
    times: Float64Array.from(values, (_, place) => place * step),
    values: Float64Array.from(values),
  }
}

/** `0+10x10` of Prometheus' notation: from, step, times. */
const rising = (from: number, step: number, times: number) =>
  Array.from({ length: times + 1 }, (_, place) => from + place * step)

function samples(
  named: Record<string, SampledSeries[]>,
  rules: Record<string, string> = {},
): Samples {
  return {
    named: (name) => named[name] ?? [],
    recorded: (name) => (rules[name] === undefined ? null : parsePromql(rules[name])),
  }
}

function instant(text: string, minutes: number, given: Samples): [Labels, number][] {
  const rows = evaluate(parsePromql(text), [minutes * MINUTE], given)
  return rows
    .filter(({ values }) => !Number.isNaN(values[0]))
    .map(({ labels, values }) => [labels, Number(values[0]!.toPrecision(12))])
}

test('changes counts how often a value differs from the one before it', () => {
  const requests = samples({
    http_requests: [
      series({ path: '/foo' }, [1, 2, 3, 0, 1, 0, 0, 1, 2, 0]),
      series({ path: '/bar' }, [1, 2, 3, 4, 5, 1, 2, 3, 4, 5]),
      series({ path: '/biz' }, [0, 0, 0, 0, 0, 1, 1, 1, 1, 1]),
    ],
  })
  expect(instant('changes(http_requests[50m])', 50, requests)).toEqual([
    [{ path: '/foo' }, 8],
    [{ path: '/bar' }, 9],
    [{ path: '/biz' }, 1],
  ])
  expect(instant('changes(http_requests[30m])', 30, requests)).toEqual([
    [{ path: '/foo' }, 5],
    [{ path: '/bar' }, 6],
    [{ path: '/biz' }, 1],
  ])
  expect(instant('changes(nonexistent[50m])', 50, requests)).toEqual([])
})

test('topk has never more than k, where values are equal too', () => {
  const equal = samples({
    http_requests: ['a', 'b', 'c', 'd'].map((path) => series({ path }, [path === 'd' ? 2 : 1])),
  })
  expect(instant('topk(2, http_requests)', 0, equal)).toEqual([
    [{ path: 'a' }, 1],
    [{ path: 'd' }, 2],
  ])
})

describe('rate and increase', () => {
  const requests = samples({
    http_requests: [
      series({ path: '/foo' }, rising(0, 10, 10)),
      series({ path: '/bar' }, [...rising(0, 10, 5), ...rising(0, 10, 4)]),
    ],
  })

  test('a reset counts what was lost', () => {
    expect(instant('increase(http_requests[50m])', 50, requests)).toEqual([
      [{ path: '/foo' }, 100],
      [{ path: '/bar' }, 90],
    ])
  })

  test('a window that is longer than the series is not filled with what never was', () => {
    expect(instant('increase(http_requests[100m])', 50, requests)).toEqual([
      [{ path: '/foo' }, 100],
      [{ path: '/bar' }, 90],
    ])
  })

  test('rate is the increase by the second', () => {
    const [[, foo] = []] = instant('rate(http_requests[50m])', 50, requests)
    expect(foo).toBeCloseTo(100 / 3000, 12)
  })

  test('one sample in the window is no rate', () => {
    expect(instant('rate(http_requests[4m])', 50, requests)).toEqual([])
  })
})

describe('histogram_quantile', () => {
  // promql/testdata/histograms.test: testhistogram, start="positive" and start="negative", 0+…x10.
  const bucket = (start: string, le: string, step: number) =>
    series({ start, le }, rising(0, step, 10))
  const histogram = samples({
    testhistogram_bucket: [
      bucket('positive', '0.1', 5),
      bucket('positive', '.2', 7),
      bucket('positive', '1e0', 11),
      bucket('positive', '+Inf', 12),
      bucket('negative', '-.2', 1),
      bucket('negative', '-0.1', 2),
      bucket('negative', '0.3', 2),
      bucket('negative', '+Inf', 3),
    ],
  })

  test.each([
    [0.2, 0.048, -0.2],
    [0.5, 0.15, -0.15],
    [0.8, 0.72, 0.3],
  ])('of %d over rates is %d where it starts above zero and %d below', (q, positive, negative) => {
    const text = `histogram_quantile(${q}, rate(testhistogram_bucket[5m]))`
    const every = samples({
      testhistogram_bucket: histogram
        .named('testhistogram_bucket')
        .map((one) => series(one.labels, [...one.values], MINUTE)),
    })
    expect(instant(text, 10, every)).toEqual([
      [{ start: 'positive' }, positive],
      [{ start: 'negative' }, negative],
    ])
  })
})

test('or has of the right what the left has not at that moment', () => {
  const given = samples({
    told: [{ labels: {}, times: Float64Array.of(600), values: Float64Array.of(5) }],
    step: [series({}, [100, 110, 120, 130])],
  })
  const [row, ...others] = evaluate(
    parsePromql('step - (told or 0 * step)'),
    [300, 600, 800],
    given,
  )
  expect([...(row?.values ?? [])]).toEqual([110, 115, 115])
  expect(others).toEqual([])
})

describe('operators', () => {
  // promql/testdata/operators.test: http_requests at 50m is 100 to 800 by job, instance and group.
  const labels = [
    ['api-server', '0', 'production', 100],
    ['api-server', '1', 'production', 200],
    ['api-server', '0', 'canary', 300],
    ['api-server', '1', 'canary', 400],
    ['app-server', '0', 'production', 500],
    ['app-server', '1', 'production', 600],
    ['app-server', '0', 'canary', 700],
    ['app-server', '1', 'canary', 800],
  ] as const
  const given = samples(
    {
      http_requests: labels.map(([job, instance, group, value]) =>
        series({ job, instance, group }, rising(0, value / 10, 10)),
      ),
    },
    { 'job:requests': 'sum by (job) (http_requests)' },
  )

  test.each([
    [
      'sum(http_requests) by (job)',
      [
        [{ job: 'api-server' }, 1000],
        [{ job: 'app-server' }, 2600],
      ],
    ],
    ['sum(http_requests{job="api-server"}) by (job) / 10', [[{ job: 'api-server' }, 100]]],
    ['2 - sum by (job) (http_requests{job=~"api.*"})', [[{ job: 'api-server' }, -998]]],
    ['max(http_requests) - min(http_requests)', [[{}, 700]]],
    ['avg by (group) (http_requests{group!="canary"})', [[{ group: 'production' }, 350]]],
    ['sum by (job) (http_requests) > 1000', [[{ job: 'app-server' }, 2600]]],
    ['2 ^ 3 ^ 2', [[{}, 512]]],
    [
      '(http_requests{group="canary"} + 1) or http_requests{instance="1"}',
      [
        [{ job: 'api-server', instance: '0', group: 'canary' }, 301],
        [{ job: 'api-server', instance: '1', group: 'canary' }, 401],
        [{ job: 'app-server', instance: '0', group: 'canary' }, 701],
        [{ job: 'app-server', instance: '1', group: 'canary' }, 801],
        [{ job: 'api-server', instance: '1', group: 'production' }, 200],
        [{ job: 'app-server', instance: '1', group: 'production' }, 600],
      ],
    ],
    ['http_requests{group="canary",instance="7"} or sum(http_requests)', [[{}, 3600]]],
    ['job:requests{job="app-server"}', [[{ job: 'app-server' }, 2600]]],
    ['topk(1, job:requests)', [[{ job: 'app-server' }, 2600]]],
    [
      'sum by (job) (http_requests) / on () group_left () (sum(http_requests) > 0)',
      [
        [{ job: 'api-server' }, 1000 / 3600],
        [{ job: 'app-server' }, 2600 / 3600],
      ],
    ],
    ['sum(http_requests) / (sum(http_requests{job="none"}) > 0)', []],
  ])('%s', (text, expected) => {
    const found = instant(text, 50, given)
    expect(found.map(([labels]) => labels)).toEqual(expected.map(([labels]) => labels))
    for (const [place, [, value]] of expected.entries())
      expect(found[place]?.[1]).toBeCloseTo(value as number, 9)
  })

  test('a sample older than five minutes is none', () => {
    expect(instant('http_requests', 54, given)).toHaveLength(8)
    expect(instant('http_requests', 56, given)).toEqual([])
  })

  test.each(['rate(x)', 'count_values("a", x)', 'a and b', 'x offset 5m', 'sum without (a) (x)'])(
    '%s is refused, not guessed',
    (text) => {
      expect(() => evaluate(parsePromql(text), [0], given)).toThrow(/not understood/)
    },
  )
})

test('every query of the dashboard and every recording rule is understood', () => {
  const panels = createDashboard().panels.flatMap((panel) =>
    'targets' in panel ? panel.targets.map(({ expr }) => filledIn(expr ?? '')) : [],
  )
  const rules = recordingRules(WINDOWS).map(({ expr }) => expr)
  for (const expr of [...panels, ...rules]) expect(() => parsePromql(expr)).not.toThrow()
})
