// Checks on calls: counted attempts, evidence read, order, recovery from injected faults.
import { describe, expect, test } from 'vitest'
import type { Check, Fault, SpecStep, TaskSpec } from '../spec.ts'
import { check } from '../transcripts.testkit.ts'

const product = (n: number) => ({
  sku: `SK-${n}`,
  name: 'Lamp',
  category: 'light',
  on_hand: 5,
  reorder_point: 3,
  reorder_qty: 10,
  unit_cost: 2.5,
  status: 'active',
})
const person = (n: number) => ({
  person_id: `PE-${n}`,
  name: `Person ${n}`,
  email: `p${n}@acme.example`,
  kind: 'internal',
  status: 'active',
})
const stock: Partial<TaskSpec> = {
  initial_state: {
    inventory: { product: [product(1), product(2), product(3), product(4)] },
    contacts: { person: [person(1), person(2)] },
    todo: {},
  },
}
const adjust = (n: number, delta: number): SpecStep => ({
  call: 'inventory_adjust_stock',
  args: { sku: `SK-${n}`, delta, reason: 'count' },
})
const look = (n: number): SpecStep => ({ call: 'inventory_get_product', args: { sku: `SK-${n}` } })
const score = (steps: SpecStep[], graded: Check, given = {}) =>
  check({ ...stock, ...given }, steps, graded).score

describe('call', () => {
  const call = (more: Partial<Check<'call'>> = {}): Check => ({
    kind: 'call',
    tool: 'inventory_adjust_stock',
    ...more,
  })

  test('counts calls that succeeded unless asked otherwise', () => {
    const steps = [adjust(1, 2), adjust(1, -99)]
    expect(check(stock, steps, call({ count: 1 }))).toEqual({ score: 1, evidence: [1] })
    expect(check(stock, steps, call({ count: 1, ok: false }))).toEqual({ score: 1, evidence: [2] })
    expect(check(stock, steps, call({ count: 2, ok: 'any' }))).toEqual({
      score: 1,
      evidence: [1, 2],
    })
  })
  test('conditions are about arguments', () => {
    expect(score([adjust(1, 600)], call({ args: { delta: { gt: 500 } } }))).toBe(1)
    expect(score([adjust(1, 400)], call({ args: { delta: { gt: 500 } } }))).toBe(0)
    expect(score([adjust(2, 1)], call({ args: { sku: { nin: ['SK-1', 'SK-2'] } } }))).toBe(0)
  })
  test('several tools count together', () => {
    const tool = ['inventory_adjust_stock', 'inventory_get_product']
    expect(score([adjust(1, 1), look(1)], call({ tool, count: 2 }))).toBe(1)
  })
  test('distinct_by, ratio_of', () => {
    const steps = [look(1), look(1), look(2)]
    const distinct = { tool: 'inventory_get_product', distinct_by: ['sku'] }
    expect(score(steps, call({ ...distinct, count: 2 }))).toBe(1)
    expect(score(steps, call({ ...distinct, ratio_of: 4 }))).toBe(0.5)
  })
  test('a staircase gives the highest step reached', () => {
    const steps: [number, number][] = [
      [1, 0.3],
      [2, 0.6],
      [4, 1],
    ]
    const staircase = call({ tool: 'inventory_get_product', steps })
    expect(
      [0, 1, 2, 3, 4, 5].map((n) =>
        score(
          Array.from({ length: n }, () => look(1)),
          staircase,
        ),
      ),
    ).toEqual([0, 0.3, 0.6, 0.6, 1, 1])
  })
  test('a call whose answer was lost counts only where asked for', () => {
    const faults: Fault[] = [
      { id: 'f', tool: 'inventory_adjust_stock', phase: 'after_commit', code: 'TIMEOUT' },
    ]
    expect(score([adjust(1, 2)], call(), { faults })).toBe(0)
    expect(score([adjust(1, 2)], call({ count_committed: true }), { faults })).toBe(1)
  })
  test('a call refused because the episode was over is no attempt', () => {
    expect(score([{ say: 'done' }, adjust(1, 1)], call({ ok: 'any' }))).toBe(0)
  })
})

