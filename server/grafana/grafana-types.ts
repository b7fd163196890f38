// Grafana's published types as JSON has them: the words of an enum in place of its members.
import type {
  Panel as AnyPanel,
  Dashboard,
  RowPanel,
} from '@grafana/grafana-foundation-sdk/dashboard'
import type { Options as HeatmapOptions } from '@grafana/grafana-foundation-sdk/heatmap'
import type { Dataquery } from '@grafana/grafana-foundation-sdk/prometheus'
import type { Options as StatOptions } from '@grafana/grafana-foundation-sdk/stat'
import type {
  FieldConfig as StateTimelineField,
  Options as StateTimelineOptions,
} from '@grafana/grafana-foundation-sdk/statetimeline'
import type { Options as TableOptions } from '@grafana/grafana-foundation-sdk/table'
import type {
  FieldConfig as TimeSeriesField,
  Options as TimeSeriesOptions,
} from '@grafana/grafana-foundation-sdk/timeseries'

/** `"sum"` for `Reduce.Sum`; methods, which JSON has not, are left out. */
type Json<T> = T extends string
  ? `${T}`
  : T extends (...args: never[]) => unknown
    ? never
    : T extends (infer Item)[]
      ? Json<Item>[]
      : T extends object
        ? { [K in keyof T as T[K] extends (...args: never[]) => unknown ? never : K]: Json<T[K]> }
        : T

export type PrometheusTarget = Json<Dataquery>

/** Options and own field settings of the panel types in use. */
interface Kinds {
  stat: { options: StatOptions; custom: undefined }
  timeseries: { options: TimeSeriesOptions; custom: TimeSeriesField }
  heatmap: { options: HeatmapOptions; custom: undefined }
  table: { options: TableOptions; custom: undefined }
  'state-timeline': { options: StateTimelineOptions; custom: StateTimelineField }
}
export type PanelKind = keyof Kinds

type FieldConfigSource = NonNullable<Json<AnyPanel>['fieldConfig']>

export type PanelJson<Kind extends PanelKind = PanelKind> = {
  [K in Kind]: Omit<Json<AnyPanel>, 'type' | 'targets' | 'options' | 'fieldConfig'> & {
    type: K
    targets: PrometheusTarget[]
    options: Json<Kinds[K]['options']>
    fieldConfig: Omit<FieldConfigSource, 'defaults'> & {
      defaults: Omit<FieldConfigSource['defaults'], 'custom'> & {
        custom?: Json<Partial<Kinds[K]['custom']>>
      }
    }
  }
}[Kind]

type RowJson = Json<RowPanel>
export type DashboardJson = Omit<Json<Dashboard>, 'panels'> & { panels: (PanelJson | RowJson)[] }
