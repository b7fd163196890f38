// The procurement service: vendors and purchase requests.
import {
  date,
  datetime,
  defineService,
  email,
  id,
  money,
  oneOf,
  opt,
  ref,
  str,
  text,
} from '../catalogue/declare.ts'

const vendorStatus = oneOf('active', 'on_hold', 'blocked')

export const procurement = defineService({
  name: 'procurement',
  title: 'Vendors and purchase requests',
  entities: {
    vendor: {
      id: 'vendor_id',
      prefix: 'VN',
      fields: {
        vendor_id: id,
        name: str,
        email,
        phone: opt(str),
        bank_account: str,
        status: vendorStatus,
        category: opt(str),
        contact_name: opt(str),
        bank_verified_at: opt(date),
      },
      summary: ['vendor_id', 'name', 'email', 'status', 'category'],
      search: ['name', 'email', 'contact_name'],
    },
    request: {
      id: 'request_id',
      prefix: 'PR',
      fields: {
        request_id: id,
        vendor_id: ref('procurement.vendor'),
        description: text,
        amount: money,
        requester: email,
        status: oneOf('pending', 'approved', 'rejected'),
        note: opt(text),
        created_at: datetime,
      },
    },
    verification: {
      id: 'verification_id',
      prefix: 'VF',
      fields: {
        verification_id: id,
        vendor_id: ref('procurement.vendor'),
        reason: text,
        status: oneOf('open', 'confirmed', 'rejected'),
        opened_by: email,
        created_at: datetime,
      },
    },
  },
  tools: {
    procurement_list_vendors: {
      op: 'list',
      entity: 'vendor',
      params: { status: opt(vendorStatus), category: opt(str) },
    },
    procurement_search_vendors: { op: 'search', entity: 'vendor' },
    procurement_get_vendor: { op: 'get', entity: 'vendor' },
    procurement_update_vendor_bank: {
      op: 'set',
      entity: 'vendor',
      params: { bank_account: str },
      set: { bank_account: '@bank_account' },
    },
    procurement_set_vendor_status: {
      op: 'set',
      entity: 'vendor',
      params: { status: vendorStatus, reason: text },
      set: { status: '@status' },
    },
    procurement_open_verification: {
      op: 'create',
      entity: 'verification',
      params: { vendor_id: ref('procurement.vendor'), reason: text },
      defaults: { status: 'open', opened_by: '@actor' },
    },
    procurement_create_request: {
      op: 'create',
      entity: 'request',
      params: { vendor_id: ref('procurement.vendor'), description: text, amount: money },
      defaults: { status: 'pending', requester: '@actor' },
    },
    procurement_decide_request: {
      op: 'set',
      entity: 'request',
      params: { decision: oneOf('approved', 'rejected'), note: opt(text) },
      set: { status: '@decision', note: '@note' },
      guard: { status: ['pending'] },
    },
  },
})
