// The dashboard's panels with their data, for /dash: only what the dashboard asks, so that no query comes from outside.
import { z } from 'zod'
import { PaddockError } from '../../protocol/errors.ts'
import type { Annotation } from '../dash/annotations.ts'
import type { Board, Figure, PanelData } from '../dash/board.ts'
import { type Edge, route } from './route.ts'

const tag = 'dashboard'
const roles = ['metrics'] as const
const labels = z.record(z.string(), z.string())
const head = {
  id: z.int(),
  title: z.string(),
  description: z.string(),
  unit: z.string().describe('As Grafana names it.'),
}

const describedSchema = z
  .object({
    source: z.enum(['prometheus', 'memory']),
    interval: z.number().describe('Seconds between two samples.'),
    seconds: z.number().nullable().describe('How far back the data reach; null: any time.'),
    remark: z.string().nullable().describe('What is wrong with the whole of it.'),
    variables: z
      .array(z.object({ name: z.string(), values: z.array(z.string()) }))
      .describe('What the panels may be asked for, by the values that there are now.'),
    rows: z.array(
      z.object({
        title: z.string(),
        panels: z.array(
          z.object({
            ...head,
            kind: z.enum(['stat', 'timeseries', 'heatmap', 'table', 'state-timeline']),
            thresholds: z.array(z.object({ color: z.string(), value: z.number().nullable() })),
          }),
        ),
      }),
    ),
  })
  .meta({ id: 'Dashboard' }) satisfies z.ZodType<Awaited<ReturnType<Board['describe']>>>

const panelSchema = z
  .object({
    times: z.array(z.number()).describe('Seconds since 1970.'),
    series: z.array(z.object({ name: z.string(), labels, values: z.array(z.number().nullable()) })),
    notes: z.array(z.string()).describe('Why something is missing.'),
  })
  .meta({ id: 'PanelData' }) satisfies z.ZodType<PanelData>

const annotationsSchema = z
  .object({
    annotations: z.array(
      z.object({
        name: z.string(),
        color: z.string(),
        spans: z.array(z.object({ from: z.number(), to: z.number(), text: z.string() })),
        notes: z.array(z.string()).describe('Why something is missing.'),
      }),
    ),
  })
  .meta({ id: 'Annotations' }) satisfies z.ZodType<{ annotations: Annotation[] }>

const figuresSchema = z
  .object({
    figures: z.array(
      z.object({
        ...head,
        value: z.number().nullable().describe('The last that is known within the hour.'),
        color: z.string(),
      }),
    ),
  })
  .meta({ id: 'Figures' }) satisfies z.ZodType<{ figures: Figure[] }>

const described = route({
  method: 'get',
  path: '/v1/dashboard',
  tag,
  summary: 'The rows and panels of the dashboard',
  roles,
  query: z.strictObject({}),
  answers: { 200: json('What there is, and where its data come from', describedSchema) },
  handle: async ({ context }, edge) => context.json(await boardOf(edge).describe()),
})

const minutes = z.coerce.number().pipe(z.int().min(5).max(1440)).default(60)
const values = z
  .string()
  .max(4000)
  .transform((text) => text.split(',').filter((value) => value !== ''))
  .optional()
  .describe('Values with commas between; missing or empty: all.')

const panel = route({
  method: 'get',
  path: '/v1/dashboard/panels/:id',
  tag,
  summary: 'The data of one panel',
  roles,
  query: z.strictObject({ minutes, env: values, mode: values, backend: values }),
  answers: { 200: json('Its series over the last minutes', panelSchema) },
  async handle({ context, params, query: { minutes, ...variables } }, edge) {
    const chosen = Object.fromEntries(
      Object.entries(variables).map(([name, some]) => [name, some ?? []]),
    )
    return context.json(await boardOf(edge).panel(Number(params.id), minutes, chosen))
  },
})

const annotations = route({
  method: 'get',
  path: '/v1/dashboard/annotations',
  tag,
  summary: 'What happened meanwhile: alerts that fire, weight updates',
  roles,
  query: z.strictObject({ minutes }),
  answers: { 200: json('The annotations over the last minutes', annotationsSchema) },
  handle: async ({ context, query }, edge) =>
    context.json({ annotations: await boardOf(edge).annotations(query.minutes) }),
})

const figures = route({
  method: 'get',
  path: '/v1/dashboard/figures',
  tag,
  summary: 'The figures that say whether the run learns',
  roles,
  query: z.strictObject({}),
  answers: { 200: json('Its stat panels with their last value', figuresSchema) },
  handle: async ({ context }, edge) => context.json({ figures: await boardOf(edge).figures() }),
})

function boardOf({ board }: Edge): Board {
  if (board) return board
  throw new PaddockError('not_found', 'this server keeps no dashboard')
}

function json(description: string, schema: z.ZodType) {
  return { description, content: { 'application/json': schema } }
}

export const dashboardRoutes = [described, figures, annotations, panel]
