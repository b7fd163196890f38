// Debian's Prometheus over one server, with the shipped rules and short windows.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { alertFile, prometheusFile, recordingFile } from '../rule-files.ts'
import type { Windows } from '../rules.ts'
import { type Child, startChild } from './child.ts'
import { freePort } from './free-port.ts'

interface Alert {
  labels: Record<string, string>
  state: 'pending' | 'firing'
}

export interface Prometheus {
  alerts(): Promise<Alert[]>
  /** Series of a query over the last minute, each with its numbers. */
  range(expr: string): Promise<number[][]>
  query(expr: string): Promise<number[]>
  stop(): Promise<void>
}

/** Scrapes `address` each second; resolves when the first scrape can be asked for. */
export async function startPrometheus(
  folder: string,
  address: string,
  windows: Windows,
): Promise<Prometheus> {
  const home = join(folder, 'prometheus')
  mkdirSync(home)
  const files = {
    'prometheus.yml': prometheusFile({ address, interval: '1s', alertmanager: null }),
    'recording.rules.yml': recordingFile(windows),
    'alerts.rules.yml': alertFile(windows),
  }
  for (const [name, text] of Object.entries(files)) writeFileSync(join(home, name), text)
  const port = await freePort()
  const child: Child = startChild('prometheus', [
    `--config.file=${join(home, 'prometheus.yml')}`,
    `--storage.tsdb.path=${join(home, 'data')}`,
    `--web.listen-address=127.0.0.1:${port}`,
    '--enable-feature=exemplar-storage',
    '--log.level=info',
  ])
  await child.says(/Server is ready to receive web requests/)
  const ask = async <T>(path: string): Promise<T> => {
    const response = await fetch(`http://127.0.0.1:${port}/api/v1/${path}`)
    const answer = (await response.json()) as { status: string; error?: string; data: T }
    if (answer.status !== 'success') throw new Error(`${decodeURIComponent(path)}: ${answer.error}`)
    return answer.data
  }
  const query = async (expr: string) => {
    const { result } = await ask<{ result: { value: [number, string] }[] }>(
      `query?query=${encodeURIComponent(expr)}`,
    )
    return result.map(({ value }) => Number(value[1]))
  }
  while ((await query('up{job="paddock"}')).length === 0) await wait(200)
  return {
    query,
    alerts: async () => (await ask<{ alerts: Alert[] }>('alerts')).alerts,
    async range(expr) {
      const end = Date.now() / 1000
      const span = `start=${end - 60}&end=${end}&step=1`
      const { result } = await ask<{ result: { values: [number, string][] }[] }>(
        `query_range?query=${encodeURIComponent(expr)}&${span}`,
      )
      return result.map(({ values }) => values.map(([, value]) => Number(value)))
    },
    stop: () => child.stop(),
  }
}
