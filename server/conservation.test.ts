// Random faults under a scrape that never rests: no group is ever lost or counted twice. CONSERVATION_S sets how long.
import { setImmediate as breathe, setTimeout as wait } from 'node:timers/promises'
import { afterAll, expect, test } from 'vitest'
import { gaps, scrape } from './metrics/scrape.testkit.ts'
import { openHouse } from './testkit/house.testkit.ts'
import { writeLab } from './testkit/lab-environment.testkit.ts'

const SECONDS = Number(process.env.CONSERVATION_S ?? 30)
const SEED = Number(process.env.CONSERVATION_SEED ?? Date.now() % 1_000_000)

/** Faults of the policy, each in a share of the requests. */
const FAULTS = [
  '500',
  '429',
  'reset',
  'hang',
  'cut',
  'badjson',
  'empty',
  'abort',
  'context',
] as const
/** Troubles of an environment, where it is played. */
const TROUBLES = [
  { at: 'step', trouble: 'throw' },
  { at: 'grade', trouble: 'throw' },
  { at: 'step', trouble: 'exit' },
  { rewards: { quality: 7 } },
  {},
  {},
]

const lab = writeLab()
const house = await openHouse({
  tokens: false,
  settings: {
    environments: { lab: lab.module },
    runtime: { threads: 2 },
    limits: { max_groups_ready: 12, max_batches: 12 },
  },
  simulator: { style: { format: 'hermes', thinking: false, mix: { correct: 1, wrong: 1 } } },
})
afterAll(() => house.close())

/** Mulberry32: the same seed gives the same run, but for time. */
function dice(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

test(
  `both laws hold at every scrape for ${SECONDS} s (seed ${SEED})`,
  async () => {
    const roll = dice(SEED)
    const pick = <T>(options: readonly T[]): T => options[Math.floor(roll() * options.length)] as T
    const end = performance.now() + SECONDS * 1000
    const running = () => performance.now() < end
    const seen = { scrapes: 0, leased: 0, inFlight: 0 }

    async function scrapeOn(): Promise<void> {
      while (running()) {
        const now = await scrape(house.url)
        expect(gaps(now)).toEqual({ started: 0, finished: 0 })
        seen.scrapes++
        seen.leased = Math.max(seen.leased, now.sum('leases_active'))
        seen.inFlight = Math.max(seen.inFlight, now.sum('groups_in_flight'))
        await breathe()
      }
    }

    async function breakThings(): Promise<void> {
      while (running()) {
        await house.setFaults({ kind: pick(FAULTS), rate: roll() / 2 })
        await wait(500)
      }
      await house.setFaults()
    }

    /** A trainer that loses leases, gives groups back, cancels, and reads nothing for a while. */
    async function train(): Promise<void> {
      while (running()) {
        const isLab = roll() < 0.5
        const task = isLab
          ? { spec: { request: 'Measure it.', ...pick(TROUBLES) }, environment: 'lab' }
          : { task: `arithmetic/sum-${Math.floor(roll() * 40)}` }
        const submitted = await house.api
          .submit({
            tasks: [task, task, task],
            group_size: 1 + Math.floor(roll() * 4),
            limits: { turn_timeout_s: 1, group_timeout_s: 1 + roll() * 4 },
            groups: {
              attempts: 1 + Math.floor(roll() * 3),
              on_short: pick(['retry', 'top_up', 'close', 'drop']),
              zero_variance: pick(['deliver', 'drop', 'replace']),
              min_scored: 1,
            },
          })
          .catch(() => null)
        if (!submitted) await wait(100)
        else if (roll() < 0.15) await cancel(submitted.id)
        else await readSome(submitted.id)
      }
    }

    async function cancel(id: string): Promise<void> {
      await wait(roll() * 1000)
      await fetch(`${house.url}/v1/batches/${id}`, { method: 'DELETE' })
      await readSome(id)
    }

    async function readSome(id: string): Promise<void> {
      for (let done = false; !done && running(); ) {
        const leased = await house.api.lease(id, { max: 2, lease_s: 1, wait_s: 1 })
        done = leased.done
        if (leased.groups.length === 0 || roll() < 0.2) continue
        if (roll() < 0.8) await house.api.ack(id, leased.groups)
        else await nack(id, leased.groups)
        const { pause } = await house.api.progress(id)
        if (pause) await (roll() < 0.5 ? house.api.resume(id) : cancel(id))
      }
    }

    async function nack(id: string, groups: readonly { id: string; lease: { id: string } }[]) {
      const body = JSON.stringify({
        groups: groups.map(({ id, lease }) => ({ id, lease: lease.id })),
      })
      const headers = { 'content-type': 'application/json' }
      await fetch(`${house.url}/v1/batches/${id}/nack`, { method: 'POST', headers, body })
    }

    await Promise.all([scrapeOn(), breakThings(), train(), train(), train()])

    const last = await scrape(house.url)
    const verdicts = [...last.text.matchAll(/groups_finished_total\{.*outcome="(\w+)"\} (\d+)$/gm)]
    const met = verdicts.filter(([, , count]) => Number(count) > 0).map(([, verdict]) => verdict)
    console.log(
      `${seen.scrapes} scrapes, ${last.sum('groups_finished_total')} groups:`,
      ...new Set(met),
    )
    // The run was one in which laws could break: several things were under way, and ended in several ways.
    expect(seen.scrapes).toBeGreaterThan(SECONDS)
    expect(seen.inFlight).toBeGreaterThan(1)
    expect(seen.leased).toBeGreaterThan(0)
    expect(new Set(met).size).toBeGreaterThan(2)
  },
  SECONDS * 1000 + 60_000,
)
