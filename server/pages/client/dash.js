// The Grafana dashboard, drawn here: the same panels and queries, from Prometheus or from what this process remembers.
import { get } from './api.js'
import { chart, heatmap } from './chart.js'
import { closeLeftPickers, picker, queryOf, rangePicker, readView, writeView } from './dash-view.js'
import { h, replace } from './dom.js'
import { withUnit } from './figures.js'
import { clock } from './format.js'
import { lineOf } from './lines.js'
import { empty, failure } from './parts.js'

const SECONDS = 10
/** @type {[number, string][]} */
const RANGES = [
  [5, '5 minutes'],
  [15, '15 minutes'],
  [60, '1 hour'],
  [360, '6 hours'],
  [1440, '24 hours'],
]

export async function dashPage(main, { every }) {
  const { source, interval, seconds, remark, variables, rows } = await get('/v1/dashboard')
  const ranges = RANGES.filter(([length]) => seconds === null || 60 * length <= seconds)
  const view = readView(ranges, variables)
  const frames = rows.flatMap(({ panels }) => panels.map((panel) => ({ panel, ...frameOf(panel) })))
  const around = h('div')
  let round = 0
  let drawing = null

  replace(main, [
    h('h1', {}, 'Dashboard'),
    h(
      'div.controls',
      {},
      rangePicker(ranges, view, chosen),
      variables.map((one) => picker(one, view, chosen)),
    ),
    h(
      'p.note',
      {},
      source === 'prometheus'
        ? 'From the Prometheus of dashboard.prometheus.'
        : `What this process remembers, ${interval === 1 ? 'a sample each second' : `a sample each ${interval} seconds`}; it starts empty with the server. For longer, and for every series, name a Prometheus under dashboard.prometheus.`,
    ),
    remark && h('p.warning', {}, remark),
    around,
    rows.map(({ title, panels }) =>
      h('section', {}, [
        h('h2', {}, title),
        h(
          'div.board',
          {},
          frames.filter(({ panel }) => panels.includes(panel)).map(({ figure }) => figure),
        ),
      ]),
    ),
  ])
  document.getElementById(location.hash.slice(1))?.scrollIntoView()
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', chosen)
  whenNear(frames, () => drawNear().catch(leftToNextRound))
  closeLeftPickers(main)
  return every(SECONDS, drawAnew)

  function chosen() {
    writeView(view)
    drawAnew().catch(leftToNextRound)
  }

  function drawAnew() {
    round++
    return drawNear()
  }

  /** One drawing at a time; what is chosen or comes near meanwhile is part of it. */
  function drawNear() {
    drawing ??= drawThose().finally(() => {
      drawing = null
    })
    return drawing
  }

  /** One panel after the other: the server answers others in between. */
  async function drawThose() {
    const { annotations } = await get(`/v1/dashboard/annotations?minutes=${view.minutes}`)
    replace(around, annotated(annotations))
    for (;;) {
      const next = frames.find((frame) => frame.round < round && isNear(frame.figure))
      if (!next) return
      next.round = round
      await draw(next, annotations)
    }
  }

  async function draw({ panel, body }, annotations) {
    const data = await get(`/v1/dashboard/panels/${panel.id}?${queryOf(view)}`)
    try {
      replace(body, picture(panel, { ...data, annotations }, body))
    } catch (error) {
      replace(body, failure(error))
      throw error
    }
  }
}

/** The next round, which is looked after, meets the same end and says so. */
function leftToNextRound() {}

function frameOf(panel) {
  const body = h('div.picture', {}, h('p.quietly', {}, 'Loading\u2026'))
  const figure = h(`figure.panel.${panel.kind}`, { id: `panel-${panel.id}` }, [
    h('h3', { title: panel.description }, panel.title),
    body,
    h('figcaption.note', {}, panel.description),
  ])
  /** When it was drawn last; 0: never. */
  return { figure, body, round: 0 }
}

/** Calls `draw` where one comes near that was never drawn. */
function whenNear(frames, draw) {
  const watch = new IntersectionObserver(
    () => {
      if (frames.some(({ figure, round }) => round === 0 && isNear(figure))) draw()
    },
    { rootMargin: '50% 0px' },
  )
  for (const { figure } of frames) watch.observe(figure)
}

/** Within half a window of what is seen. */
function isNear(figure) {
  const { top, bottom } = figure.getBoundingClientRect()
  return bottom > -innerHeight / 2 && top < 1.5 * innerHeight
}

/** What is drawn over the pictures, in words too. */
function annotated(annotations) {
  return h(
    'ul.legend.annotations',
    { 'aria-label': 'Drawn over the pictures' },
    annotations.map(({ name, color, spans, notes: [note] }) =>
      h('li', {}, [
        h(`i.mark.${color}`),
        spans.length > 0 ? `${name}: ${lately(spans)}` : (note ?? `${name}: none in this time`),
      ]),
    ),
  )
}

function lately(spans) {
  const named = [...new Set(spans.map(({ text }) => text))].slice(0, 4).join(', ')
  return `${spans.length} (${named}), the last from ${clock(spans.at(-1).from)}`
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
    series.map(({ name, values: known }, place) => {
      const { color, dash } = lineOf(name, place)
      return h(
        'li',
        {},
        h(`i.line${color}.dash${dash}`),
        `${name} `,
        h(
          'b',
          {},
          withUnit(
            known.findLast((one) => one !== null),
            unit,
          ),
        ),
      )
    }),
  )
}
