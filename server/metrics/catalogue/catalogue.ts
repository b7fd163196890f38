// Every metric of the server in one table: registration, first values, docs/metrics.md and the lint of queries come from it.
import type { Definition, LabelsOf, MetricKind } from './definition.ts'
import { CONTRACT, EPISODES, GROUPS, REWARDS, SAMPLING } from './learning.ts'
import { BACKENDS, CAPACITY, COST, DELIVERY, EDGE, IDENTITY, STORE, TOOLS } from './serving.ts'

/** The table by section, as docs/metrics.md shows it. */
export const SECTIONS = {
  'Identity and meta': IDENTITY,
  'Groups, the unit that carries a gradient': GROUPS,
  'Effective sampling': SAMPLING,
  Episodes: EPISODES,
  'Reward and components': REWARDS,
  'Contract, parser, token chains': CONTRACT,
  Tools: TOOLS,
  'Queues, threads, event loop': CAPACITY,
  'Backends and others that a turn asks': BACKENDS,
  'Delivery and trainers': DELIVERY,
  'Cost and budget': COST,
  'Our own HTTP and WebSocket': EDGE,
  'Durable store': STORE,
} as const

const TABLE = {
  ...IDENTITY,
  ...GROUPS,
  ...SAMPLING,
  ...EPISODES,
  ...REWARDS,
  ...CONTRACT,
  ...TOOLS,
  ...CAPACITY,
  ...BACKENDS,
  ...DELIVERY,
  ...COST,
  ...EDGE,
  ...STORE,
}
type Table = typeof TABLE

/** Every name, without its prefix, and its definition. */
export const CATALOGUE: Record<string, Definition> = TABLE

/** What every name starts with. */
export const PREFIX = 'paddock_'

export type MetricName<Kind extends MetricKind> = {
  [Name in keyof Table]: Table[Name] extends Definition<Kind, string> ? Name : never
}[keyof Table]

/** The labels of a metric and the values that each may have. */
export type MetricLabels<Name extends keyof Table> =
  Table[Name] extends Definition<MetricKind, infer Labels> ? LabelsOf<Labels> : never
