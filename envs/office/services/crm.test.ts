// Merging customers: the duplicate points to the primary, and nothing is merged twice.
import { expect, test } from 'vitest'
import { callAll } from '../transcripts.testkit.ts'

const customer = (n: number, more = {}) => ({
  customer_id: `CU-${n}`,
  name: `Customer ${n}`,
  tier: 'free',
  status: 'active',
  ...more,
})
const crm = {
  initial_state: {
    crm: {
      customer: [customer(1), customer(2), customer(3, { status: 'merged', merged_into: 'CU-1' })],
    },
  },
}
const merge = (primary_id: string, duplicate_id: string) =>
  ['crm_merge_customers', { primary_id, duplicate_id }] as const

test('the duplicate becomes a merged record that names the primary, which stays as it was', () => {
  const { result, state, audit } = callAll(crm, merge('CU-1', 'CU-2'))
  const merged = customer(2, { status: 'merged', merged_into: 'CU-1' })
  expect(result).toEqual(merged)
  expect(state.tables['crm.customer']!.slice(0, 2)).toEqual([customer(1), merged])
  expect(audit.writes.map(({ id, op }) => [id, op])).toEqual([['CU-2', 'update']])
})

test.each([
  ['a customer with itself', 'CU-1', 'CU-1', 'CONFLICT'],
  ['into a merged customer', 'CU-3', 'CU-2', 'INVALID_STATE'],
  ['a merged customer', 'CU-1', 'CU-3', 'INVALID_STATE'],
  ['into a customer that is not there', 'CU-9', 'CU-2', 'REF_NOT_FOUND'],
  ['a customer that is not there', 'CU-1', 'CU-9', 'REF_NOT_FOUND'],
])('merging %s is refused', (_what, primary, duplicate, code) => {
  expect(callAll(crm, merge(primary, duplicate)).error).toBe(code)
})
