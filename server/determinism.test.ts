// The same batch on one thread and on three, one episode at a time and all at once: the same episodes, byte for byte.
import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import type { DeliveredEpisode } from '../protocol/group.ts'
import type { JsonObject } from '../protocol/json.ts'
import { openHouse } from './testkit/house.testkit.ts'

const MIX = {
  correct: 0.4,
  wrong: 0.2,
  forbidden: 0.1,
  malformed: 0.2,
  truncated: 0.05,
  prose: 0.05,
}

const request = (backend: string): JsonObject => ({
  id: `same-${backend}`,
  tasks: [
    { task: 'office/dev-05-share-the-right-file' },
    { task: 'office/dev-06-assign-laptop-through-outage' },
    { task: 'arithmetic/sum-3' },
  ],
  group_size: 4,
  mode: 'eval',
  reward: {},
  policy: { backend, mode: backend === 'main' ? 'chat' : 'tokens', sampling: { max_tokens: 512 } },
})

interface Played {
  /** Everything delivered of an episode but its attempt. */
  episodes: Omit<DeliveredEpisode, 'attempt' | 'seconds'>[]
  trajectories: string[]
}

async function play(threads: number, atOnce: number, latency: string): Promise<Played> {
  const house = await openHouse({
    office: true,
    simulator: {
      style: { format: 'hermes', thinking: false, mix: MIX },
      latency:
        latency === 'none'
          ? { kind: 'fixed', ms: 0 }
          : { kind: 'lognormal', medianMs: 4, sigma: 1 },
    },
    settings: { runtime: { threads, max_episodes: atOnce } },
  })
  try {
    const played: Played = { episodes: [], trajectories: [] }
    for (const backend of ['main', 'sglang'])
      for (const tasks of [[0, 1], [2]]) {
        const { tasks: all, id, ...rest } = request(backend)
        const chosen = tasks.map((index) => (all as JsonObject[])[index] as JsonObject)
        const { groups } = await house.run({ ...rest, id: `${id}-${tasks.length}`, tasks: chosen })
        const episodes = groups
          .flatMap((group) => group.episodes)
          .sort((a, b) => a.id.localeCompare(b.id))
        // Which attempt it was and how long it took are the machine's.
        for (const { attempt: _, seconds: __, ...episode } of episodes) {
          played.episodes.push(episode)
          const answer = await fetch(`${house.url}/v1/episodes/${episode.id}`)
          const bytes = Buffer.from(await answer.arrayBuffer())
          played.trajectories.push(createHash('sha256').update(bytes).digest('hex'))
        }
      }
    return played
  } finally {
    await house.close()
  }
}

test('threads, order and latency change nothing of what an episode holds', async () => {
  const alone = await play(1, 1, 'none')
  const crowded = await play(3, 24, 'lognormal')
  expect(alone.episodes).toHaveLength(24)
  expect(new Set(alone.episodes.map(({ outcome }) => outcome))).toContain('ok')
  expect(crowded.episodes).toEqual(alone.episodes)
  expect(crowded.trajectories).toEqual(alone.trajectories)
}, 120_000)
