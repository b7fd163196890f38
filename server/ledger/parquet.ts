// The exported rows as one Parquet file: strings, 64-bit whole numbers and doubles; messages as JSON text.
import { parquetWriteBuffer } from 'hyparquet-writer'
import type { ExportRow } from './export-rows.ts'

type Column = { type: 'STRING' | 'DOUBLE' | 'INT64'; nullable?: true }

const text: Column = { type: 'STRING' }
const whole: Column = { type: 'INT64' }
const number: Column = { type: 'DOUBLE', nullable: true }

/** Every column of the rows, in their order. */
const COLUMNS: Record<Exclude<keyof ExportRow, 'messages'> | 'messages_json', Column> = {
  schema_version: whole,
  batch: text,
  group: text,
  episode: text,
  task: text,
  seed: whole,
  contract: text,
  verdict: text,
  delivery: text,
  outcome: text,
  reason: text,
  reward: number,
  advantage: number,
  rewards_json: text,
  metadata_json: text,
  messages_json: text,
  turns: whole,
  prompt_tokens: whole,
  completion_tokens: whole,
}

/** The bytes of the file. The columns are those of the JSON Lines, but `messages`, which is `messages_json` here. */
export function parquetOf(rows: readonly ExportRow[]): Uint8Array {
  const flat = rows.map(({ messages, ...row }) => ({
    ...row,
    messages_json: JSON.stringify(messages),
  }))
  const columnData = Object.entries(COLUMNS).map(([name, { type, nullable = false }]) => ({
    name,
    type,
    nullable,
    data: flat.map((row) => {
      const value = row[name as keyof typeof row]
      return type === 'INT64' ? BigInt(value as number) : value
    }),
  }))
  return new Uint8Array(parquetWriteBuffer({ columnData }))
}
