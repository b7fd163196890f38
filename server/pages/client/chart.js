// Pictures of series by uPlot: lines, and a heat map of the buckets of a histogram.

import { h } from './dom.js'
import { figure } from './figure.js'
import { withUnit } from './figures.js'
import { clock } from './format.js'
import { lineOf } from './lines.js'
import uPlot from './uPlot.esm.js'

const HEIGHT = 180
/** Bounds that are written beside a heat map. */
const MOST_LABELS = 7
/** Room for the numbers of the vertical axis. */
const AXIS = 56
const BOUND_AXIS = 68

/**
 * @param {any} data
 * @param {string} unit as Grafana names it
 * @param {HTMLElement} body whose width the picture takes
 */
export function chart({ times, series, annotations }, unit, body) {
  const style = getComputedStyle(document.documentElement)
  const lines = series.map(({ name }, place) => {
    const { color, strokes } = lineOf(name, place)
    return {
      label: name,
      stroke: style.getPropertyValue(`--line${color}`),
      dash: strokes,
      width: 1.5,
      spanGaps: false,
      points: { show: false },
    }
  })
  const options = common(style, body, `${series.length} lines`)
  options.series = [{}, ...lines]
  options.hooks = { drawClear: [(plot) => drawSpans(plot, annotations, style)] }
  options.axes[1].values = (_, ticks) => ticks.map((tick) => withUnit(tick, unit))
  return drawn(options, [times, ...series.map(({ values }) => values)], series)
}

/** Bands behind the lines, each with a line where it begins. */
function drawSpans(plot, annotations, style) {
  const { ctx, bbox } = plot
  for (const { color, spans } of annotations) {
    ctx.fillStyle = style.getPropertyValue(`--mark-${color}`)
    for (const { from, to } of spans) {
      const left = Math.max(bbox.left, plot.valToPos(from, 'x', true))
      const right = Math.min(bbox.left + bbox.width, plot.valToPos(to, 'x', true))
      if (right < left) continue
      ctx.globalAlpha = 0.12
      ctx.fillRect(left, bbox.top, right - left, bbox.height)
      ctx.globalAlpha = 0.9
      ctx.fillRect(left, bbox.top, Math.max(1, devicePixelRatio), bbox.height)
    }
  }
  ctx.globalAlpha = 1
}

/** Rows are buckets by their upper bound; the more was observed, the fuller the colour. */
export function heatmap({ times, series }, body) {
  const style = getComputedStyle(document.documentElement)
  const bound = ({ labels: { le } }) => Number(le === '+Inf' ? Number.POSITIVE_INFINITY : le)
  const buckets = series.toSorted((a, b) => bound(a) - bound(b))
  const counts = buckets.map(({ values }, row) =>
    values.map((value, at) => Math.max(0, (value ?? 0) - (buckets[row - 1]?.values[at] ?? 0))),
  )
  const most = Math.max(...counts.flat())
  const options = common(style, body, `heat map of ${buckets.length} buckets`)
  options.series = [{}, { paths: () => null, points: { show: false } }]
  options.scales.y = { range: [0, buckets.length] }
  const apart = Math.ceil(buckets.length / MOST_LABELS)
  const named = [...buckets.keys()].filter((row) => row % apart === 0)
  options.axes[1].splits = () => named.map((row) => row + 0.5)
  options.axes[1].values = () => named.map((row) => boundText(bound(buckets[row])))
  options.axes[1].size = BOUND_AXIS
  options.axes[1].grid = { show: false }
  options.hooks = {
    draw: [
      (plot) => {
        const { ctx } = plot
        const wide = (plot.bbox.width / times.length) * 1.02
        const high = plot.bbox.height / buckets.length
        ctx.fillStyle = style.getPropertyValue('--heat')
        for (const [row, cells] of counts.entries())
          for (const [at, count] of cells.entries()) {
            if (count === 0) continue
            ctx.globalAlpha = 0.15 + 0.85 * Math.sqrt(count / most)
            ctx.fillRect(
              plot.valToPos(times[at], 'x', true) - wide / 2,
              plot.valToPos(row + 1, 'y', true),
              wide,
              high,
            )
          }
        ctx.globalAlpha = 1
      },
    ],
  }
  return drawn(options, [times, times.map(() => null)], buckets)
}

/** @returns {any} */
function common(style, body, what) {
  const ink = style.getPropertyValue('--soft')
  const line = style.getPropertyValue('--line')
  const axis = {
    stroke: ink,
    grid: { stroke: line, width: 1 },
    ticks: { stroke: line, width: 1 },
    font: '12px system-ui, sans-serif',
  }
  return {
    what,
    width: Math.max(200, body.clientWidth),
    height: HEIGHT,
    legend: { show: false },
    cursor: { show: false },
    scales: { x: { time: true } },
    axes: [
      { ...axis, values: (_, ticks) => ticks.map(clock) },
      { ...axis, size: AXIS },
    ],
  }
}

const boundText = (le) => `\u2264 ${Number.isFinite(le) ? figure(le) : '\u221e'}`

/** A canvas says nothing to those who cannot see it: its last values stand in its name. */
function drawn(plan, data, series) {
  const { what, ...options } = plan
  const last = series.map(
    ({ name, values }) => `${name} ${figure(values.findLast((one) => one !== null))}`,
  )
  const frame = h('div', { role: 'img', 'aria-label': `${what}; last: ${last.join(', ')}` })
  new uPlot(/** @type {any} */ (options), data, frame)
  return frame
}
