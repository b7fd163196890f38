// The contracts service: contracts and notices.
import {
  bool,
  date,
  datetime,
  defineService,
  id,
  int,
  money,
  oneOf,
  opt,
  ref,
  str,
  text,
} from '../catalogue/declare.ts'

const status = oneOf('draft', 'active', 'expired', 'terminated')
const kind = oneOf('renewal', 'termination', 'breach')

export const contracts = defineService({
  name: 'contracts',
  title: 'Contracts and notices',
  entities: {
    contract: {
      id: 'contract_id',
      prefix: 'CT',
      fields: {
        contract_id: id,
        title: str,
        customer_id: opt(ref('crm.customer')),
        vendor_id: opt(ref('procurement.vendor')),
        start_date: date,
        end_date: date,
        value: money,
        auto_renew: bool,
        notice_days: int,
        status,
        owner_contact_id: opt(ref('contacts.person')),
        body: opt(text),
        notes: opt(text),
      },
      summary: [
        'contract_id',
        'title',
        'customer_id',
        'vendor_id',
        'end_date',
        'auto_renew',
        'status',
      ],
      search: ['title', 'body'],
      sort: ['end_date', 'asc'],
    },
    notice: {
      id: 'notice_id',
      prefix: 'NO',
      fields: {
        notice_id: id,
        contract_id: ref('contracts.contract'),
        kind,
        text,
        created_at: datetime,
      },
    },
  },
  tools: {
    contracts_list: {
      op: 'list',
      entity: 'contract',
      params: {
        status: opt(status),
        customer_id: opt(id),
        vendor_id: opt(id),
        ends_before: opt(date),
      },
      filters: { ends_before: ['end_date', 'lte'] },
    },
    contracts_search: { op: 'search', entity: 'contract' },
    contracts_get: { op: 'get', entity: 'contract' },
    contracts_update: {
      op: 'update',
      entity: 'contract',
      params: { auto_renew: opt(bool), status: opt(status), notes: opt(text) },
    },
    contracts_send_notice: {
      op: 'create',
      entity: 'notice',
      params: { contract_id: ref('contracts.contract'), kind, text },
    },
  },
})
