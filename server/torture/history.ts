// What a trainer has heard over all lives of a server, and which promises what it heard has broken.
import { requestSeed } from '../../rollout/request-seed.ts'

export interface HeardOutcome {
  episode: string
  attempt: number
  reward: number | null
}

export interface Finding {
  /** Finished episodes that were asked for again, or came with another reward. */
  lost: string[]
  /** Groups that were leased after their acknowledgement had been answered, or acknowledged twice. */
  twice: string[]
  /** Groups that were never acknowledged though their batch is done, and batches that never were. */
  forgotten: string[]
  /** Episodes of which one kill repeated more than one policy request. */
  repeated: string[]
}

export interface History {
  /** False where a request of this batch has the seed of another's: seeds have 31 bits, and it must not be submitted. */
  submitted(batch: string, groups: number, groupSize: number): boolean
  outcome(heard: HeardOutcome, life: number): void
  leased(group: { id: string; episodes: { id: string; reward: number | null }[] }): void
  acked(group: string, result: string): void
  /** A batch that is done, with how its groups are counted. */
  done(batch: string, settled: Record<string, number>): void
  /** A batch that was not done when the time was over. */
  unfinished(batch: string): void
  totals(): { episodes: number; acked: number; batches: number }
  /** `seen`: by the request's seed, the lives in which it was asked. */
  check(seen: ReadonlyMap<number, readonly number[]>): Finding & { repeats: number }
}

/** Turns and attempts of one episode that are looked for. */
const MAX_TURNS = 8
const MAX_ATTEMPTS = 3

/** `onHeard` is called whenever the totals have grown. */
export function createHistory(onHeard: () => void): History {
  const batches = new Map<string, { groups: number; groupSize: number }>()
  /** By episode and attempt: the life in which it was heard of, and its reward. */
  const finished = new Map<string, { life: number; reward: number | null }>()
  const rewards = new Map<string, number | null>()
  const acks = new Map<string, number>()
  /** Of all requests that the submitted batches can send. */
  const seeds = new Set<number>()
  const finding: Finding = { lost: [], twice: [], forgotten: [], repeated: [] }

  return {
    submitted(batch, groups, groupSize) {
      const own = attemptsOf(batch, groups, groupSize).flatMap((attempt) => attempt.seeds)
      if (new Set(own).size < own.length || own.some((seed) => seeds.has(seed))) return false
      for (const seed of own) seeds.add(seed)
      batches.set(batch, { groups, groupSize })
      return true
    },
    outcome({ episode, attempt, reward }, life) {
      const key = `${episode} ${attempt}`
      if (!finished.has(key)) finished.set(key, { life, reward })
      rewards.set(episode, reward)
      onHeard()
    },
    leased({ id, episodes }) {
      if (acks.has(id)) finding.twice.push(`${id} was leased after its ack`)
      for (const { id: episode, reward } of episodes)
        if (rewards.has(episode) && rewards.get(episode) !== reward)
          finding.lost.push(`${episode} had reward ${rewards.get(episode)} and came with ${reward}`)
    },
    acked(group, result) {
      if (result !== 'acked') return
      if (acks.has(group)) finding.twice.push(`${group} was acknowledged twice`)
      acks.set(group, (acks.get(group) ?? 0) + 1)
      onHeard()
    },
    done(batch, settled) {
      const groups = batches.get(batch)?.groups ?? 0
      if (settled.acked !== groups)
        finding.forgotten.push(`${batch}: ${JSON.stringify(settled)} of ${groups} groups`)
    },
    unfinished: (batch) =>
      void finding.forgotten.push(`${batch} was not done when the time was over`),
    totals: () => ({ episodes: rewards.size, acked: acks.size, batches: batches.size }),
    check(seen) {
      const lost = [...finding.lost]
      /** The turns of an episode that a life asked for again. */
      const again = new Map<string, string[]>()
      for (const [batch, { groups, groupSize }] of batches)
        for (const { episode, attempt, seeds } of attemptsOf(batch, groups, groupSize)) {
          const end = finished.get(`${episode} ${attempt}`)
          for (const [turn, seed] of seeds.entries()) {
            const lives = seen.get(seed) ?? []
            if (end && lives.some((life) => life > end.life))
              lost.push(`${episode} was asked for again after its end was told`)
            for (const life of lives.slice(1)) {
              const key = `${episode}: repeated in life ${life}`
              const what = `turn ${turn} of attempt ${attempt}, asked in lives ${lives.join(', ')}`
              again.set(key, [...(again.get(key) ?? []), what])
            }
          }
        }
      const repeated = [...again].filter(([, turns]) => turns.length > 1)
      return {
        ...finding,
        lost,
        repeated: [
          ...finding.repeated,
          ...repeated.map(([key, turns]) => `${key}: ${turns.join('; ')}`),
        ],
        repeats: [...again.values()].flat().length,
      }
    },
  }
}

/** Every attempt at an episode of the batch, with the seeds of all requests that it can send. */
function attemptsOf(batch: string, groups: number, groupSize: number) {
  const places = range(groups).flatMap((group) =>
    range(groupSize).map((index) => ({ group, index })),
  )
  return places.flatMap(({ group, index }) =>
    range(MAX_ATTEMPTS).map((before) => {
      const attempt = before + 1
      const plan = { policy: { seedBase: batch }, groupIndex: group, index, attempt }
      return {
        episode: `${batch}.g${group}.e${index}`,
        attempt,
        seeds: range(MAX_TURNS).map((turn) => requestSeed(plan as never, turn)),
      }
    }),
  )
}

const range = (length: number) => Array.from({ length }, (_, index) => index)
