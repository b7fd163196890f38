// A trainer that leases, trains and acknowledges over all lives of a server, follows its events, and now and then dies.
import type { HeardOutcome, History } from './history.ts'

export interface Trainer {
  /** Works against this server until `signal` aborts: the server is killed then. */
  work(url: string, life: number, signal: AbortSignal): Promise<void>
  /** Submits nothing more. */
  finish(): void
  /** Everything that was submitted is done. */
  isDone(): boolean
  /** Ids of batches that are not. */
  open(): string[]
  deaths(): number
}

export interface TrainerOptions {
  history: History
  tasks: { spec: object; environment: string }[]
  groupSize: number
  /** Batches that are open at once. */
  open: number
  /** In [0, 1). */
  random(): number
}

/** Share of leases after which the trainer dies before it acknowledges. */
const DEATHS = 0.15
const LEASE_SECONDS = 1.5

interface Leased {
  groups: {
    id: string
    lease: { id: string }
    episodes: { id: string; reward: number | null }[]
  }[]
  done: boolean
}

export function createTrainer(options: TrainerOptions): Trainer {
  const { history, tasks, groupSize, random } = options
  /** Ids of batches that are not done. */
  const open = new Set<string>()
  let count = 0
  let deaths = 0
  let finishing = false

  async function call<T>(url: string, signal: AbortSignal, body?: unknown): Promise<T> {
    const response = await fetch(url, {
      signal,
      ...(body !== undefined && {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      }),
    })
    if (!response.ok) throw new Error(`${url}: ${response.status} ${await response.text()}`)
    return response.json() as Promise<T>
  }

  function nextBatch(): string {
    const id = `torture-${count++}`
    if (!history.submitted(id, tasks.length, groupSize)) return nextBatch()
    open.add(id)
    return id
  }

  /** One batch from its submission to its end. */
  async function train(url: string, id: string, life: number, signal: AbortSignal): Promise<void> {
    await call(`${url}/v1/batches`, signal, { id, tasks, group_size: groupSize })
    const following = follow(url, id, life, signal)
    following.catch(() => {})
    for (;;) {
      const body = { max: 2, lease_s: LEASE_SECONDS, wait_s: 5 }
      const leased = await call<Leased>(`${url}/v1/batches/${id}/lease`, signal, body)
      if (leased.done) break
      for (const group of leased.groups) history.leased(group)
      if (leased.groups.length === 0) continue
      if (random() < DEATHS) {
        deaths++
        continue
      }
      const groups = leased.groups.map(({ id, lease }) => ({ id, lease: lease.id }))
      const acks = await call<{ groups: { id: string; result: string }[] }>(
        `${url}/v1/batches/${id}/ack`,
        signal,
        { groups },
      )
      for (const { id, result } of acks.groups) history.acked(id, result)
    }
    const progress = await call<{ groups: { settled: Record<string, number> } }>(
      `${url}/v1/batches/${id}`,
      signal,
    )
    history.done(id, progress.groups.settled)
    open.delete(id)
  }

  async function follow(url: string, id: string, life: number, signal: AbortSignal): Promise<void> {
    const { body } = await fetch(`${url}/v1/batches/${id}/events`, { signal })
    let text = ''
    for await (const chunk of body as ReadableStream<Uint8Array>) {
      text += Buffer.from(chunk).toString()
      const frames = text.split('\n\n')
      text = frames.pop() ?? ''
      for (const frame of frames) {
        const data = /^event: outcome\n(?:.*\n)*?data: (.*)$/m.exec(frame)?.[1]
        if (data) history.outcome(JSON.parse(data) as HeardOutcome, life)
      }
    }
  }

  return {
    async work(url, life, signal) {
      const lane = async () => {
        while (!signal.aborted) {
          const taken = [...open].find((id) => !working.has(id))
          const id = taken ?? (finishing ? null : nextBatch())
          if (id === null) return
          working.add(id)
          try {
            await train(url, id, life, signal)
          } finally {
            working.delete(id)
          }
        }
      }
      const working = new Set<string>()
      const lanes = await Promise.allSettled(Array.from({ length: options.open }, lane))
      const failed = lanes.find(({ status }) => status === 'rejected')
      // A killed server cuts its connections.
      if (failed?.status === 'rejected' && !signal.aborted) throw failed.reason
    },
    finish() {
      finishing = true
    },
    isDone: () => open.size === 0,
    open: () => [...open],
    deaths: () => deaths,
  }
}
