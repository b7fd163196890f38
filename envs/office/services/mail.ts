// The mail service: mailbox of the person the agent works for.
import {
  bool,
  datetime,
  defineService,
  email,
  id,
  list,
  oneOf,
  opt,
  type RecordOf,
  ref,
  str,
  text,
} from '../catalogue/declare.ts'
import { done, type Outcome, refuse } from '../kernel/outcome.ts'
import type { Args, Transaction } from '../kernel/transaction.ts'

const messageFolder = oneOf('inbox', 'sent', 'drafts', 'archive', 'spam', 'trash')

export const mail = defineService({
  name: 'mail',
  title: 'Mailbox of the person the agent works for',
  entities: {
    message: {
      id: 'message_id',
      prefix: 'ML',
      fields: {
        message_id: id,
        folder: messageFolder,
        from: email,
        to: list(email),
        cc: opt(list(email)),
        subject: str,
        body: text,
        sent_at: datetime,
        read: bool,
        labels: list(str),
        in_reply_to: opt(ref('mail.message')),
      },
      summary: ['message_id', 'folder', 'from', 'to', 'subject', 'sent_at', 'read', 'labels'],
      search: ['subject', 'body', 'from'],
      sort: ['sent_at', 'desc'],
      stamps: ['sent_at'],
    },
  },
  tools: {
    mail_list_messages: {
      op: 'list',
      entity: 'message',
      params: {
        folder: opt(messageFolder),
        read: opt(bool),
        from: opt(str),
        since: opt(datetime),
        label: opt(str),
      },
      filters: { from: ['from', 'contains'], since: ['sent_at', 'gte'], label: ['labels', 'has'] },
      defaults: { folder: 'inbox' },
    },
    mail_search: { op: 'search', entity: 'message' },
    mail_get_message: { op: 'get', entity: 'message' },
    mail_send: {
      op: 'create',
      entity: 'message',
      params: {
        to: list(email),
        subject: str,
        body: text,
        cc: opt(list(email)),
        in_reply_to: opt(ref('mail.message')),
      },
      defaults: { folder: 'sent', from: '@actor', read: true, labels: [], sent_at: '@now' },
    },
    mail_save_draft: {
      op: 'create',
      entity: 'message',
      params: {
        to: list(email),
        subject: str,
        body: text,
        cc: opt(list(email)),
        in_reply_to: opt(ref('mail.message')),
      },
      defaults: { folder: 'drafts', from: '@actor', read: true, labels: [], sent_at: '@now' },
    },
    mail_label_message: {
      op: 'custom',
      entity: 'message',
      params: { message_id: ref('mail.message'), add: opt(list(str)), remove: opt(list(str)) },
      write: true,
      about:
        'Adds labels to a message and takes labels away; labels that are there already change nothing.',
      handler: labelMessage,
    },
    mail_move_message: {
      op: 'set',
      entity: 'message',
      params: { folder: oneOf('inbox', 'archive', 'spam', 'trash') },
      set: { folder: '@folder' },
    },
  },
})

type Message = RecordOf<typeof mail.entities.message>

/** A label that is both added and removed is removed. */
function labelMessage(transaction: Transaction, args: Args): Outcome {
  const add = (args.add ?? []) as string[]
  const remove = (args.remove ?? []) as string[]
  if (add.length + remove.length === 0)
    return refuse('INVALID_ARGUMENT', 'expected labels in add, remove or both, got none')
  const messageId = args.message_id as string
  const present = transaction.find<Message>('mail.message', messageId)?.labels ?? []
  const labels = [...new Set([...present, ...add])].filter((label) => !remove.includes(label))
  return done(transaction.change('mail.message', messageId, { labels }))
}
