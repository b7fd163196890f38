// Refunds: of paid invoices, up to what is left.
import { describe, expect, test } from 'vitest'
import { callAll } from '../transcripts.testkit.ts'

const invoice = (status: string, refunded_amount = 0) => ({
  invoice_id: 'IN-1',
  customer_id: 'CU-1',
  amount: 100.1,
  currency: 'EUR',
  status,
  issued_at: '2027-01-05',
  refunded_amount,
})
const billing = (...given: Parameters<typeof invoice>) => ({
  initial_state: { billing: { invoice: [invoice(...given)] } },
})
const refund = (amount: number, invoice_id = 'IN-1') =>
  ['billing_issue_refund', { invoice_id, amount, reason: 'broken' }] as const

test('a part is refunded: a new refund, and the invoice knows how much', () => {
  const { result, state } = callAll(billing('paid'), refund(40))
  expect(result).toEqual({
    refund_id: 'RF-N1',
    invoice_id: 'IN-1',
    amount: 40,
    reason: 'broken',
    status: 'issued',
    created_at: '2027-03-10T11:00:01+01:00',
  })
  expect(state.tables['billing.invoice']).toEqual([invoice('partially_refunded', 40)])
})

test('the rest may follow and closes the invoice', () => {
  const { state, error } = callAll(billing('paid'), refund(40), refund(60.1))
  expect(error).toBeUndefined()
  expect(state.tables['billing.invoice']).toEqual([invoice('refunded', 100.1)])
})

describe('refused', () => {
  test.each(['draft', 'open', 'void', 'refunded'])(
    'is a refund of an invoice that is %s',
    (status) => {
      expect(callAll(billing(status), refund(1)).error).toBe('INVALID_STATE')
    },
  )
  test.each([0, -5, 100.11])('is the amount %d of 100.10', (amount) => {
    expect(callAll(billing('paid'), refund(amount)).error).toBe('LIMIT_EXCEEDED')
  })
  test('is more than what earlier refunds left', () => {
    expect(callAll(billing('paid'), refund(40), refund(60.2)).error).toBe('LIMIT_EXCEEDED')
  })
  test('is an invoice that is not there', () => {
    expect(callAll(billing('paid'), refund(1, 'IN-9')).error).toBe('REF_NOT_FOUND')
  })
})
