// The Grafana dashboard, drawn here: the same panels and queries, from Prometheus or from what this process remembers.
import { get } from './api.js'
import { chart, heatmap } from './chart.js'
import { h, replace } from './dom.js'
import { withUnit } from './figures.js'
import { empty, failure } from './parts.js'

const SECONDS = 10
const RANGES = [
  [5, '5 minutes'],
  [15, '15 minutes'],
  [60, '1 hour'],
  [360, '6 hours'],
  [1440, '24 hours'],
]

export async function dashPage(main, { every }) {
  const { source, interval, seconds, remark, rows } = await get('/v1/dashboard')
  const frames = new Map()
  const ranges = RANGES.filter(([length]) => seconds === null || 60 * length <= seconds)
  let minutes = Math.min(60, ranges.at(-1)[0])
  const choose = h(
    'select',
    {
      id: 'range',
      onchange: (event) => {
        minutes = Number(event.target.value)
        drawAll()
      },
    },
    ranges.map(([value, text]) => h('option', { value, selected: value === minutes }, text)),
  )

  replace(main, [
    h('h1', {}, 'Dashboard'),
    h('div.controls', {}, h('label', { for: 'range' }, 'Last '), choose),
    h(
      'p.note',
      {},
      source === 'prometheus'
        ? 'From the Prometheus of dashboard.prometheus, all environments and backends.'
        : `What this process remembers, ${interval === 1 ? 'a sample each second' : `a sample each ${interval} seconds`}, all environments and backends; it starts empty with the server. For longer, and for every series, name a Prometheus under dashboard.prometheus.`,
    ),
    remark && h('p.warning', {}, remark),
    rows.map(({ title, panels }) =>
      h('section', {}, [
        h('h2', {}, title),
        h(
          'div.board',
          {},
          panels.map((panel) => {
            const body = h('div.picture', {}, h('p.quietly', {}, 'Loading\u2026'))
            frames.set(panel, body)
            return h(`figure.panel.${panel.kind}`, { id: `panel-${panel.id}` }, [
              h('h3', { title: panel.description }, panel.title),
              body,
              h('figcaption.note', {}, panel.description),
            ])
          }),
        ),
      ]),
    ),
  ])
  document.getElementById(location.hash.slice(1))?.scrollIntoView()
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', drawAll)
  return every(SECONDS, drawAll)

  /** One after the other: the server answers others in between. */
  async function drawAll() {
    for (const [panel, body] of frames) {
      const data = await get(`/v1/dashboard/panels/${panel.id}?minutes=${minutes}`)
      try {
        replace(body, picture(panel, data, body))
      } catch (error) {
        replace(body, failure(error))
        throw error
      }
    }
  }
}

function picture(panel, data, body) {
  const notes = data.notes.map((note) => h('p.note', {}, note))
  if (data.series.length === 0) return [empty('No sample in this time'), notes]
  return [DRAWN[panel.kind](panel, data, body), notes]
}

const DRAWN = {
  stat: ({ unit, thresholds }, { series }) => {
    const value = series[0].values.findLast((one) => one !== null)
    const { color } =
      thresholds.findLast((step) => step.value === null || value >= step.value) ?? {}
    return h(`strong.big.${color}`, {}, withUnit(value, unit))
  },
  timeseries: ({ unit }, data, body) => [chart(data, unit, body), values(data, unit)],
  heatmap: (_, data, body) => heatmap(data, body),
  table: (_, { series }) => {
    const names = Object.keys(series[0].labels)
    return h(
      'div.scroll',
      { tabindex: '0', role: 'region', 'aria-label': 'Table' },
      h('table', {}, [
        h(
          'thead',
          {},
          h(
            'tr',
            {},
            [...names, 'value'].map((name) => h('th', { scope: 'col' }, name)),
          ),
        ),
        h(
          'tbody',
          {},
          series.map(({ labels, values: [value] }) =>
            h(
              'tr',
              {},
              names.map((name) => h('td', {}, labels[name] ?? '')),
              h('td.number', {}, withUnit(value, 'short')),
            ),
          ),
        ),
      ]),
    )
  },
  'state-timeline': (_, { series }) =>
    h(
      'ul.states',
      {},
      series.map(({ name, values: known }) =>
        h('li', {}, [
          h('span', {}, `${name}: ${known.findLast((one) => one !== null) ? 'on' : 'off'}`),
          h(
            'div.sharebar',
            {
              role: 'img',
              'aria-label': `${name}: ${runs(known).filter(([on]) => on).length} times on`,
            },
            runs(known).map(([on, length]) =>
              h(`span.${on === null ? 'none' : on ? 'bad' : 'good'}`, {
                style: { '--share': length / known.length },
              }),
            ),
          ),
        ]),
      ),
    ),
}

/** Runs of equal values as `[value, length]`. */
function runs(values) {
  const found = []
  for (const value of values) {
    const last = found.at(-1)
    if (last && last[0] === value) last[1]++
    else found.push([value, 1])
  }
  return found
}

/** The last value of each line, in words beside its colour. */
function values({ series }, unit) {
  return h(
    'ul.legend',
    {},
    series.map(({ name, values: known }, place) =>
      h(
        'li',
        {},
        h(`i.line${place % 8}`),
        `${name} `,
        h(
          'b',
          {},
          withUnit(
            known.findLast((one) => one !== null),
            unit,
          ),
        ),
      ),
    ),
  )
}
