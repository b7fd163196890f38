// Where each record of the ledger lies. An id holds no `/`, so that a prefix that ends in one is a folder.
import type { EpisodePlace } from '../../rollout/ports.ts'

const place = (number: number) => String(number).padStart(12, '0')

export const keys = {
  /** The ledger's clock, and how often it was opened. */
  clock: 'clock',
  /** Digest of a request, for as long as the ledger lives. */
  submitted: (batch: string) => `submitted/${batch}`,
  note: (name: string) => `note/${name}`,
  batch: (batch: string) => `batch/${batch}`,
  /** What happened to a batch, in order. */
  event: (batch: string, number: number) => `event/${batch}/${place(number)}`,
  /** A finished group's record, and how it stands. */
  group: (batch: string, group: string) => `group/${batch}/${group}`,
  delivery: (batch: string, group: string) => `delivery/${batch}/${group}`,
  /** What was sealed of an episode. */
  blob: (episode: string) => `blob/${groupOf(episode)}/${episode}`,
  /** A reply of an attempt that is under way. */
  turn: (episode: string, attempt: number, number: number) =>
    `turn/${episode}/${place(attempt)}/${place(number)}`,
  turns: (episode: string, attempt: number) => `turn/${episode}/${place(attempt)}/`,
  episodeTurns: (episode: string) => `turn/${episode}/`,
  /** Groups that have left, in order: the first is the first whose bytes go. */
  gone: (number: number) => `gone/${place(number)}`,
  /** A record that is not what was written, under its own key. */
  bad: (key: string) => `bad/${key}`,
}

/** Last part of a key. */
export function nameOf(key: string): string {
  return key.slice(key.lastIndexOf('/') + 1)
}

/** An episode's id is its group's with `.e` and its place. */
function groupOf(episode: string): EpisodePlace['group'] {
  return episode.slice(0, Math.max(0, episode.lastIndexOf('.e')))
}
