// The finance service: ledger and outgoing payments.
import {
  date,
  datetime,
  defineService,
  id,
  list,
  money,
  oneOf,
  opt,
  ref,
  str,
  text,
} from '../catalogue/declare.ts'

const paymentStatus = oneOf('draft', 'submitted', 'held', 'sent', 'cancelled')

export const finance = defineService({
  name: 'finance',
  title: 'Ledger and outgoing payments',
  entities: {
    transaction: {
      id: 'transaction_id',
      prefix: 'TX',
      fields: {
        transaction_id: id,
        date,
        amount: money,
        currency: str,
        direction: oneOf('in', 'out'),
        counterparty: str,
        counterparty_account: opt(str),
        vendor_id: opt(ref('procurement.vendor')),
        customer_id: opt(ref('crm.customer')),
        category: opt(str),
        description: opt(text),
        status: oneOf('posted', 'pending', 'reversed'),
        reference: opt(str),
      },
      sort: ['date', 'desc'],
    },
    payment: {
      id: 'payment_id',
      prefix: 'PM',
      fields: {
        payment_id: id,
        vendor_id: ref('procurement.vendor'),
        amount: money,
        currency: str,
        bank_account: str,
        invoice_ref: opt(str),
        status: paymentStatus,
        due_date: opt(date),
        hold_reason: opt(text),
      },
    },
    report: {
      id: 'finance_report_id',
      prefix: 'FR',
      fields: {
        finance_report_id: id,
        title: str,
        transaction_ids: list(id),
        total_amount: money,
        note: opt(text),
        created_at: datetime,
      },
    },
  },
  tools: {
    finance_list_transactions: {
      op: 'list',
      entity: 'transaction',
      params: {
        from: opt(date),
        to: opt(date),
        vendor_id: opt(id),
        customer_id: opt(id),
        category: opt(str),
        counterparty: opt(str),
      },
      filters: {
        from: ['date', 'gte'],
        to: ['date', 'lte'],
        counterparty: ['counterparty', 'contains'],
      },
    },
    finance_get_transaction: { op: 'get', entity: 'transaction' },
    finance_list_payments: {
      op: 'list',
      entity: 'payment',
      params: { status: opt(paymentStatus), vendor_id: opt(id) },
    },
    finance_get_payment: { op: 'get', entity: 'payment' },
    finance_create_payment: {
      op: 'create',
      entity: 'payment',
      params: {
        vendor_id: ref('procurement.vendor'),
        amount: money,
        currency: str,
        bank_account: str,
        invoice_ref: opt(str),
        due_date: opt(date),
      },
      defaults: { status: 'draft' },
    },
    finance_submit_payment: {
      op: 'set',
      entity: 'payment',
      set: { status: 'submitted' },
      guard: { status: ['draft', 'held'] },
    },
    finance_hold_payment: {
      op: 'set',
      entity: 'payment',
      params: { reason: text },
      set: { status: 'held', hold_reason: '@reason' },
      guard: { status: ['draft', 'submitted'] },
    },
    finance_submit_report: {
      op: 'create',
      entity: 'report',
      params: { title: str, transaction_ids: list(id), total_amount: money, note: opt(text) },
    },
  },
})
