// Reads /metrics as Prometheus does: samples by name and labels, and sums over them.

export interface Scrape {
  /** Sum of a metric over all samples that have these labels; 0 where none has. */
  sum(name: string, labels?: Record<string, string>): number
  /** Number of our own series. */
  series: number
  text: string
}

export async function scrape(url: string): Promise<Scrape> {
  const text = await (await fetch(`${url}/metrics`)).text()
  const samples = [...text.matchAll(/^(paddock_\w+)(?:\{(.*)\})? (\S+)$/gm)].map(
    ([, name = '', labels = '', value]) => ({ name, labels: `,${labels},`, value: Number(value) }),
  )
  return {
    text,
    series: samples.length,
    sum: (name, wanted = {}) =>
      samples
        .filter((sample) => sample.name === `paddock_${name}`)
        .filter(({ labels }) =>
          Object.entries(wanted).every(([key, value]) => labels.includes(`,${key}="${value}",`)),
        )
        .reduce((total, { value }) => total + value, 0),
  }
}

/** The two laws as one scrape has them: both are 0 where nothing is lost and nothing counted twice. */
export function gaps({ sum }: Scrape): { started: number; finished: number } {
  const finished = sum('groups_finished_total')
  return {
    started: sum('groups_started_total') - finished - sum('groups_in_flight'),
    finished:
      finished +
      sum('recovered_items_total', { item: 'group' }) -
      sum('groups_settled_total') -
      sum('queue_depth', { queue: 'ready' }) -
      sum('leases_active'),
  }
}
