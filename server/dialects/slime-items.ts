// A stored group as slime's rollout buffer hands it out: one item an episode, in JSON text. Runs in a worker.
import type { GroupEnvelope } from '../../protocol/delivery.ts'
import type { DeliveredEpisode } from '../../protocol/group.ts'
import type { JsonObject } from '../../protocol/json.ts'
import { unpack } from '../../protocol/msgpack.ts'
import type { ChatModel } from '../../rollout/chat/chat-model.ts'
import type { Engine } from '../../rollout/episode.ts'

/** What becomes an item's `reward`, and when it is handed out (Unix seconds). */
export interface SlimeForm {
  kind: 'slime'
  reward: 'reward' | 'advantage'
  at: number
}

interface ItemMessage {
  role: string
  content: string
}

/** The parts of a trajectory that an item is made of. */
interface Trajectory {
  policy: { backend: string }
  messages: ItemMessage[]
  turns: unknown[]
}

/**
 * The items of all groups, in order, as the JSON text of one list. slime tokenises `messages` again and knows no tools:
 * the system message is therefore the one that the policy was shown, tools and all (where there is a tape to read it
 * from), and an assistant's content the text that was sampled, calls and all. Keys: slime_plugins/rollout_buffer.
 */
export function slimeItems(
  groups: readonly GroupEnvelope[],
  form: SlimeForm,
  engine: Pick<Engine, 'chatModel'>,
): Uint8Array {
  const items = groups.flatMap(({ head, episodes }) =>
    episodes.map((episode) => itemOf(head, episode, form, engine)),
  )
  return new TextEncoder().encode(JSON.stringify(items))
}

function itemOf(
  group: GroupEnvelope['head'],
  { head: episode, row, trajectory }: GroupEnvelope['episodes'][number],
  { reward, at }: SlimeForm,
  engine: Pick<Engine, 'chatModel'>,
): JsonObject {
  const { policy, messages, turns } = JSON.parse(new TextDecoder().decode(trajectory)) as Trajectory
  const shown = shownSystem(row, engine.chatModel(policy.backend))
  return {
    uid: episode.id,
    instance_id: instanceOf(group),
    messages: heard(messages).map((message) =>
      itemMessage(message, shown),
    ) as unknown as JsonObject[],
    reward: episode[reward],
    extra_info: {
      timestamp: at,
      finish_reason: episode.outcome === 'ok_truncated' ? 'length' : 'stop',
      raw_reward: episode.reward,
      round_number: turns.length,
      paddock: about(group, episode),
    },
  }
}

/** The `instance_id` under which a group goes out. */
export function instanceOf({ metadata }: Pick<GroupEnvelope['head'], 'metadata'>): number {
  return Number((metadata.slime as JsonObject | undefined)?.instance_id)
}

/** Up to the last answer: what came behind it the policy never saw, and one mask type of slime's trains the last message. */
function heard(messages: readonly ItemMessage[]): readonly ItemMessage[] {
  return messages.slice(0, messages.findLastIndex(({ role }) => role === 'assistant') + 1)
}

/** Python's tokenizers raise on a lone surrogate, and the whole answer would be lost with it. */
function itemMessage(message: ItemMessage, shown: string | null): ItemMessage {
  const content = message.role === 'system' && shown !== null ? shown : message.content
  return { ...message, content: content.toWellFormed() }
}

/** The first system message as it stands in the tape's prompt; null without a tape, or in another form than ChatML. */
function shownSystem(row: Uint8Array, model: ChatModel | null): string | null {
  const { samples } = unpack(row) as { samples: { ids: Uint8Array; prompt_length: number }[] }
  const [first] = samples
  if (!first || !model) return null
  const bytes = Uint8Array.from(first.ids.subarray(0, 4 * first.prompt_length))
  const prompt = model.decode(new Int32Array(bytes.buffer))
  const start = '<|im_start|>system\n'
  const end = prompt.indexOf('<|im_end|>')
  return prompt.startsWith(start) && end >= 0 ? prompt.slice(start.length, end) : null
}

function about(
  group: GroupEnvelope['head'],
  episode: Omit<DeliveredEpisode, 'grade' | 'samples'>,
): JsonObject {
  const { id, task, seed, verdict, contract, estimator, policy } = group
  const { outcome, reason, rewards, advantage } = episode
  return {
    ...{ group: id, task, seed, verdict, contract, estimator },
    policy: { ...policy },
    ...{ outcome, reason, rewards, advantage },
  }
}
