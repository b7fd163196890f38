// The crm service: customer records and deals.
import {
  date,
  datetime,
  defineService,
  email,
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

const tier = oneOf('free', 'standard', 'premium', 'enterprise')
const customerStatus = oneOf('prospect', 'active', 'churned', 'merged')
const stage = oneOf('lead', 'qualified', 'proposal', 'won', 'lost')
const kind = oneOf('call', 'mail', 'meeting', 'note')

export const crm = defineService({
  name: 'crm',
  title: 'Customer records and deals',
  entities: {
    customer: {
      id: 'customer_id',
      prefix: 'CU',
      fields: {
        customer_id: id,
        name: str,
        tier,
        status: customerStatus,
        email: opt(email),
        phone: opt(str),
        domain: opt(str),
        industry: opt(str),
        region: opt(str),
        owner_contact_id: opt(ref('contacts.person')),
        annual_value: opt(money),
        created_at: opt(datetime),
        last_contact_at: opt(datetime),
        merged_into: opt(ref('crm.customer')),
        notes: opt(text),
      },
      summary: ['customer_id', 'name', 'tier', 'status', 'region', 'owner_contact_id'],
      search: ['name', 'email', 'domain', 'phone', 'notes'],
    },
    deal: {
      id: 'deal_id',
      prefix: 'DL',
      fields: {
        deal_id: id,
        customer_id: ref('crm.customer'),
        title: str,
        stage,
        amount: money,
        close_date: opt(date),
        owner_contact_id: opt(ref('contacts.person')),
      },
    },
    interaction: {
      id: 'interaction_id',
      prefix: 'IX',
      fields: {
        interaction_id: id,
        customer_id: ref('crm.customer'),
        kind,
        summary: text,
        created_at: datetime,
      },
    },
    export: {
      id: 'export_id',
      prefix: 'XP',
      fields: {
        export_id: id,
        title: str,
        customer_ids: list(id),
        summary: text,
        created_at: datetime,
      },
    },
  },
  tools: {
    crm_list_customers: {
      op: 'list',
      entity: 'customer',
      params: {
        status: opt(customerStatus),
        tier: opt(tier),
        region: opt(str),
        industry: opt(str),
        owner_contact_id: opt(id),
      },
    },
    crm_search_customers: { op: 'search', entity: 'customer' },
    crm_get_customer: { op: 'get', entity: 'customer' },
    crm_update_customer: {
      op: 'update',
      entity: 'customer',
      params: {
        tier: opt(tier),
        status: opt(oneOf('prospect', 'active', 'churned')),
        email: opt(email),
        phone: opt(str),
        owner_contact_id: opt(ref('contacts.person')),
        notes: opt(text),
      },
    },
    crm_merge_customers: {
      op: 'custom',
      entity: 'customer',
      params: { primary_id: ref('crm.customer'), duplicate_id: ref('crm.customer') },
      write: true,
      errors: ['INVALID_STATE', 'CONFLICT'],
      about:
        'Merges a duplicate into the primary customer; the duplicate stays as a merged record.',
      handler: mergeCustomers,
    },
    crm_log_interaction: {
      op: 'create',
      entity: 'interaction',
      params: { customer_id: ref('crm.customer'), kind, summary: text },
    },
    crm_list_deals: {
      op: 'list',
      entity: 'deal',
      params: { customer_id: opt(id), stage: opt(stage) },
    },
    crm_update_deal: {
      op: 'update',
      entity: 'deal',
      params: { stage: opt(stage), amount: opt(money), close_date: opt(date) },
    },
    crm_export_report: {
      op: 'create',
      entity: 'export',
      params: { title: str, customer_ids: list(id), summary: text },
    },
  },
})

type Customer = RecordOf<typeof crm.entities.customer>

/** The duplicate points to the primary from then on; neither may have been merged before. */
function mergeCustomers(transaction: Transaction, args: Args): Outcome {
  const [primaryId, duplicateId] = [args.primary_id as string, args.duplicate_id as string]
  if (primaryId === duplicateId)
    return refuse('CONFLICT', `expected two customers, got ${primaryId} twice`)
  for (const customerId of [primaryId, duplicateId]) {
    const customer = transaction.find<Customer>('crm.customer', customerId)
    if (customer?.status === 'merged')
      return refuse('INVALID_STATE', `${customerId} was merged into ${customer.merged_into} before`)
  }
  const patch = { status: 'merged', merged_into: primaryId }
  return done(transaction.change('crm.customer', duplicateId, patch))
}
