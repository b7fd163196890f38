// The contacts service: directory of people.
import {
  datetime,
  defineService,
  email,
  id,
  oneOf,
  opt,
  ref,
  str,
  text,
} from '../catalogue/declare.ts'

const kind = oneOf('internal', 'external')
const status = oneOf('active', 'left')

export const contacts = defineService({
  name: 'contacts',
  title: 'Directory of people',
  entities: {
    person: {
      id: 'person_id',
      prefix: 'PE',
      fields: {
        person_id: id,
        name: str,
        email,
        phone: opt(str),
        title: opt(str),
        department: opt(str),
        location: opt(str),
        manager_id: opt(ref('contacts.person')),
        kind,
        status,
        notes: opt(text),
      },
      summary: ['person_id', 'name', 'title', 'department', 'location', 'kind', 'status'],
      search: ['name', 'title', 'department', 'location', 'email'],
    },
    direct_message: {
      id: 'dm_id',
      prefix: 'DM',
      fields: {
        dm_id: id,
        person_id: ref('contacts.person'),
        message: text,
        from: email,
        created_at: datetime,
      },
    },
  },
  tools: {
    contacts_search: {
      op: 'search',
      entity: 'person',
      params: { department: opt(str), kind: opt(kind) },
    },
    contacts_list: {
      op: 'list',
      entity: 'person',
      params: { department: opt(str), kind: opt(kind), status: opt(status) },
    },
    contacts_get: { op: 'get', entity: 'person' },
    contacts_send_message: {
      op: 'create',
      entity: 'direct_message',
      params: { person_id: ref('contacts.person'), message: text },
      defaults: { from: '@actor' },
    },
    contacts_update: {
      op: 'update',
      entity: 'person',
      params: {
        email: opt(email),
        phone: opt(str),
        title: opt(str),
        department: opt(str),
        location: opt(str),
        status: opt(status),
      },
    },
  },
})
