// Plays one case: a healthy house without a page, the fault, and the seconds until its alert fires and no other page does.
import { setTimeout as wait } from 'node:timers/promises'
import { INHIBITIONS } from '../rule-files.ts'
import { alertRules, WINDOWS } from '../rules.ts'
import type { Case } from './cases.ts'
import { type Lane, openLane } from './lane.ts'

export interface Climbed {
  fault: string
  /** Seconds from the fault to each of its alerts; null where it did not fire. */
  fired: { alert: string; seconds: number | null }[]
  /** Pages that nobody asked for, and what else went wrong; empty where all is well. */
  problems: string[]
  /** Queries of panels that gave numbers. */
  drawn: Set<string>
}

/** A healthy house is watched for so long, and so long is waited after the alert for others. */
const WATCH_MS = 4000
/** From fault to alert; most take under ten seconds, and a busy machine takes its time. */
const LIMIT_MS = 90_000

const PAGES = new Set(
  alertRules(WINDOWS).flatMap(({ alert, labels }) => (labels.severity === 'page' ? [alert] : [])),
)

export async function climb(one: Case, queries: readonly string[]): Promise<Climbed> {
  const lane = await openLane(one.plan)
  try {
    const problems: string[] = []
    if (one.plant) {
      await hasFinishedGroups(lane)
      await wait(WATCH_MS)
      for (const page of pages(await firing(lane)))
        problems.push(`${page} fired before there was a fault`)
    }
    const planted = performance.now()
    await one.plant?.(lane)
    const fired = await waitFor(lane, one.alerts, planted)
    await wait(WATCH_MS)
    const after = await firing(lane)
    for (const page of pages(after))
      if (!one.alerts.includes(page) && !isInhibited(page, after))
        problems.push(`${page} fired too`)
    return { fault: one.fault, fired, problems, drawn: await drawn(lane, queries) }
  } finally {
    await lane.close()
  }
}

async function firing({ prometheus }: Lane): Promise<Set<string>> {
  const alerts = await prometheus.alerts()
  const now = alerts.filter(({ state }) => state === 'firing')
  return new Set(now.map(({ labels }) => labels.alertname ?? ''))
}

function pages(alerts: ReadonlySet<string>): string[] {
  return [...alerts].filter((alert) => PAGES.has(alert))
}

/** As Alertmanager would have it. */
function isInhibited(page: string, firing: ReadonlySet<string>): boolean {
  if (firing.has('RolloutServerDown')) return true
  return INHIBITIONS.some(([source, targets]) => firing.has(source) && targets.includes(page))
}

async function hasFinishedGroups({ prometheus }: Lane): Promise<void> {
  const end = performance.now() + LIMIT_MS
  const finished = 'sum(paddock_groups_finished_total{outcome="valid"})'
  while (((await prometheus.query(finished))[0] ?? 0) < 8) {
    if (performance.now() > end) throw new Error('the healthy house finishes no groups')
    await wait(200)
  }
}

async function waitFor(
  lane: Lane,
  alerts: readonly string[],
  planted: number,
): Promise<Climbed['fired']> {
  const seconds = new Map<string, number>()
  while (seconds.size < alerts.length && performance.now() - planted < LIMIT_MS) {
    for (const alert of await firing(lane))
      if (alerts.includes(alert) && !seconds.has(alert))
        seconds.set(alert, (performance.now() - planted) / 1000)
    await wait(200)
  }
  return alerts.map((alert) => ({ alert, seconds: seconds.get(alert) ?? null }))
}

/** A query that fails throws: it is wrong, whatever the lane. */
async function drawn({ prometheus }: Lane, queries: readonly string[]): Promise<Set<string>> {
  const shown = new Set<string>()
  for (const query of queries) {
    const series = await prometheus.range(query)
    if (series.some((values) => values.some(Number.isFinite))) shown.add(query)
  }
  return shown
}
