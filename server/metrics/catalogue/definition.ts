// What one entry of the metrics catalogue is, and the ways to write one.
import type { ClosedList, LabelValue, OpenList } from '../labels.ts'

type Word = OpenList | ClosedList
/** A label's name where a list of that name exists, else `name:list`. */
type LabelWord = Word | `${string}:${Word}`

/** `Labels`: label words with spaces between, as `env mode outcome:group_outcome`; empty for none. */
export interface Definition<Kind extends MetricKind = MetricKind, Labels extends string = string> {
  kind: Kind
  labels: Labels
  unit: string
  help: string
  /** Upper bounds, of histograms. */
  buckets?: readonly number[]
  /** Has no sample until somebody has told its value: a 0 would be a claim. */
  onceKnown?: true
}

export type MetricKind = 'counter' | 'gauge' | 'histogram'

type Words<Text extends string> = Text extends `${infer First} ${infer Rest}`
  ? First | Words<Rest>
  : Text extends ''
    ? never
    : Text

/** The label words as an object of label names to their values. */
export type LabelsOf<Text extends string> = {
  [W in Words<Text> as W extends `${infer Name}:${string}` ? Name : W]: LabelValue<
    W extends `${string}:${infer List}` ? List : W
  >
}

/** Fails to compile where a word names no list. */
type Checked<Text extends string> = Words<Text> extends LabelWord ? Text : never

export function counter<L extends string>(labels: Checked<L>, unit: string, help: string) {
  return { kind: 'counter', labels, unit, help } as Definition<'counter', L>
}

export function gauge<L extends string>(labels: Checked<L>, unit: string, help: string) {
  return { kind: 'gauge', labels, unit, help } as Definition<'gauge', L>
}

/** A level that is not known at the start. */
export function gaugeOnceKnown<L extends string>(labels: Checked<L>, unit: string, help: string) {
  return { ...gauge(labels, unit, help), onceKnown: true } as Definition<'gauge', L>
}

export function histogram<L extends string>(
  labels: Checked<L>,
  unit: string,
  buckets: readonly number[],
  help: string,
) {
  return { kind: 'histogram', labels, unit, help, buckets } as Definition<'histogram', L>
}

/** Label names with the list of each, in their order. */
export function labelLists({ labels }: Definition): { name: string; list: Word }[] {
  if (labels === '') return []
  return labels.split(' ').map((word) => {
    const [name, list = name] = word.split(':')
    return { name: name as string, list: list as Word }
  })
}

/** Shared bucket bounds, in seconds. */
export const EPISODE_SECONDS = [0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1200, 2400, 3600, 7200]
export const BACKEND_SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320, 640]
export const STEP_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]
