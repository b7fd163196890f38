// One call: the order of checks, error codes, injected faults, ids, the clock and the limit of calls (SPEC c.1, e).
import { describe, expect, test } from 'vitest'
import type { JsonObject } from '../../../protocol/json.ts'
import type { Fault, TaskSpec } from '../spec.ts'
import { begin, callAll, play, playStep, smallSpec } from '../transcripts.testkit.ts'
import { clockAt } from './call.ts'

const item = (todo_id: string, more: JsonObject = {}): JsonObject => ({
  todo_id,
  title: 'Water plants',
  status: 'pending',
  priority: 'low',
  tags: [],
  created_at: '2027-03-01T08:00:00+01:00',
  ...more,
})
const assets: TaskSpec['initial_state'] = {
  assets: {
    asset: [{ asset_id: 'AS-1', kind: 'laptop', model: 'Orbit', serial: 'S1', status: 'in_stock' }],
  },
  hr: {},
}
const todos = (...items: JsonObject[]): Partial<TaskSpec> => ({
  initial_state: { todo: { item: items } },
})
const fault = (more: Partial<Fault>): Fault => ({
  id: 'busy',
  tool: 'assets_assign',
  phase: 'before',
  code: 'RATE_LIMITED',
  ...more,
})
const assign = (employee_id: unknown, more = {}) =>
  ['assets_assign', { asset_id: 'AS-1', employee_id, ...more }] as const

describe('the order of checks', () => {
  const ended = { initial_state: assets, limits: { max_calls: 0 } }
  const faulty = { initial_state: assets, faults: [fault({})] }

  test('an episode that is over comes before an unknown tool', () => {
    expect(callAll(ended, ['no_such_tool', {}]).error).toBe('EPISODE_DONE')
  })
  test('an unknown tool comes before its arguments', () => {
    expect(callAll(faulty, ['assets_asign', { color: 1 }]).error).toBe('UNKNOWN_TOOL')
  })
  test('wrong arguments come before an injected fault, which does not count them', () => {
    const calls = [assign(7), assign('EM-1')] as const
    expect(callAll(faulty, calls[0]).error).toBe('INVALID_ARGUMENT')
    expect(callAll(faulty, ...calls).error).toBe('RATE_LIMITED')
  })
  test('an injected fault comes before a missing reference', () => {
    expect(callAll(faulty, assign('EM-404')).error).toBe('RATE_LIMITED')
  })
  test('a missing reference comes before a missing record', () => {
    const { error, result } = callAll({ initial_state: assets }, [
      'assets_assign',
      { asset_id: 'AS-404', employee_id: 'EM-404' },
    ])
    expect(error).toBe('REF_NOT_FOUND')
    expect((result.error as JsonObject).message).toContain('EM-404')
  })
  test('a reference to a service that the task lacks is not checked', () => {
    const { error, result } = callAll(
      { initial_state: { assets: assets.assets! } },
      assign('EM-404'),
    )
    expect(error).toBeUndefined()
    expect(result).toMatchObject({ status: 'assigned', assigned_to: 'EM-404' })
  })
})

test('a tool of another service, or outside the task’s own list, is unknown', () => {
  expect(callAll(todos(), ['assets_list', {}]).error).toBe('UNKNOWN_TOOL')
  expect(callAll({ ...todos(), tools: ['todo_get'] }, ['todo_list', {}]).error).toBe('UNKNOWN_TOOL')
})

test.each([
  ['RATE_LIMITED', true],
  ['UNAVAILABLE', true],
  ['TIMEOUT', true],
] as const)('an injected %s is retryable and carries the fault’s message', (code, retryable) => {
  const faults = [fault({ code, message: 'later' })]
  const { result } = callAll({ initial_state: assets, faults }, assign('EM-1'))
  expect(result).toEqual({ error: { code, message: 'later', retryable } })
})

test.each(['INVALID_ARGUMENT', 'NOT_FOUND'])('%s is not retryable', (code) => {
  const args = code === 'NOT_FOUND' ? { todo_id: 'TD-9' } : {}
  const { result } = callAll(todos(), ['todo_get', args])
  expect(result.error).toMatchObject({ code, retryable: false })
})

