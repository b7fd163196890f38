// Expense reports: one employee, one currency, nothing twice.
import { expect, test } from 'vitest'
import { callAll } from '../transcripts.testkit.ts'

const expense = (n: number, more = {}) => ({
  expense_id: `EX-${n}`,
  employee_id: 'EM-1',
  date: '2027-03-01',
  merchant: 'Cafe',
  amount: 0.1 * n,
  currency: 'EUR',
  category: 'meals',
  receipt: true,
  status: 'unsubmitted',
  ...more,
})
const expenses = {
  initial_state: {
    expenses: {
      expense: [
        expense(1),
        expense(2),
        expense(3, { employee_id: 'EM-2' }),
        expense(4, { currency: 'USD' }),
        expense(5, { report_id: 'ER-7' }),
      ],
      report: [
        {
          report_id: 'ER-7',
          employee_id: 'EM-1',
          title: 't',
          expense_ids: ['EX-5'],
          total: 0.5,
          currency: 'EUR',
          status: 'draft',
          created_at: '2027-03-01T00:00:00Z',
        },
      ],
    },
  },
}
const report = (...expense_ids: string[]) =>
  ['expenses_create_report', { employee_id: 'EM-1', title: 'March', expense_ids }] as const

test('a report sums its expenses, which become submitted and point to it', () => {
  const { result, state, audit } = callAll(expenses, report('EX-1', 'EX-2'))
  expect(result).toEqual({
    report_id: 'ER-N1',
    employee_id: 'EM-1',
    title: 'March',
    expense_ids: ['EX-1', 'EX-2'],
    total: 0.3,
    currency: 'EUR',
    status: 'draft',
    created_at: '2027-03-10T11:00:01+01:00',
  })
  expect(state.tables['expenses.expense']!.slice(0, 2)).toEqual([
    expense(1, { status: 'submitted', report_id: 'ER-N1' }),
    expense(2, { status: 'submitted', report_id: 'ER-N1' }),
  ])
  expect(audit.writes.map(({ id }) => id)).toEqual(['ER-N1', 'EX-1', 'EX-2'])
})

test.each([
  ['the same expense twice', ['EX-1', 'EX-1'], 'CONFLICT'],
  ['an expense of somebody else', ['EX-1', 'EX-3'], 'CONFLICT'],
  ['two currencies', ['EX-1', 'EX-4'], 'CONFLICT'],
  ['an expense that is in a report', ['EX-5'], 'CONFLICT'],
  ['an expense that is not there', ['EX-1', 'EX-9'], 'REF_NOT_FOUND'],
  ['no expense', [], 'INVALID_ARGUMENT'],
])('%s is refused and changes nothing', (_what, ids, code) => {
  const { error, state } = callAll(expenses, report(...ids))
  expect(error).toBe(code)
  expect(state.tables['expenses.report']).toHaveLength(1)
})

test('an expense cannot go into a second report', () => {
  expect(callAll(expenses, report('EX-1'), report('EX-1')).error).toBe('CONFLICT')
})
