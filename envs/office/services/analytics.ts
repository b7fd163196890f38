// The analytics service: metrics and saved reports.
import { datetime, defineService, id, list, num, opt, str, text } from '../catalogue/declare.ts'

export const analytics = defineService({
  name: 'analytics',
  title: 'Metrics and saved reports',
  entities: {
    point: {
      id: 'point_id',
      prefix: 'AM',
      fields: {
        point_id: id,
        metric: str,
        period: str,
        dimension: opt(str),
        value: num,
        unit: opt(str),
      },
      sort: ['period', 'asc'],
    },
    report: {
      id: 'report_id',
      prefix: 'AR',
      fields: {
        report_id: id,
        title: str,
        metrics: list(str),
        body: text,
        created_at: datetime,
      },
    },
  },
  tools: {
    analytics_query: {
      op: 'list',
      entity: 'point',
      params: { metric: str, dimension: opt(str), from: opt(str), to: opt(str) },
      filters: { from: ['period', 'gte'], to: ['period', 'lte'] },
    },
    analytics_get_point: { op: 'get', entity: 'point' },
    analytics_create_report: {
      op: 'create',
      entity: 'report',
      params: { title: str, metrics: list(str), body: text },
    },
  },
})