describe('injected faults', () => {
  const run = (given: Partial<Fault>, calls: number) => {
    const spec = smallSpec({ ...todos(), faults: [fault({ tool: 'todo_create', ...given })] })
    const steps = Array.from({ length: calls }, (_, i) => ({
      call: 'todo_create',
      args: { title: `item ${i + 1}` },
    }))
    return play(spec, steps)
  }
  const failures = (given: Partial<Fault>) => run(given, 5).played.map(({ error }) => error ?? 'ok')

  test('the first call fails by default, then calls go through', () => {
    expect(failures({})).toEqual(['RATE_LIMITED', 'ok', 'ok', 'ok', 'ok'])
  })
  test('nth and times say which calls fail', () => {
    expect(failures({ nth: 2, times: 2 })).toEqual([
      'ok',
      'RATE_LIMITED',
      'RATE_LIMITED',
      'ok',
      'ok',
    ])
  })
  test('only calls whose arguments meet the conditions are counted', () => {
    const given = { args: { title: { contains_any: ['3', '5'] } }, nth: 2 }
    expect(failures(given)).toEqual(['ok', 'ok', 'ok', 'ok', 'RATE_LIMITED'])
  })
  test('before: nothing is written', () => {
    const { state, audit } = run({}, 1)
    expect(state.tables['todo.item']).toEqual([])
    expect(audit[0]).toMatchObject({
      ok: false,
      injected: 'busy',
      error: 'RATE_LIMITED',
      writes: [],
    })
    expect(audit[0]).not.toHaveProperty('committed')
  })
  test('after_commit: the write stays, the answer is lost', () => {
    const { state, audit } = run({ phase: 'after_commit', code: 'TIMEOUT' }, 1)
    expect(state.tables['todo.item']).toMatchObject([{ todo_id: 'TD-N1', title: 'item 1' }])
    expect(audit[0]).toMatchObject({ ok: false, injected: 'busy', committed: true })
    expect(audit[0]!.writes).toMatchObject([{ entity: 'todo.item', id: 'TD-N1', op: 'create' }])
  })
})

describe('created ids', () => {
  const create = { call: 'todo_create', args: { title: 'x' } }

  test('are <prefix>-N<k>, counted for each entity', () => {
    const { state } = play(smallSpec(todos(item('TD-1'))), [create, create])
    const ids = state.tables['todo.item']!.map(({ todo_id }) => todo_id)
    expect(ids).toEqual(['TD-1', 'TD-N1', 'TD-N2'])
  })
  test('are never given again, not even after a delete', () => {
    const { state } = play(smallSpec(todos()), [
      create,
      { call: 'todo_delete', args: { todo_id: 'TD-N1' } },
      create,
    ])
    expect(state.tables['todo.item']!.map(({ todo_id }) => todo_id)).toEqual(['TD-N2'])
  })
})

describe('the clock', () => {
  test.each([
    ['2027-03-10T11:00:00+01:00', undefined, 1, '2027-03-10T11:00:01+01:00'],
    ['2027-03-10T11:00:00+01:00', 90, 2, '2027-03-10T11:03:00+01:00'],
    ['2027-12-31T23:59:59-05:30', 1, 1, '2028-01-01T00:00:00-05:30'],
    ['2027-03-10T11:00:00Z', 0.5, 3, '2027-03-10T11:00:01.500Z'],
    ['2027-03-10T11:00:00Z', 0, 9, '2027-03-10T11:00:00Z'],
  ])('%s with a tick of %s shows at call %i: %s', (now, tick_s, seq, shown) => {
    expect(clockAt(tick_s === undefined ? { now } : { now, tick_s }, seq)).toBe(shown)
  })
  test('ticks for refused calls too and stamps what is created', () => {
    const { result, audit } = callAll(todos(), ['nonsense', {}], ['todo_create', { title: 'x' }])
    expect(result.created_at).toBe('2027-03-10T11:00:02+01:00')
    expect(audit).toMatchObject({ seq: 2, at: '2027-03-10T11:00:02+01:00' })
  })
})

describe('the limit of calls', () => {
  const list = { call: 'todo_list', args: {} }
  const spec = smallSpec({ ...todos(), limits: { max_calls: 2 } })

  test('so many calls run; the next is refused and ends the episode', () => {
    const { state, played } = play(spec, [list, list, list, list])
    const errors = played.map(({ error }) => error)
    expect(errors).toEqual([undefined, undefined, 'EPISODE_DONE', 'EPISODE_DONE'])
    expect(state.ended).toBe('max_calls')
  })
  test('a closing message is heard when the last call was used but not exceeded', () => {
    const { played } = play(spec, [list, list, { say: 'done' }])
    expect(played.at(-1)!.end).toBe('final')
  })
  test('calls after a closing message are refused, logged, and change nothing', () => {
    const playing = play(spec, [{ say: 'done' }])
    const { state, audit } = playStep(playing, { call: 'todo_create', args: { title: 'late' } })
    expect(audit.at(-1)).toMatchObject({ ok: false, error: 'EPISODE_DONE', writes: [] })
    expect(state.tables).toEqual(playing.state.tables)
  })
})

test('the audit record of a call has the documented fields and no others', () => {
  const { audit } = callAll(todos(item('TD-1')), ['todo_get', { todo_id: 'TD-1' }])
  expect(audit).toEqual({
    seq: 1,
    call_id: 'call_0',
    turn: 0,
    at: '2027-03-10T11:00:01+01:00',
    tool: 'todo_get',
    service: 'todo',
    entity: 'todo.item',
    args: { todo_id: 'TD-1' },
    ok: true,
    error: null,
    injected: null,
    reads: [{ entity: 'todo.item', id: 'TD-1', depth: 'full' }],
    writes: [],
    result_digest: expect.stringMatching(/^[0-9a-f]+$/),
  })
})

test('a refused call leaves everything but call count and audit as it was', () => {
  const before = begin(smallSpec(todos(item('TD-1'))))
  const { state } = playStep(before, { call: 'todo_complete', args: { todo_id: 'TD-2' } })
  expect({ ...state, calls: 0, audit: [] }).toEqual(before.state)
})
