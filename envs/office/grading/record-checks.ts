// Checks on records: state, cover, unchanged, only_writes, slot.
import { entityNamed, TOOLS } from '../catalogue/registry.ts'
import { instantOf } from '../kernel/instant.ts'
import type { Row } from '../kernel/state.ts'
import { sameJson, sameValue } from '../kernel/values.ts'
import type { Check } from '../spec.ts'
import { callsOf } from './call-checks.ts'
import { meets } from './conditions.ts'
import {
  type CheckResult,
  changedFields,
  countHolds,
  distinctBy,
  type Episode,
  hasWritten,
  nameOf,
  recordsOf,
  scored,
  toList,
  verdict,
} from './evidence.ts'
import { maximumMatching } from './matching.ts'

/** How many records match; with `ratio_of` the share of that number. */
export function checkState(check: Check<'state'>, episode: Episode): CheckResult {
  const rows = recordsOf(episode, check.entity, check.origin ?? 'any', check.where)
  const evidence = rows.map((row) => nameOf(check.entity, row))
  if (check.requires_action && !hasWritten(episode)) return scored(0, evidence)
  const number = check.distinct_by ? distinctBy(rows, check.distinct_by) : rows.length
  if (check.ratio_of !== undefined) return scored(Math.min(1, number / check.ratio_of), evidence)
  return verdict(countHolds(number, check.count), evidence)
}

/**
 * Expected items against distinct records (or calls): matched/items × max(0, 1 − extra_penalty × surplus). A surplus
 * above `max_extra` makes it 0. Without an origin, records that were created or changed are in scope.
 */
export function checkCover(
  check: Check<'cover'>,
  episode: Episode,
  attempts: boolean,
): CheckResult {
  const { items, extra_penalty = 0, max_extra = Infinity } = check
  const { found, fields } =
    check.source === 'calls' ? callScope(check, episode, attempts) : recordScope(check, episode)
  const fits = items.map((item) =>
    [...found.keys()].filter((i) => meets(found[i]!.row, item, fields, episode.moment)),
  )
  const matched = maximumMatching(fits).filter((candidate) => candidate !== null)
  const evidence = matched.map((candidate) => found[candidate]!.evidence)
  const surplus = found.length - matched.length
  if (check.all_or_nothing && matched.length < items.length) return scored(0, evidence)
  if (surplus > max_extra) return scored(0, evidence)
  return scored(
    (matched.length / items.length) * Math.max(0, 1 - extra_penalty * surplus),
    evidence,
  )
}

function recordScope({ entity, origin = 'touched', scope }: Check<'cover'>, episode: Episode) {
  const found = recordsOf(episode, entity!, origin, scope).map((row) => ({
    row,
    evidence: nameOf(entity!, row) as string | number,
  }))
  return { found, fields: entityNamed(entity!).fields }
}

function callScope({ tool, ok, scope }: Check<'cover'>, episode: Episode, attempts: boolean) {
  const calls = callsOf(episode, { tool: tool!, ok: ok ?? (attempts ? 'any' : true), args: scope })
  const found = calls.map((call) => ({
    row: call.args as Row,
    evidence: call.seq as string | number,
  }))
  return { found, fields: TOOLS.get(toList(tool!)[0]!)!.params }
}

/** Seeded records are there and as they were, in all or the given fields; 0 unless something was written. */
export function checkUnchanged(check: Check<'unchanged'>, episode: Episode): CheckResult {
  const { entity, where = {}, ids, except_ids = [], fields } = check
  const { name, id, fields: declared } = entityNamed(entity)
  const seeded = (episode.initial[name] ?? []).filter((row) => {
    const rowId = String(row[id])
    if (except_ids.includes(rowId) || (ids && !ids.includes(rowId))) return false
    return meets(row, where, declared, episode.moment)
  })
  const changed = seeded.filter((row) => {
    const now = (episode.final[name] ?? []).find((candidate) => candidate[id] === row[id])
    if (!now) return true
    return fields
      ? fields.some((field) => !sameJson(row[field], now[field]))
      : changedFields(row, now).length > 0
  })
  const acted = check.requires_action === false || hasWritten(episode)
  return verdict(
    acted && changed.length === 0,
    changed.map((row) => nameOf(entity, row)),
  )
}

/** Every write is one of those allowed; 0 unless something was written. Evidence: the calls that wrote something else. */
export function checkOnlyWrites(check: Check<'only_writes'>, episode: Episode): CheckResult {
  const offending = episode.audit.filter(({ writes }) =>
    writes.some(
      ({ entity, id, op, before, after }) =>
        !check.allow.some((allowed) => {
          if (allowed.entity !== entity || (allowed.ids && !allowed.ids.includes(id))) return false
          if (allowed.op && !toList(allowed.op).includes(op)) return false
          if (!allowed.fields || !before || !after) return true
          return changedFields(before, after).every((field) => allowed.fields!.includes(field))
        }),
    ),
  )
  const acted = check.requires_action === false || hasWritten(episode)
  return verdict(
    acted && offending.length === 0,
    offending.map(({ seq }) => seq),
  )
}

const EVENT = 'calendar.event'
const MINUTE_MS = 60_000

/** An event of that origin that holds all attendees, fits duration and window, and takes no time that was taken. */
export function checkSlot(check: Check<'slot'>, episode: Episode): CheckResult {
  const fitting = recordsOf(episode, EVENT, check.origin ?? 'created', check.where).filter(
    (event) => event.status !== 'cancelled' && slotFits(check, event, episode),
  )
  return verdict(
    fitting.length > 0,
    fitting.map((event) => nameOf(EVENT, event)),
  )
}

function slotFits(check: Check<'slot'>, event: Row, episode: Episode): boolean {
  const at = (text: unknown): number => instantOf(String(text), episode.moment.offsetMinutes) ?? NaN
  const [start, end] = [at(event.start), at(event.end)]
  const minutes = (end - start) / MINUTE_MS
  if (!(minutes >= check.duration_min && minutes <= (check.duration_max ?? Infinity))) return false
  if (check.window && !(start >= at(check.window[0]) && end <= at(check.window[1]))) return false
  if (check.start !== undefined && start !== at(check.start)) return false
  const required = check.attendees ?? []
  const invited = peopleOf(event)
  if (!required.every((one) => invited.some((other) => sameValue(one, other)))) return false
  const people = [...required, ...(event.attendees as string[])]
  // Seeded events count as they were: a slot is not free because what stood in it was cancelled or moved.
  const others = [...(episode.initial[EVENT] ?? []), ...(episode.final[EVENT] ?? [])]
  return !others.some(
    (other) =>
      other.event_id !== event.event_id &&
      other.status !== 'cancelled' &&
      at(other.start) < end &&
      at(other.end) > start &&
      peopleOf(other).some((one) => people.some((person) => sameValue(one, person))),
  )
}

const peopleOf = (event: Row): string[] => [
  String(event.organizer),
  ...(event.attendees as string[]),
]
