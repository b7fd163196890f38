// The feeds service: news feeds and newsletters.
import { datetime, defineService, email, id, list, opt, str, text } from '../catalogue/declare.ts'

export const feeds = defineService({
  name: 'feeds',
  title: 'News feeds and newsletters',
  entities: {
    article: {
      id: 'article_id',
      prefix: 'FA',
      fields: {
        article_id: id,
        source: str,
        title: str,
        category: str,
        published_at: datetime,
        summary: text,
        body: text,
      },
      summary: ['article_id', 'source', 'title', 'category', 'published_at', 'summary'],
      search: ['title', 'summary', 'body'],
      sort: ['published_at', 'desc'],
    },
    newsletter: {
      id: 'newsletter_id',
      prefix: 'NL',
      fields: {
        newsletter_id: id,
        title: str,
        body: text,
        recipients: list(email),
        created_at: datetime,
      },
    },
  },
  tools: {
    feeds_list_articles: {
      op: 'list',
      entity: 'article',
      params: { source: opt(str), category: opt(str), since: opt(datetime) },
      filters: { since: ['published_at', 'gte'] },
    },
    feeds_search: { op: 'search', entity: 'article' },
    feeds_get_article: { op: 'get', entity: 'article' },
    feeds_publish_newsletter: {
      op: 'create',
      entity: 'newsletter',
      params: { title: str, body: text, recipients: list(email) },
    },
  },
})
