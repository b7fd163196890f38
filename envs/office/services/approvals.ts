// The approvals service: approval requests.
import {
  datetime,
  defineService,
  email,
  id,
  money,
  oneOf,
  opt,
  str,
  text,
} from '../catalogue/declare.ts'

const status = oneOf('pending', 'approved', 'rejected', 'cancelled')

export const approvals = defineService({
  name: 'approvals',
  title: 'Approval requests',
  entities: {
    request: {
      id: 'approval_id',
      prefix: 'AP',
      fields: {
        approval_id: id,
        kind: str,
        subject_ref: str,
        amount: opt(money),
        requester: email,
        approver: email,
        status,
        note: opt(text),
        created_at: datetime,
      },
    },
  },
  tools: {
    approvals_list: {
      op: 'list',
      entity: 'request',
      params: { status: opt(status), approver: opt(email), requester: opt(email) },
    },
    approvals_get: { op: 'get', entity: 'request' },
    approvals_request: {
      op: 'create',
      entity: 'request',
      params: { kind: str, subject_ref: str, approver: email, amount: opt(money), note: opt(text) },
      defaults: { status: 'pending', requester: '@actor' },
    },
    approvals_decide: {
      op: 'set',
      entity: 'request',
      params: { decision: oneOf('approved', 'rejected'), note: opt(text) },
      set: { status: '@decision', note: '@note' },
      guard: { status: ['pending'] },
    },
    approvals_cancel: {
      op: 'set',
      entity: 'request',
      set: { status: 'cancelled' },
      guard: { status: ['pending'] },
    },
  },
})
