// The billing service: customer invoices, refunds, credits.
import {
  date,
  datetime,
  defineService,
  id,
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

const invoiceStatus = oneOf('draft', 'open', 'paid', 'void', 'refunded', 'partially_refunded')

export const billing = defineService({
  name: 'billing',
  title: 'Customer invoices, refunds, credits',
  entities: {
    invoice: {
      id: 'invoice_id',
      prefix: 'IN',
      fields: {
        invoice_id: id,
        customer_id: ref('crm.customer'),
        order_id: opt(ref('orders.order')),
        amount: money,
        currency: str,
        status: invoiceStatus,
        issued_at: date,
        due_date: opt(date),
        refunded_amount: money,
      },
      sort: ['issued_at', 'desc'],
    },
    refund: {
      id: 'refund_id',
      prefix: 'RF',
      fields: {
        refund_id: id,
        invoice_id: ref('billing.invoice'),
        amount: money,
        reason: text,
        status: oneOf('issued', 'failed'),
        created_at: datetime,
      },
    },
    credit: {
      id: 'credit_id',
      prefix: 'CR',
      fields: {
        credit_id: id,
        customer_id: ref('crm.customer'),
        amount: money,
        reason: text,
        created_at: datetime,
      },
    },
  },
  tools: {
    billing_list_invoices: {
      op: 'list',
      entity: 'invoice',
      params: {
        customer_id: opt(id),
        status: opt(invoiceStatus),
        order_id: opt(id),
        due_before: opt(date),
      },
      filters: { due_before: ['due_date', 'lte'] },
    },
    billing_get_invoice: { op: 'get', entity: 'invoice' },
    billing_issue_refund: {
      op: 'custom',
      entity: 'refund',
      params: { invoice_id: ref('billing.invoice'), amount: money, reason: text },
      write: true,
      errors: ['INVALID_STATE', 'LIMIT_EXCEEDED'],
      about: 'Refunds a paid invoice, in whole or in part.',
      handler: issueRefund,
    },
    billing_void_invoice: {
      op: 'set',
      entity: 'invoice',
      params: { reason: text },
      set: { status: 'void' },
      guard: { status: ['draft', 'open'] },
    },
    billing_add_credit: {
      op: 'create',
      entity: 'credit',
      params: { customer_id: ref('crm.customer'), amount: money, reason: text },
    },
  },
})

type Invoice = RecordOf<typeof billing.entities.invoice>
/** Half a cent: what is left of an invoice counts as nothing below it. */
const NOTHING = 0.005

function issueRefund(transaction: Transaction, args: Args): Outcome {
  const [invoiceId, amount] = [args.invoice_id as string, args.amount as number]
  const invoice = transaction.find<Invoice>('billing.invoice', invoiceId)!
  if (invoice.status !== 'paid' && invoice.status !== 'partially_refunded')
    return refuse('INVALID_STATE', `expected a paid invoice, ${invoiceId} is ${invoice.status}`)
  const rest = cents(invoice.amount - invoice.refunded_amount)
  if (amount <= 0 || amount > rest + NOTHING)
    return refuse(
      'LIMIT_EXCEEDED',
      `amount: expected more than 0 and at most ${rest}, got ${amount}`,
    )
  const refund = transaction.create('billing.refund', { ...args, status: 'issued' })
  transaction.change('billing.invoice', invoiceId, {
    refunded_amount: cents(invoice.refunded_amount + amount),
    status: rest - amount < NOTHING ? 'refunded' : 'partially_refunded',
  })
  return done(refund)
}

const cents = (amount: number): number => Math.round(amount * 100) / 100
