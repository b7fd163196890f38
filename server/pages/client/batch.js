// One batch: what became of its episodes and tokens, and its groups as they settle.
import { get } from './api.js'
import { h, replace } from './dom.js'
import { figure } from './figure.js'
import { amount, duration, share, words } from './format.js'
import { timing, wasted } from './overview.js'
import { badge, empty, facts, legend, shareBar, strip } from './parts.js'

const SECONDS = 1.5
/** Groups on one page. */
const PAGE = 50

export function batchPage(main, { id, every }) {
  let before = ''
  let offset = 0
  const path = `/v1/batches/${encodeURIComponent(id)}`
  return every(SECONDS, show)

  async function show() {
    const [batch, page] = await Promise.all([
      get(path),
      get(`${path}/groups?offset=${offset}&limit=${PAGE}`),
    ])
    const now = JSON.stringify([batch, page])
    if (now !== before) draw(batch, page)
    before = now
    return !batch.done
  }

  function turnTo(place) {
    offset = place
    show()
  }

  function draw(batch, { groups, total }) {
    replace(
      main,
      h('nav.crumbs', { 'aria-label': 'Where this is' }, h('a', { href: '/' }, 'Batches')),
      h('h1', {}, batch.id, ' ', badge(batch.state), ' ', h('span.badge.quiet', {}, batch.mode)),
      batch.pause &&
        h('p.warning', { role: 'status' }, h('strong', {}, 'Paused. '), batch.pause.message),
      summary(batch),
      counted(batch),
      h('section', { 'aria-labelledby': 'groups' }, [
        h('h2', { id: 'groups' }, `${total} ${total === 1 ? 'group' : 'groups'}`),
        groups.length === 0 ? empty('No group here') : h('ul.groups', {}, groups.map(groupRow)),
        total > PAGE && pager(total),
      ]),
    )
  }

  function pager(total) {
    return h(
      'nav.pager',
      { 'aria-label': 'Groups' },
      h(
        'button',
        {
          'data-key': 'earlier',
          disabled: offset === 0,
          onclick: () => turnTo(Math.max(0, offset - PAGE)),
        },
        'Earlier',
      ),
      h('span', {}, `${offset + 1} to ${Math.min(total, offset + PAGE)} of ${total}`),
      h(
        'button',
        {
          'data-key': 'later',
          disabled: offset + PAGE >= total,
          onclick: () => turnTo(offset + PAGE),
        },
        'Later',
      ),
    )
  }
}

function summary(batch) {
  const { groups, episodes, tokens, state, seconds } = batch
  const verdicts = Object.entries(groups.verdicts)
  const { costs } = groups
  return h('section.panels', { 'aria-label': 'Progress' }, [
    h('div.panel', {}, [
      h('h2', {}, `${groups.finished} of ${groups.total} groups`),
      shareBar(
        groups.in_flight > 0 ? [...verdicts, ['running', groups.in_flight]] : verdicts,
        groups.total,
      ),
      legend([...verdicts, ['running', groups.in_flight]]),
      facts([
        ['time', timing(state, seconds, groups)],
        ['ready', groups.ready],
        ['leased', groups.leased],
        ...Object.entries(groups.settled).map(([name, count]) => [name, count || null]),
        ['identical completions', groups.greedy_suspect.length || null],
      ]),
    ]),
    h('div.panel', {}, [
      h('h2', {}, `${episodes.finished} of ${episodes.total} episodes`),
      shareBar(
        [...Object.entries(episodes.outcomes), ['running', episodes.in_flight]],
        episodes.total,
      ),
      legend([...Object.entries(episodes.outcomes), ['running', episodes.in_flight]]),
      facts([
        ['mean reward over episodes', figure(episodes.mean_reward)],
        ['mean reward over groups', figure(groups.mean_group_reward)],
        ...Object.entries(episodes.retried).map(([name, count]) => [
          `tried again: ${words(name)}`,
          count,
        ]),
      ]),
    ]),
    h('div.panel', {}, [
      h('h2', {}, `${amount(tokens.completion)} tokens sampled`),
      shareBar(
        [
          ['valid', costs.delivered.completion_tokens],
          ['zero_variance', costs.replaced.completion_tokens],
          ['dropped', costs.dropped.completion_tokens],
        ],
        tokens.completion,
      ),
      facts([
        ['in groups ready or delivered', amount(costs.delivered.completion_tokens)],
        [
          'in replaced groups',
          costs.replaced.completion_tokens ? amount(costs.replaced.completion_tokens) : null,
        ],
        [
          'in dropped groups',
          costs.dropped.completion_tokens ? amount(costs.dropped.completion_tokens) : null,
        ],
        ['dropped or replaced', wasted(batch)],
        ['in attempts tried again', share(costs.retried.completion_tokens, tokens.completion)],
        ['prompt tokens', amount(tokens.prompt)],
      ]),
    ]),
  ])
}

/** What went wrong in turns, where anything did. */
function counted({ counts }) {
  const named = ['parse_errors', 'parse_flags', 'parse_leniencies', 'drift'].flatMap((kind) =>
    Object.entries(counts[kind]).map(([name, count]) => [`${words(kind)}: ${words(name)}`, count]),
  )
  const all = [
    ...named,
    ['observations with control tokens', counts.control_tokens],
    ['texts that differ from their ids', counts.text_mismatches],
  ].filter(([, count]) => count > 0)
  if (all.length === 0) return null
  return h(
    'details',
    { 'data-key': 'counts' },
    h('summary', {}, 'Turns that were noted'),
    facts(all),
  )
}

function groupRow(group) {
  const { id, task, state, verdict, level, reason, delivered, seconds, cost, members } = group
  const place = id.slice(id.lastIndexOf('.g') + 1)
  const name = h('span.task', {}, h('b', {}, place), ' ', task)
  const lost = state === 'finished' && !delivered
  return h('li.group', {}, [
    h('div.grouphead', {}, [
      state === 'finished' ? h('a', { href: `/groups/${encodeURIComponent(id)}` }, name) : name,
      h(
        'span.badges',
        {},
        badge(verdict ?? state, level ?? ''),
        lost && h('span.badge.bad', {}, 'not delivered'),
      ),
    ]),
    strip(members),
    h('p.line', {}, [
      state === 'finished' && h('span', {}, duration(seconds)),
      h('span', {}, `${amount(cost.completion_tokens)} tokens`),
      reason && h('span.reason', {}, reason),
    ]),
  ])
}
