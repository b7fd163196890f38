// The web service: fixture web (search and fetch).
import { date, datetime, defineService, id, opt, str, text } from '../catalogue/declare.ts'

export const web = defineService({
  name: 'web',
  title: 'Fixture web (search and fetch)',
  entities: {
    page: {
      id: 'url',
      prefix: 'WP',
      fields: {
        url: id,
        title: str,
        site: opt(str),
        body: text,
        published_at: opt(date),
      },
      summary: ['url', 'title', 'site', 'published_at'],
      search: ['title', 'body', 'site'],
    },
    submission: {
      id: 'submission_id',
      prefix: 'WS',
      fields: {
        submission_id: id,
        url: str,
        payload: text,
        created_at: datetime,
      },
    },
  },
  tools: {
    web_search: { op: 'search', entity: 'page' },
    web_fetch: { op: 'get', entity: 'page' },
    web_submit_form: {
      op: 'create',
      entity: 'submission',
      params: { url: str, payload: text },
    },
  },
})
