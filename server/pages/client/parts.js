// Pieces that several pages draw: badges, bars, the strip of dots, and what stands where there is nothing.
import { h } from './dom.js'
import { figure, signed } from './figure.js'
import { words } from './format.js'

/** What a verdict or outcome means for the run, by which it is coloured. */
const KINDS = {
  valid: 'good',
  ok: 'good',
  finished: 'good',
  scored: 'quiet',
  zero_variance: 'flat',
  ok_truncated: 'flat',
  partial: 'flat',
  aborted: 'quiet',
  cancelled: 'quiet',
  waiting: 'quiet',
  running: 'live',
  paused: 'bad',
  held: 'flat',
}

export const kindOf = (name) => KINDS[name] ?? 'bad'

export function badge(name, more = '') {
  return h(`span.badge.${kindOf(name)}`, {}, words(name), more && ` \u00b7 ${words(more)}`)
}

/** A bar of shares; `parts` are `[name, count]`. The words beside it say the same as the colours. */
export function shareBar(parts, total) {
  const shown = parts.filter(([, count]) => count > 0)
  const text = shown.map(([name, count]) => `${count} ${words(name)}`).join(', ') || 'nothing yet'
  return h(
    'div.sharebar',
    { role: 'img', 'aria-label': `of ${total}: ${text}` },
    shown.map(([name, count]) =>
      h(`span.${kindOf(name)}`, { style: { '--share': count / Math.max(1, total) } }),
    ),
  )
}

export function legend(parts) {
  return h(
    'ul.legend',
    {},
    parts
      .filter(([, count]) => count > 0)
      .map(([name, count]) => h('li', {}, h(`i.${kindOf(name)}`), `${count} ${words(name)}`)),
  )
}

/** Height of a dot: its reward between the least and the most of the group, or 0 and 1 where these lie within. */
export function strip(members) {
  const rewards = members.flatMap(({ reward }) => (reward === null ? [] : [reward]))
  const low = Math.min(0, ...rewards)
  const high = Math.max(1, ...rewards)
  return h(
    'ol.strip',
    { 'aria-label': 'Episodes: reward, and sign of the advantage' },
    members.map((member) => h('li', {}, dot(member, (member.reward - low) / (high - low)))),
  )
}

function dot(member, height) {
  const { id, index, phase, outcome, reward, advantage } = member
  const state = phase === 'ended' ? (reward === null ? 'failed' : 'scored') : phase
  const said = [
    `episode ${index}`,
    phase === 'ended' ? words(outcome) : phase,
    reward === null ? null : `reward ${figure(reward)}`,
    advantage === null ? null : `advantage ${signed(advantage)}`,
  ].filter(Boolean)
  const inner = [
    h(`span.dot.${state}`, { style: { '--y': reward === null ? 0 : height } }),
    h('span.sign', { 'aria-hidden': 'true' }, signOf(member)),
  ]
  const label = { title: said.join('\n'), 'aria-label': said.join(', ') }
  return phase === 'ended'
    ? h('a.member', { href: `/episodes/${encodeURIComponent(id)}`, ...label }, inner)
    : h('span.member', { role: 'img', ...label }, inner)
}

function signOf({ phase, reward, advantage }) {
  if (phase !== 'ended') return ''
  if (reward === null) return '\u00d7'
  if (advantage === null) return '\u00b7'
  return advantage > 0 ? '+' : advantage < 0 ? '\u2212' : '0'
}

export function facts(pairs) {
  return h(
    'dl.facts',
    {},
    pairs
      .filter(([, value]) => value !== null && value !== undefined)
      .map(([name, value]) => h('div', {}, h('dt', {}, name), h('dd', {}, value))),
  )
}

export const loading = (what) => h('p.quietly', { role: 'status' }, `Loading ${what}\u2026`)
export const empty = (title, ...more) => h('div.empty', {}, h('p.lead', {}, title), ...more)
export const failure = (error) =>
  h(
    'div.empty.failed',
    { role: 'alert' },
    h('p.lead', {}, 'This cannot be shown'),
    h('p', {}, error.message),
  )
