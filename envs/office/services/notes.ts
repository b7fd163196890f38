// The notes service: meeting notes.
import { datetime, defineService, email, id, list, opt, str, text } from '../catalogue/declare.ts'

export const notes = defineService({
  name: 'notes',
  title: 'Meeting notes',
  entities: {
    note: {
      id: 'note_id',
      prefix: 'NT',
      fields: {
        note_id: id,
        title: str,
        created_at: datetime,
        participants: list(str),
        body: text,
        tags: list(str),
        shared_with: list(email),
      },
      summary: ['note_id', 'title', 'created_at', 'participants', 'tags'],
      search: ['title', 'body', 'participants'],
      sort: ['created_at', 'desc'],
    },
  },
  tools: {
    notes_list: {
      op: 'list',
      entity: 'note',
      params: { from: opt(datetime), to: opt(datetime), tag: opt(str) },
      filters: { from: ['created_at', 'gte'], to: ['created_at', 'lte'], tag: ['tags', 'has'] },
    },
    notes_search: { op: 'search', entity: 'note' },
    notes_get: { op: 'get', entity: 'note' },
    notes_create: {
      op: 'create',
      entity: 'note',
      params: { title: str, body: text, participants: opt(list(str)), tags: opt(list(str)) },
      defaults: { participants: [], tags: [], shared_with: [] },
    },
    notes_update: {
      op: 'update',
      entity: 'note',
      params: { title: opt(str), body: opt(text), tags: opt(list(str)) },
    },
    notes_share: {
      op: 'append',
      entity: 'note',
      params: { recipients: list(email) },
      append: { shared_with: '@recipients' },
    },
  },
})
