// The kb service: knowledge base / policies.
import {
  datetime,
  defineService,
  id,
  int,
  list,
  oneOf,
  opt,
  str,
  text,
} from '../catalogue/declare.ts'

const status = oneOf('published', 'draft', 'archived')

export const kb = defineService({
  name: 'kb',
  title: 'Knowledge base / policies',
  entities: {
    article: {
      id: 'article_id',
      prefix: 'KB',
      fields: {
        article_id: id,
        title: str,
        category: str,
        tags: list(str),
        body: text,
        status,
        version: int,
        updated_at: datetime,
      },
      summary: ['article_id', 'title', 'category', 'tags', 'status', 'updated_at'],
      search: ['title', 'tags', 'body'],
    },
  },
  tools: {
    kb_search: {
      op: 'search',
      entity: 'article',
      params: { category: opt(str) },
    },
    kb_list: {
      op: 'list',
      entity: 'article',
      params: { category: opt(str), status: opt(status) },
    },
    kb_get_article: { op: 'get', entity: 'article' },
    kb_create_article: {
      op: 'create',
      entity: 'article',
      params: { title: str, category: str, body: text, tags: opt(list(str)) },
      defaults: { status: 'draft', version: 1, tags: [], updated_at: '@now' },
    },
    kb_update_article: {
      op: 'update',
      entity: 'article',
      params: { title: opt(str), body: opt(text), tags: opt(list(str)), status: opt(status) },
    },
  },
})
