// The helpdesk service: support tickets.
import {
  datetime,
  defineService,
  email,
  id,
  int,
  list,
  oneOf,
  opt,
  ref,
  str,
  text,
} from '../catalogue/declare.ts'

const priority = oneOf('low', 'normal', 'high', 'urgent')
const status = oneOf('open', 'pending', 'escalated', 'resolved', 'closed')
const visibility = oneOf('internal', 'public')

export const helpdesk = defineService({
  name: 'helpdesk',
  title: 'Support tickets',
  entities: {
    ticket: {
      id: 'ticket_id',
      prefix: 'TK',
      fields: {
        ticket_id: id,
        customer_id: opt(ref('crm.customer')),
        requester_email: opt(email),
        subject: str,
        body: text,
        category: opt(str),
        priority,
        status,
        assignee_id: opt(ref('contacts.person')),
        tags: opt(list(str)),
        created_at: datetime,
        updated_at: opt(datetime),
        sla_hours: opt(int),
        escalation_reason: opt(text),
        resolution: opt(text),
      },
      summary: [
        'ticket_id',
        'customer_id',
        'subject',
        'priority',
        'status',
        'created_at',
        'assignee_id',
      ],
      search: ['subject', 'body', 'requester_email'],
    },
    comment: {
      id: 'comment_id',
      prefix: 'TC',
      fields: {
        comment_id: id,
        ticket_id: ref('helpdesk.ticket'),
        author: email,
        visibility,
        text,
        created_at: datetime,
      },
    },
  },
  tools: {
    helpdesk_list_tickets: {
      op: 'list',
      entity: 'ticket',
      params: {
        status: opt(status),
        priority: opt(priority),
        customer_id: opt(id),
        created_before: opt(datetime),
        created_after: opt(datetime),
      },
      filters: { created_before: ['created_at', 'lte'], created_after: ['created_at', 'gte'] },
    },
    helpdesk_search_tickets: { op: 'search', entity: 'ticket' },
    helpdesk_get_ticket: { op: 'get', entity: 'ticket' },
    helpdesk_create_ticket: {
      op: 'create',
      entity: 'ticket',
      params: {
        subject: str,
        body: text,
        customer_id: opt(ref('crm.customer')),
        requester_email: opt(email),
        priority: opt(priority),
      },
      defaults: { priority: 'normal', status: 'open', tags: [] },
    },
    helpdesk_update_ticket: {
      op: 'update',
      entity: 'ticket',
      params: {
        priority: opt(priority),
        category: opt(str),
        tags: opt(list(str)),
        assignee_id: opt(ref('contacts.person')),
      },
    },
    helpdesk_escalate_ticket: {
      op: 'set',
      entity: 'ticket',
      params: { reason: text, assignee_id: opt(ref('contacts.person')) },
      set: { status: 'escalated', escalation_reason: '@reason', assignee_id: '@assignee_id' },
      guard: { status: ['open', 'pending'] },
    },
    helpdesk_add_comment: {
      op: 'create',
      entity: 'comment',
      params: { ticket_id: ref('helpdesk.ticket'), text, visibility: opt(visibility) },
      defaults: { visibility: 'internal', author: '@actor' },
    },
    helpdesk_close_ticket: {
      op: 'set',
      entity: 'ticket',
      params: { resolution: text },
      set: { status: 'closed', resolution: '@resolution' },
      guard: { status: ['open', 'pending', 'escalated', 'resolved'] },
    },
  },
})
