// Lists and searches: which records match, in which order, and one page of them.
import type { JsonObject, JsonValue } from '../../../protocol/json.ts'
import type { Comparison } from '../catalogue/declare.ts'
import type { Entity, Tool } from '../catalogue/derive.ts'
import { instantOf } from './instant.ts'
import type { ReadRecord, Row } from './state.ts'
import { folded, sameValue } from './values.ts'

const DEFAULT_LIMIT = 20
/** More is asked for in vain: the page ends here and `next_offset` says how to go on. */
const MAX_LIMIT = 50

export interface Page {
  result: JsonObject
  /** What the model saw, for the audit. */
  reads: ReadRecord[]
}

/** One page of matching records, which are in order already. `limit` and `offset` are checked to be 1 and 0 or more. */
export function pageOf(entity: Entity, rows: readonly Row[], args: JsonObject): Page {
  const offset = Number(args.offset ?? 0)
  const end = offset + Math.min(Number(args.limit ?? DEFAULT_LIMIT), MAX_LIMIT)
  const page = rows.slice(offset, end)
  const depth = entity.summary ? 'summary' : 'full'
  return {
    result: {
      items: page.map((row) => summaryOf(entity, row)),
      total: rows.length,
      next_offset: end < rows.length ? end : null,
    },
    reads: page.map((row) => ({ entity: entity.name, id: String(row[entity.id]), depth })),
  }
}

/** Records in the entity's order: by its sort field, absent last, ties by id. */
export function sorted(entity: Entity, rows: readonly Row[]): Row[] {
  const [key, direction] = entity.sort
  const sign = direction === 'asc' ? 1 : -1
  return rows.toSorted((a, b) => {
    const [one, other] = [a[key], b[key]]
    if (one === undefined || other === undefined)
      return one === other ? byId(entity, a, b) : one === undefined ? 1 : -1
    return sign * order(one, other) || byId(entity, a, b)
  })
}

/** True where a record meets every filter that the arguments give a value. */
export function matchesFilters(tool: Tool, row: Row, args: JsonObject, offset: number): boolean {
  return Object.entries(args).every(([name, wanted]) => {
    if (name === 'query' || name === 'limit' || name === 'offset') return true
    const [field, comparison] = tool.filters.get(name) ?? [name, 'eq' as const]
    const value = row[field]
    return value !== undefined && compares(value, comparison, wanted, offset)
  })
}

/**
 * Records that hold at least half of the query's tokens, those with most tokens first, ties by id. `tokens` is not empty.
 */
export function searched(entity: Entity, rows: readonly Row[], tokens: readonly string[]): Row[] {
  return rows
    .map((row) => ({ row, hits: hitsOf(entity, row, tokens) }))
    .filter(({ hits }) => hits * 2 >= tokens.length)
    .sort((a, b) => b.hits - a.hits || byId(entity, a.row, b.row))
    .map(({ row }) => row)
}

const SCRIPTS_WITHOUT_SPACES = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}ー]+/gu

/**
 * The tokens of a query, each once: runs of letters, digits and `@ . _ + -`, without punctuation at their ends. Text in
 * a script that puts no spaces between words becomes pairs of neighbouring characters.
 */
export function tokensOf(query: string): string[] {
  const text = query.normalize('NFKC').toLowerCase()
  const tokens = new Set<string>()
  for (const run of text.match(SCRIPTS_WITHOUT_SPACES) ?? [])
    for (const pair of pairsOf(Array.from(run))) tokens.add(pair)
  for (const word of text.replace(SCRIPTS_WITHOUT_SPACES, ' ').split(/[^\p{L}\p{M}\p{N}@._+-]+/u)) {
    const token = word.replace(/^[._+-]+|[._+-]+$/g, '')
    if (token) tokens.add(token)
  }
  return [...tokens]
}

const pairsOf = (characters: readonly string[]): string[] =>
  characters.length < 2
    ? [...characters]
    : characters.slice(1).map((character, i) => characters[i] + character)

function hitsOf(entity: Entity, row: Row, tokens: readonly string[]): number {
  const text = entity.search
    .flatMap((field) => row[field])
    .filter((value) => typeof value === 'string')
    .join('\n')
    .normalize('NFKC')
    .toLowerCase()
  return tokens.filter((token) => text.includes(token)).length
}

function compares(
  value: JsonValue,
  comparison: Comparison,
  wanted: JsonValue,
  offset: number,
): boolean {
  switch (comparison) {
    case 'eq':
      return sameValue(value, wanted)
    case 'has':
      return Array.isArray(value) && value.some((item) => sameValue(item, wanted))
    case 'contains':
      return folded(String(value)).includes(folded(String(wanted)))
    case 'gte':
      return order(value, wanted, offset) >= 0
    case 'lte':
      return order(value, wanted, offset) <= 0
  }
}

/** Negative, zero or positive: numbers by size, dates and date-times as instants, other text by code unit. */
function order(a: Row[string], b: Row[string], offset = 0): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b
  const [one, other] = [String(a), String(b)]
  const [oneMs, otherMs] = [instantOf(one, offset), instantOf(other, offset)]
  if (oneMs !== null && otherMs !== null) return oneMs - otherMs
  return one < other ? -1 : one > other ? 1 : 0
}

const byId = (entity: Entity, a: Row, b: Row): number => order(a[entity.id]!, b[entity.id]!)

function summaryOf(entity: Entity, row: Row): Row {
  if (!entity.summary) return row
  const shown = entity.summary.filter((field) => row[field] !== undefined)
  return Object.fromEntries(shown.map((field) => [field, row[field]!]))
}
