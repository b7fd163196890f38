// The expenses service: employee expenses.
import {
  bool,
  date,
  datetime,
  defineService,
  id,
  list,
  money,
  oneOf,
  opt,
  type RecordOf,
  ref,
  str,
  text,
} from '../catalogue/declare.ts'
import { done, type Outcome, refuse } from '../kernel/outcome.ts'
import type { Args, Transaction } from '../kernel/transaction.ts'

const category = oneOf('meals', 'travel', 'lodging', 'supplies', 'software', 'other')
const expenseStatus = oneOf('unsubmitted', 'submitted', 'approved', 'rejected', 'flagged')
const reportStatus = oneOf('draft', 'submitted', 'approved', 'returned')

export const expenses = defineService({
  name: 'expenses',
  title: 'Employee expenses',
  entities: {
    expense: {
      id: 'expense_id',
      prefix: 'EX',
      fields: {
        expense_id: id,
        employee_id: ref('hr.employee'),
        date,
        merchant: str,
        amount: money,
        currency: str,
        category,
        receipt: bool,
        description: opt(text),
        status: expenseStatus,
        flag_reason: opt(text),
        report_id: opt(ref('expenses.report')),
      },
      sort: ['date', 'asc'],
    },
    report: {
      id: 'report_id',
      prefix: 'ER',
      fields: {
        report_id: id,
        employee_id: ref('hr.employee'),
        title: str,
        expense_ids: list(id),
        total: money,
        currency: str,
        status: reportStatus,
        created_at: datetime,
      },
    },
  },
  tools: {
    expenses_list: {
      op: 'list',
      entity: 'expense',
      params: { employee_id: opt(id), status: opt(expenseStatus), from: opt(date), to: opt(date) },
      filters: { from: ['date', 'gte'], to: ['date', 'lte'] },
    },
    expenses_get: { op: 'get', entity: 'expense' },
    expenses_update: {
      op: 'update',
      entity: 'expense',
      params: { category: opt(category), description: opt(text) },
    },
    expenses_flag: {
      op: 'set',
      entity: 'expense',
      params: { reason: text },
      set: { status: 'flagged', flag_reason: '@reason' },
      guard: { status: ['unsubmitted'] },
    },
    expenses_create_report: {
      op: 'custom',
      entity: 'report',
      params: { employee_id: ref('hr.employee'), title: str, expense_ids: list(id) },
      write: true,
      errors: ['CONFLICT', 'REF_NOT_FOUND'],
      about:
        'Puts expenses of one employee and one currency into a new report; they become submitted.',
      handler: createExpenseReport,
    },
    expenses_submit_report: {
      op: 'set',
      entity: 'report',
      set: { status: 'submitted' },
      guard: { status: ['draft', 'returned'] },
    },
    expenses_list_reports: {
      op: 'list',
      entity: 'report',
      params: { employee_id: opt(id), status: opt(reportStatus) },
    },
  },
})

type Expense = RecordOf<typeof expenses.entities.expense>

function createExpenseReport(transaction: Transaction, args: Args): Outcome {
  const { employee_id, title, expense_ids } = args
  const chosen: Expense[] = []
  for (const expenseId of expense_ids as string[]) {
    const expense = transaction.find<Expense>('expenses.expense', expenseId)
    if (!expense) return refuse('REF_NOT_FOUND', `expense_ids: there is no expense ${expenseId}`)
    chosen.push(expense)
  }
  const [first] = chosen
  if (!first) return refuse('INVALID_ARGUMENT', 'expense_ids: expected at least one, got none')
  const conflict = conflictOf(chosen, employee_id as string)
  if (conflict) return refuse('CONFLICT', conflict)
  const report = transaction.create('expenses.report', {
    employee_id: employee_id!,
    title: title!,
    expense_ids: expense_ids!,
    total: Math.round(chosen.reduce((sum, { amount }) => sum + amount, 0) * 100) / 100,
    currency: first.currency,
    status: 'draft',
  })
  for (const { expense_id } of chosen) {
    const patch = { status: 'submitted', report_id: report.report_id! }
    transaction.change('expenses.expense', expense_id, patch)
  }
  return done(report)
}

/** Why these expenses cannot make one report of the employee, or null. */
function conflictOf(chosen: readonly Expense[], employeeId: string): string | null {
  const seen = new Set<string>()
  for (const { expense_id, employee_id, currency, report_id } of chosen) {
    if (seen.has(expense_id)) return `${expense_id} is given twice`
    seen.add(expense_id)
    if (report_id !== undefined) return `${expense_id} is in report ${report_id} already`
    if (employee_id !== employeeId) return `${expense_id} is of ${employee_id}, not ${employeeId}`
    if (currency !== chosen[0]!.currency)
      return `expected one currency, got ${chosen[0]!.currency} and ${currency}`
  }
  return null
}