describe('read', () => {
  const read = (more: Partial<Check<'read'>> = {}): Check => ({
    kind: 'read',
    entity: 'contacts.person',
    ids: ['PE-1', 'PE-2'],
    ...more,
  })
  const get = (n: number): SpecStep => ({ call: 'contacts_get', args: { person_id: `PE-${n}` } })
  const list: SpecStep = { call: 'contacts_list', args: {} }

  test('gives the share of records seen, each once', () => {
    expect(check(stock, [get(1), get(1)], read())).toEqual({
      score: 0.5,
      evidence: ['contacts.person/PE-1'],
    })
    expect(score([list], read())).toBe(1)
  })
  test('may ask for records in full', () => {
    expect(score([list, get(2)], read({ depth: 'full' }))).toBe(0.5)
  })
  test('min says how many are enough', () => {
    expect(score([get(2)], read({ min: 1 }))).toBe(1)
  })
  test('a call that failed has shown nothing', () => {
    const faults: Fault[] = [
      { id: 'f', tool: 'contacts_get', phase: 'after_commit', code: 'TIMEOUT' },
    ]
    expect(score([get(1)], read(), { faults })).toBe(0)
  })
  test('writing a record is not reading it', () => {
    expect(
      score([{ call: 'contacts_update', args: { person_id: 'PE-1', title: 'x' } }], read()),
    ).toBe(0)
  })
})

describe('order', () => {
  const order: Check = {
    kind: 'order',
    steps: [
      { tool: ['inventory_get_product', 'inventory_list_products'] },
      { tool: 'inventory_adjust_stock', args: { sku: 'SK-2' } },
    ],
  }
  test.each([
    ['in this order', [look(1), adjust(2, 1)], 1],
    ['with others between', [look(1), adjust(1, 1), look(2), adjust(2, 1)], 1],
    ['the other way round', [adjust(2, 1), look(1)], 0],
    ['with a step that failed', [look(9), adjust(2, 1)], 0],
    ['with other arguments', [look(1), adjust(1, 1)], 0],
    ['incomplete', [look(1)], 0],
  ])('%s', (_what, steps, expected) => {
    expect(score(steps, order)).toBe(expected)
  })
  test('one call is not two steps', () => {
    const twice: Check = {
      kind: 'order',
      steps: [{ tool: 'inventory_get_product' }, { tool: 'inventory_get_product' }],
    }
    expect(score([look(1)], twice)).toBe(0)
    expect(check(stock, [look(1), look(1)], twice)).toEqual({ score: 1, evidence: [1, 2] })
  })
})

describe('recovered', () => {
  const recovered: Check = { kind: 'recovered', fault: 'f', verify_with: ['inventory_get_product'] }
  const with_ = (more: Partial<Fault>) => ({
    faults: [
      {
        id: 'f',
        tool: 'inventory_adjust_stock',
        phase: 'before',
        code: 'TIMEOUT',
        ...more,
      } as Fault,
    ],
  })

  test.each([
    ['the same call again', [adjust(1, 2), adjust(1, 2)], 1],
    ['the same target with another amount', [adjust(1, 2), adjust(1, 3)], 1],
    ['another target', [adjust(1, 2), adjust(2, 2)], 0],
    ['a retry that fails', [adjust(1, 2), adjust(1, -99)], 0],
    ['a look only', [adjust(1, 2), look(1)], 0],
    ['giving up', [adjust(1, 2)], 0],
    ['nothing that fired', [look(1)], 0],
  ])('before: %s', (_what, steps, expected) => {
    expect(score(steps, recovered, with_({}))).toBe(expected)
  })
  test.each([
    ['a verifying look', [adjust(1, 2), look(1)], 1],
    ['a look by another tool', [adjust(1, 2), { call: 'inventory_list_products', args: {} }], 0],
    ['a look before', [look(1), adjust(1, 2)], 0],
    ['the same call again', [adjust(1, 2), adjust(1, 2)], 1],
  ])('after_commit: %s', (_what, steps, expected) => {
    expect(score(steps, recovered, with_({ phase: 'after_commit' }))).toBe(expected)
  })
  test('every firing must be recovered from', () => {
    const twice = with_({ times: 2 })
    expect(score([adjust(1, 2), adjust(1, 2), adjust(1, 2)], recovered, twice)).toBe(1)
    expect(score([adjust(1, 2), adjust(2, 2), adjust(2, 2)], recovered, twice)).toBe(0)
  })
})
