// The bodies of slime's /get_rollout_data: items as bytes that were made elsewhere, and the figures that slime logs.
import type { JsonObject } from '../../protocol/json.ts'

/** How many samples a group has, and their mean reward before any normalisation. */
export interface GroupFigures {
  n: number
  mean: number
}

const ENCODER = new TextEncoder()

export function listText(items: readonly JsonObject[]): Uint8Array {
  return ENCODER.encode(JSON.stringify(items))
}

export function statsOf(items: readonly JsonObject[]): GroupFigures {
  const sum = items.reduce((total, { reward }) => total + Number(reward), 0)
  return { n: items.length, mean: sum / items.length }
}

/** What slime logs and keeps: `finished_groups` comes back as `skip_instance_ids` after a restart. */
function metaInfo(stats: readonly GroupFigures[], finished: readonly (string | number)[]) {
  const samples = stats.reduce((total, { n }) => total + n, 0)
  const reward = stats.reduce((total, { n, mean }) => total + n * mean, 0)
  return {
    total_samples: samples,
    num_groups: stats.length,
    avg_group_size: stats.length === 0 ? 0 : samples / stats.length,
    avg_reward: samples === 0 ? 0 : reward / samples,
    finished_groups: finished,
  }
}

/** The answer where no group is ready: slime asks again after three seconds. */
export function nothing(message: string): Uint8Array {
  const data = { data: [], meta_info: metaInfo([], []) }
  return ENCODER.encode(JSON.stringify({ success: false, message, data }))
}

/** Each body is a list of items as JSON text: they are joined as bytes, never read. */
export function answerBody(
  bodies: readonly Uint8Array[],
  stats: readonly GroupFigures[],
  finished: readonly (string | number)[],
): Uint8Array {
  const meta = metaInfo(stats, finished)
  const message = `Successfully read ${meta.total_samples} items`
  const head = `{"success":true,"message":${JSON.stringify(message)},"data":{"data":[`
  const tail = `],"meta_info":${JSON.stringify(meta)}}}`
  const comma = Buffer.from(',')
  const items = bodies.flatMap((body, index) => {
    const inner = body.subarray(1, -1)
    return index === 0 ? [inner] : [comma, inner]
  })
  return new Uint8Array(Buffer.concat([Buffer.from(head), ...items, Buffer.from(tail)]))
}
