// A stored group as slime's rollout buffer hands it out: one item an episode, in JSON text. Runs in a worker.
import type { GroupEnvelope } from '../../protocol/delivery.ts'
import type { DeliveredEpisode } from '../../protocol/group.ts'
import type { JsonObject, JsonValue } from '../../protocol/json.ts'
import type { Engine } from '../../rollout/episode.ts'

/** What becomes an item's `reward`, and when it is handed out (Unix seconds). */
export interface SlimeForm {
  kind: 'slime'
  reward: 'reward' | 'advantage'
  at: number
}

/** The parts of a trajectory that an item is made of. */
interface Trajectory {
  policy: { backend: string }
  messages: { role: string; content: string }[]
  turns: { finish: string }[]
}

/**
 * The items of all groups, in order, as the JSON text of one list. slime tokenises `messages` again and knows no tools:
 * the system message is therefore the one that the policy was shown, tools and all, and an assistant's content the text
 * that was sampled, calls and all. Keys: slime_plugins/rollout_buffer/rollout_buffer_example.py.
 */
export function slimeItems(
  groups: readonly GroupEnvelope[],
  form: SlimeForm,
  engine: Pick<Engine, 'chatModel'>,
): Uint8Array {
  const items = groups.flatMap((group) =>
    group.episodes.map(({ head, trajectory }) => {
      if (head.reward === null || head.advantage === null || !trajectory)
        throw new TypeError(`episode ${head.id} is not scored: a group for slime is whole`)
      const record = JSON.parse(new TextDecoder().decode(trajectory)) as Trajectory
      return item(group.head, head, record, form)
    }),
  )
  void engine
  return new TextEncoder().encode(JSON.stringify(items))
}

function item(
  group: GroupEnvelope['head'],
  episode: Omit<DeliveredEpisode, 'grade' | 'samples'>,
  { messages, turns }: Trajectory,
  { reward, at }: SlimeForm,
): JsonObject {
  return {
    uid: episode.id,
    instance_id: (group.metadata.slime as JsonObject).instance_id as JsonValue,
    messages,
    reward: episode[reward],
    extra_info: {
      timestamp: at,
      finish_reason: turns.at(-1)?.finish ?? 'stop',
      raw_reward: episode.reward,
      round_number: turns.length,
    },
  }
}
