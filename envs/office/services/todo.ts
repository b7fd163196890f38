// The todo service: personal to-do list.
import {
  date,
  datetime,
  defineService,
  email,
  id,
  list,
  oneOf,
  opt,
  str,
  text,
} from '../catalogue/declare.ts'

const status = oneOf('pending', 'in_progress', 'done', 'cancelled')
const priority = oneOf('low', 'medium', 'high')

export const todo = defineService({
  name: 'todo',
  title: 'Personal to-do list',
  entities: {
    item: {
      id: 'todo_id',
      prefix: 'TD',
      fields: {
        todo_id: id,
        title: str,
        description: opt(text),
        status,
        priority,
        due_date: opt(date),
        owner: opt(email),
        tags: list(str),
        created_at: datetime,
      },
      search: ['title', 'description'],
    },
  },
  tools: {
    todo_list: {
      op: 'list',
      entity: 'item',
      params: { status: opt(status), owner: opt(email), tag: opt(str) },
      filters: { tag: ['tags', 'has'] },
    },
    todo_get: { op: 'get', entity: 'item' },
    todo_create: {
      op: 'create',
      entity: 'item',
      params: {
        title: str,
        description: opt(text),
        priority: opt(priority),
        due_date: opt(date),
        owner: opt(email),
        tags: opt(list(str)),
      },
      defaults: { status: 'pending', priority: 'medium', tags: [], owner: '@actor' },
    },
    todo_update: {
      op: 'update',
      entity: 'item',
      params: {
        title: opt(str),
        description: opt(text),
        priority: opt(priority),
        due_date: opt(date),
        status: opt(status),
        tags: opt(list(str)),
      },
    },
    todo_complete: {
      op: 'set',
      entity: 'item',
      set: { status: 'done' },
      guard: { status: ['pending', 'in_progress'] },
    },
    todo_delete: { op: 'delete', entity: 'item' },
  },
})
