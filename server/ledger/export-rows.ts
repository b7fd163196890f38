// The ledger's finished episodes as flat rows: one type a column in every row, so that `datasets` and pandas load them.
import type { GroupRecord } from '../../rollout/ports.ts'
import { keys, nameOf } from './keys.ts'
import type { LedgerReader } from './open-reader.ts'

/** Version of the rows. It grows when a column changes its meaning or goes. */
const ROW_VERSION = 1

export interface ExportRow {
  schema_version: number
  batch: string
  group: string
  episode: string
  task: string
  seed: number
  contract: string
  verdict: string
  /** How the group stands: ready, leased, or how it left. */
  delivery: string
  outcome: string
  reason: string
  /** Null exactly where the outcome carries none. */
  reward: number | null
  advantage: number | null
  rewards_json: string
  metadata_json: string
  messages: { role: string; content: string }[]
  turns: number
  prompt_tokens: number
  completion_tokens: number
}

interface Trajectory {
  messages?: { role: string; content: unknown }[]
  turns?: { prompt_tokens: number; completion_tokens: number }[]
}

/** Every episode of every finished group whose bytes are still there; of one batch where it is named. */
export function* exportRows(ledger: LedgerReader, batch: string | null): Generator<ExportRow> {
  for (const key of ledger.keys(batch === null ? 'group/' : `group/${batch}/`)) {
    const record = ledger.json<GroupRecord>(key)
    if (!record) continue
    const { head } = record
    const delivery = standing(ledger, record)
    for (const episode of record.episodes) {
      const { messages = [], turns = [] } = trajectory(ledger, episode.id)
      yield {
        schema_version: ROW_VERSION,
        batch: record.batch,
        group: nameOf(key),
        episode: episode.id,
        task: head.task,
        seed: head.seed,
        contract: head.contract,
        verdict: head.verdict,
        delivery,
        outcome: episode.outcome,
        reason: episode.reason ?? '',
        reward: episode.reward,
        advantage: episode.advantage,
        rewards_json: JSON.stringify(episode.rewards ?? {}),
        metadata_json: JSON.stringify(head.metadata),
        messages: messages.map(({ role, content }) => ({
          role,
          content: typeof content === 'string' ? content : JSON.stringify(content ?? ''),
        })),
        turns: turns.length,
        prompt_tokens: turns.reduce((sum, turn) => sum + turn.prompt_tokens, 0),
        completion_tokens: turns.reduce((sum, turn) => sum + turn.completion_tokens, 0),
      }
    }
  }
}

/** A batch that is forgotten has left none of its groups behind, and how each left is no longer known. */
function standing(ledger: LedgerReader, { batch, id }: GroupRecord): string {
  const state = ledger.json<{ state: { phase: string; settlement: string | null } }>(
    keys.delivery(batch, id),
  )?.state
  return state ? (state.settlement ?? state.phase) : 'settled'
}

function trajectory(ledger: LedgerReader, episode: string): Trajectory {
  const bytes = ledger.bytes(keys.blob(episode))
  if (!bytes) return {}
  const rowBytes = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true)
  return JSON.parse(new TextDecoder().decode(bytes.subarray(4 + rowBytes))) as Trajectory
}
