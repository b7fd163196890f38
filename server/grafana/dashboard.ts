// dashboard.json: the panels laid out for Grafana, by its published types.
import type { DashboardJson, PanelJson, PanelKind, PrometheusTarget } from './grafana-types.ts'
import { LEARNING_ROWS } from './learning-panels.ts'
import type { PanelPlan } from './panel-plan.ts'
import { SERVING_ROWS } from './serving-panels.ts'

const DATASOURCE = { type: 'prometheus', uid: '$datasource' }

/** Grafana's grid is 24 wide. */
const GRID = 24
const STAT_SIZE = { w: 4, h: 4 }
const PANEL_SIZE = { w: 8, h: 8 }

/** The whole dashboard. Stable ids: a new panel goes to the end of its row or takes the ids after it along. */
export function createDashboard(): DashboardJson {
  const panels: DashboardJson['panels'] = []
  let y = 0
  let id = 1
  for (const row of [...LEARNING_ROWS, ...SERVING_ROWS]) {
    const gridPos = { x: 0, y, w: GRID, h: 1 }
    panels.push({ type: 'row', id: id++, title: row.title, collapsed: false, gridPos, panels: [] })
    y++
    let x = 0
    let height = 0
    for (const plan of row.panels) {
      const { w, h } = plan.kind === 'stat' ? STAT_SIZE : PANEL_SIZE
      if (x + w > GRID) {
        x = 0
        y += height
      }
      panels.push(drawn(plan, id++, { x, y, w, h }))
      x += w
      height = h
    }
    y += height
  }
  return {
    uid: 'paddock-reward-health',
    title: 'Paddock: reward health',
    description: 'Is the run learning, and if not, why. Written by `pnpm grafana`.',
    tags: ['paddock', 'generated'],
    editable: false,
    timezone: 'browser',
    graphTooltip: 1,
    schemaVersion: 39,
    refresh: '10s',
    time: { from: 'now-1h', to: 'now' },
    templating: {
      list: [
        {
          type: 'datasource',
          name: 'datasource',
          label: 'Prometheus',
          query: 'prometheus',
          current: { text: '', value: '' },
        },
        variable('env', 'label_values(paddock_groups_started_total, env)'),
        variable('mode', 'label_values(paddock_groups_started_total, mode)'),
        variable('backend', 'label_values(paddock_backend_breaker_state, backend)'),
      ],
    },
    annotations: {
      list: [
        annotation('Alerts', 'red', 'ALERTS{alertstate="firing"}', '{{alertname}}'),
        annotation('Weight updates', 'blue', 'changes(paddock_policy_version[1m]) > 0', 'weights'),
      ],
    },
    panels,
  }
}

type Variables = NonNullable<DashboardJson['templating']['list']>
type Annotations = NonNullable<DashboardJson['annotations']['list']>

function variable(name: string, query: string): Variables[number] {
  return {
    type: 'query',
    name,
    datasource: DATASOURCE,
    query: { query, refId: name },
    definition: query,
    current: { text: ['All'], value: ['$__all'] },
    multi: true,
    includeAll: true,
    allValue: '.*',
    refresh: 2,
    sort: 1,
  }
}

function annotation(
  name: string,
  iconColor: string,
  expr: string,
  title: string,
): Annotations[number] {
  return {
    name,
    enable: true,
    iconColor,
    datasource: DATASOURCE,
    expr,
    titleFormat: title,
    step: '30s',
  }
}

function drawn(plan: PanelPlan, id: number, gridPos: PanelJson['gridPos']): PanelJson {
  const { title, description, kind, unit, thresholds } = plan
  const targets = plan.queries.map((query, index) =>
    target(query, String.fromCharCode(65 + index), kind),
  )
  const common = { id, title, description, gridPos, datasource: DATASOURCE, targets }
  const steps = thresholds
    ? [
        { color: thresholds.below, value: null },
        ...thresholds.steps.map(([color, value]) => ({ color, value })),
      ]
    : [{ color: 'green', value: null }]
  const defaults = { unit, thresholds: { mode: 'absolute' as const, steps } }
  const plain = { defaults, overrides: [] }
  const reduceOptions = { calcs: ['lastNotNull'], fields: '', values: false }
  const tooltip = { mode: 'multi' as const, sort: 'desc' as const }
  const legend = {
    displayMode: 'list' as const,
    placement: 'bottom' as const,
    showLegend: true,
    calcs: [],
  }
  switch (kind) {
    case 'stat':
      return {
        ...common,
        type: kind,
        fieldConfig: plain,
        options: {
          graphMode: 'area',
          colorMode: 'value',
          justifyMode: 'auto',
          textMode: 'auto',
          orientation: 'auto',
          wideLayout: true,
          showPercentChange: false,
          percentChangeColorMode: 'standard',
          reduceOptions,
        },
      }
    case 'timeseries':
      return {
        ...common,
        type: kind,
        fieldConfig: {
          defaults: {
            ...defaults,
            custom: {
              lineWidth: 1,
              fillOpacity: 8,
              thresholdsStyle: { mode: thresholds ? 'dashed' : 'off' },
            },
          },
          overrides: [],
        },
        options: { legend, tooltip },
      }
    case 'heatmap':
      return {
        ...common,
        type: kind,
        fieldConfig: plain,
        options: {
          calculate: false,
          color: {
            scheme: 'Oranges',
            fill: 'dark-orange',
            exponent: 0.5,
            steps: 64,
            reverse: false,
          },
          showValue: 'never',
          yAxis: {},
          legend: { show: true },
          tooltip: { mode: 'single' },
          exemplars: { color: 'rgba(255,0,255,0.7)' },
        },
      }
    case 'table':
      return {
        ...common,
        type: kind,
        fieldConfig: plain,
        options: { frameIndex: 0, showHeader: true },
      }
    case 'state-timeline':
      return {
        ...common,
        type: kind,
        fieldConfig: {
          defaults: {
            ...defaults,
            custom: { fillOpacity: 70 },
            thresholds: {
              mode: 'absolute',
              steps: [
                { color: 'green', value: null },
                { color: 'red', value: 1 },
              ],
            },
          },
          overrides: [],
        },
        options: { showValue: 'never', rowHeight: 0.9, legend, tooltip },
      }
  }
}

function target(
  { expr, legend }: PanelPlan['queries'][number],
  refId: string,
  kind: PanelKind,
): PrometheusTarget {
  const instant = kind === 'table'
  return {
    refId,
    expr,
    datasource: DATASOURCE,
    instant,
    range: !instant,
    exemplar: kind === 'heatmap',
    legendFormat: legend,
    format: kind === 'table' ? 'table' : kind === 'heatmap' ? 'heatmap' : 'time_series',
  }
}
