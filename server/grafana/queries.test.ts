// Every query of dashboard and rules against the catalogue; no server is needed for that.
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { CATALOGUE, PREFIX } from '../metrics/catalogue/catalogue.ts'
import { createDashboard } from './dashboard.ts'
import type { PanelJson } from './grafana-types.ts'
import { lint, unpicked } from './promql-lint.testkit.ts'
import { ALERT_TESTS } from './rule-tests.ts'
import { alertRules, recordingRules, WINDOWS } from './rules.ts'

const dashboard = createDashboard()
const panels = dashboard.panels.filter((panel): panel is PanelJson => panel.type !== 'row')
const alerts = alertRules(WINDOWS)
const expressions = [
  ...panels.flatMap((panel) => panel.targets.map(({ expr }) => [panel.title, expr] as const)),
  ...(dashboard.annotations.list ?? []).map(({ name, expr }) => [name, expr ?? ''] as const),
  ...recordingRules(WINDOWS).map(({ record, expr }) => [record, expr] as const),
  ...alerts.map(({ alert, expr }) => [alert, expr] as const),
]

test.each(expressions)('%s asks for what exists', (_, expr) => {
  expect(lint(expr)).toEqual([])
})

test('the lint finds a broken query, an unknown metric and an unknown label', () => {
  expect(lint('sum(rate(paddock_groups_finished_total[5m])')).not.toEqual([])
  expect(lint('paddock_groups_finishd_total')).toEqual(['no metric paddock_groups_finishd_total'])
  expect(lint('paddock_groups_finished_total{verdict="valid"}').join()).toMatch(/^no label verdict/)
  expect(lint('sum by (verdict) (paddock_groups_finished_total)')).toEqual(['no label verdict'])
})

describe('dashboard', () => {
  test('it has 36 panels in 7 rows, ids of its own, and none lies over another', () => {
    expect(panels).toHaveLength(36)
    expect(dashboard.panels.length - panels.length).toBe(7)
    expect(new Set(dashboard.panels.map(({ id }) => id)).size).toBe(43)
    const cells = dashboard.panels.flatMap(({ gridPos }) => {
      const { x = 0, y = 0, w = 0, h = 0 } = gridPos ?? {}
      return Array.from({ length: w * h }, (_, at) => `${x + (at % w)},${y + Math.floor(at / w)}`)
    })
    expect(new Set(cells).size).toBe(cells.length)
  })

  test('its types refuse what Grafana does not read', () => {
    // @ts-expect-error a title is text
    const title: PanelJson['title'] = 7
    // @ts-expect-error there is no such panel
    const kind: PanelJson['type'] = 'gauges'
    // @ts-expect-error a stat has no such colour mode
    const mode: PanelJson<'stat'>['options']['colorMode'] = 'rainbow'
    // @ts-expect-error a current value has text and value
    const current: NonNullable<(typeof dashboard.templating)['list']>[number]['current'] = {}
    expect([title, kind, mode, current]).toHaveLength(4)
  })

  test('every rate takes the interval that fits the scrape', () => {
    for (const panel of panels)
      for (const { expr } of panel.targets) expect(expr).not.toMatch(/\[\d+[smh]\]/)
  })
})

/** The first two are of the whole server; of components nobody counts the mode. */
const OF_ALL = [
  'Share of token budget spent',
  'Conservation gap (must be 0)',
  'Component flat in group',
]

test.each(panels.filter(({ title }) => !OF_ALL.includes(title ?? '')))(
  '$title honours every picker that its series have',
  ({ targets }) => {
    expect(targets.flatMap(({ expr }) => unpicked(expr))).toEqual([])
  },
)

test.each(panels)(
  '$title names the quantiles that it draws, and no others',
  ({ title, targets }) => {
    const drawn = targets.flatMap(({ expr }) =>
      [...expr.matchAll(/histogram_quantile\(([\d.]+)/g)].map(([, q]) => `p${100 * Number(q)}`),
    )
    const foreign = targets.flatMap(({ expr }) => /nodejs_\w+_(p\d+)_/.exec(expr)?.[1] ?? [])
    expect([...new Set(title?.match(/\bp\d+\b/g))]).toEqual([...drawn, ...foreign])
  },
)

describe('alerts', () => {
  test('none compares the clocks of two processes', () => {
    expect(alerts.filter(({ expr }) => /\b(time|timestamp)\(/.test(expr))).toEqual([])
  })

  test.each(alerts.map((rule) => [rule.alert, rule] as const))(
    '%s has a panel, a test that fires, one that stays quiet, and a runbook',
    (alert, { annotations }) => {
      expect(panels.map((panel) => panel.title)).toContain(annotations.panel)
      expect(ALERT_TESTS[alert]?.fires.length).toBeGreaterThan(0)
      expect(ALERT_TESTS[alert]?.quiet.length).toBeGreaterThan(0)
      const page = readFileSync(new URL(`../../${annotations.runbook}`, import.meta.url), 'utf8')
      expect(page).toMatch(new RegExp(`^# ${alert}\n`))
      for (const part of ['What it means', 'How to confirm', 'What to do'])
        expect(page).toContain(`\n## ${part}\n`)
      const named = page.match(/`paddock_[a-z0-9_:{}=",~.*|]+`/g) ?? []
      for (const query of named) expect(lint(query.slice(1, -1)), query).toEqual([])
    },
  )

  test('no test is for an alert that is gone', () => {
    expect(Object.keys(ALERT_TESTS).sort()).toEqual(alerts.map(({ alert }) => alert).sort())
  })
})

/** Shown by no panel and asked for by no rule: for the runbooks, and for who looks closer. */
const FOR_A_CLOSER_LOOK = [
  'build_info',
  'draining',
  'label_overflow_total',
  'group_scored_ratio',
  'attempts_total',
  'attempt_tokens_total',
  'attempt_seconds_total',
  'episode_retries_total',
  'episode_turns',
  'episode_samples_total',
  'episode_completion_tokens',
  'sampled_logprob',
  'reward_component_missing_total',
  'reward_duration_seconds',
  'canary_checks_total',
  'parser_flags_total',
  'drift_total',
  'text_mismatch_total',
  'parser_leniencies_total',
  'control_tokens_total',
  'tool_calls_total',
  'queue_bytes',
  'queue_oldest_age_seconds',
  'backend_retries_total',
  'backend_in_flight',
  'inter_token_seconds',
  'requests_total',
  'request_duration_seconds',
  'ready_wait_seconds',
  'leases_expired_total',
  'submissions_deduplicated_total',
  'trainer_polls_total',
  'callbacks_total',
  'mixed_version_groups_total',
  'trainer_last_seen_timestamp_seconds',
  'trainer_skipped_groups_total',
  'tokens_total',
  'http_request_duration_seconds',
  'requests_rejected_total',
  'ws_connections',
  'ws_buffered_bytes',
  'ws_closed_total',
  'store_bytes',
  'store_quarantined_total',
]

test('every metric is asked for by a panel or a rule, or is known to be for a closer look', () => {
  const asked = expressions.map(([, expr]) => expr).join('\n')
  const unasked = Object.keys(CATALOGUE).filter(
    (name) => !new RegExp(`\\b${PREFIX}${name}(_bucket|_sum|_count)?\\b`).test(asked),
  )
  expect(unasked.sort()).toEqual([...FOR_A_CLOSER_LOOK].sort())
})
