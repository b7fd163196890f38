// The grade of an episode with its evidence: what was checked, what it found, and what was made of it.
import { foreign, h } from './dom.js'
import { figure } from './figure.js'
import { words } from './format.js'
import { badge, empty, facts } from './parts.js'

export function grade({ grade: given, rewards, reward, reason, shaping = [], weights }) {
  if (given === null) return empty('It was not graded', h('p', {}, reason))
  const { checks, ...rest } = given.evidence ?? {}
  return [
    h('h3', {}, `Reward ${figure(reward)}`),
    rewards && facts(Object.entries(rewards).map(([name, value]) => [words(name), figure(value)])),
    shaping.length > 0 &&
      h(
        'ul.remarks',
        {},
        shaping.map((step) => h('li', {}, shaped(step))),
      ),
    checks && checkTable(checks, weights),
    given.reason && foreign('p', String(given.reason)),
    Object.entries(rest)
      .filter(([, value]) => !Array.isArray(value) || value.length > 0)
      .map(([name, value]) =>
        h(
          'section',
          {},
          h('h3', {}, words(name)),
          foreign('pre', typeof value === 'string' ? value : JSON.stringify(value, null, 2)),
        ),
      ),
  ]
}

/** That a check was graded says nothing of what it found: that is its score. Weights are there where its environment has any. */
function checkTable(checks, weights) {
  const names = ['check', 'status', 'score', ...(weights ? ['weight', 'adds'] : []), 'evidence']
  return h(
    'div.scroll',
    { tabindex: '0', role: 'region', 'aria-label': 'Checks' },
    h('table', {}, [
      h(
        'thead',
        {},
        h(
          'tr',
          {},
          names.map((name) => h('th', { scope: 'col' }, name)),
        ),
      ),
      h(
        'tbody',
        {},
        Object.entries(checks).map(([name, { status, score, evidence, ...more }]) =>
          h('tr', {}, [
            h('th', { scope: 'row' }, words(name)),
            h('td', {}, badge(status)),
            h('td.number', {}, figure(score)),
            weights && weighed(score, weights[name]),
            h('td', {}, [
              Array.isArray(evidence) && evidence.length > 0
                ? h(
                    'ul.plain',
                    {},
                    evidence.map((one) =>
                      foreign('li', typeof one === 'string' ? one : JSON.stringify(one)),
                    ),
                  )
                : '\u2013',
              Object.keys(more).length > 0 && foreign('pre', JSON.stringify(more, null, 2)),
            ]),
          ]),
        ),
      ),
    ]),
  )
}

function weighed(score, weight) {
  const adds = score === null || weight === undefined ? null : score * weight
  return [weight, adds].map((value) => h('td.number', {}, figure(value)))
}

function shaped(step) {
  if (step.kind === 'condition')
    return `${words(step.component)} counts as ${figure(step.counted)} instead of ${figure(step.raw)}: it requires ${words(step.requires)} of at least ${figure(step.at_least)}`
  return `${words(step.kind)}: ${step.length} sampled tokens cost ${figure(-step.penalty)}`
}
