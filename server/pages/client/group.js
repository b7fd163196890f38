// One group: why each advantage is what it is, and its episodes side by side from the turn where they part.
import { get } from './api.js'
import { h, replace } from './dom.js'
import { figure, signed } from './figure.js'
import { words } from './format.js'
import { badge, empty, facts } from './parts.js'
import { turnOf } from './turn.js'

/** Columns that are shown at first; every trajectory may be 150 KB. */
const FIRST_COLUMNS = 4

export async function groupPage(main, { id }) {
  const group = await get(`/v1/groups/${encodeURIComponent(id)}/explain`)
  const chosen = new Set(contrast(group.members).slice(0, FIRST_COLUMNS))
  const read = new Map()
  let by = 'actions'
  const beside = h('section', { 'aria-labelledby': 'beside' })

  replace(main, [
    h('nav.crumbs', { 'aria-label': 'Where this is' }, [
      h('a', { href: '/' }, 'Batches'),
      h('a', { href: `/batches/${encodeURIComponent(group.batch)}` }, group.batch),
    ]),
    h('h1', {}, group.id, ' ', badge(group.verdict, group.level ?? '')),
    h('p.task', {}, group.task),
    facts([
      ['contract', group.contract],
      ['estimator', group.estimator],
      ['scored', `${group.stats.scored} of ${group.stats.n}`],
      ['mean', figure(group.stats.mean)],
      ['population std', figure(group.stats.std)],
      ...divided(group),
      ['different completions', group.stats.distinct],
    ]),
    group.explanation &&
      h(
        'ul.remarks',
        {},
        group.explanation.remarks.map((one) => h('li', {}, one)),
      ),
    table(group),
    beside,
  ])
  await showBeside()

  async function showBeside() {
    await Promise.all(
      [...chosen]
        .filter((one) => !read.has(one))
        .map(async (one) => {
          read.set(
            one,
            await get(`/v1/episodes/${encodeURIComponent(one)}`).catch((error) => error),
          )
        }),
    )
    replace(beside, [
      h('h2', { id: 'beside' }, 'Side by side'),
      h('div.controls', {}, [
        h('fieldset', {}, h('legend', {}, 'Episodes'), group.members.map(choice)),
        h(
          'label',
          {},
          'They part where ',
          h(
            'select',
            {
              'data-key': 'by',
              onchange: (event) => {
                by = event.target.value
                showBeside()
              },
            },
            h('option', { value: 'actions', selected: by === 'actions' }, 'their calls differ'),
            h('option', { value: 'words', selected: by === 'words' }, 'their words differ'),
          ),
        ),
      ]),
      columns(
        group.members.filter((one) => chosen.has(one.id)),
        read,
        by,
      ),
    ])
  }

  function choice({ id: one, reward }) {
    const toggle = (event) => {
      if (event.target.checked) chosen.add(one)
      else chosen.delete(one)
      showBeside()
    }
    return h('label.choice', {}, [
      h('input', {
        type: 'checkbox',
        'data-key': `choose-${one}`,
        checked: chosen.has(one),
        onchange: toggle,
      }),
      `${shortName(one)} (${figure(reward)})`,
    ])
  }
}

/** What the estimator divides by; unknown in what was kept before it was told. */
function divided({ estimator, explanation }) {
  const divisor = explanation?.divisor
  if (!divisor) return []
  const { value, name } = divisor
  return [[`${estimator} divides by`, value === null ? name : `${figure(value)} = ${name}`]]
}

/** The best and the worst first, then what lies between them: there is most to see between those. */
function contrast(members) {
  const sorted = members.toSorted((a, b) => (b.reward ?? -Infinity) - (a.reward ?? -Infinity))
  const order = []
  while (sorted.length > 0) order.push(order.length % 2 === 0 ? sorted.shift() : sorted.pop())
  return order.map(({ id }) => id)
}

const shortName = (id) => id.slice(id.lastIndexOf('.') + 1)

function table({ members, stats }) {
  const components = Object.keys(stats.components)
  return h(
    'div.scroll',
    { tabindex: '0', role: 'region', 'aria-label': 'Members of the group' },
    h('table', {}, [
      h(
        'thead',
        {},
        h(
          'tr',
          {},
          ['episode', 'outcome', 'reward', ...components.map(words), 'advantage', 'because'].map(
            (name) => h('th', { scope: 'col' }, name),
          ),
        ),
      ),
      h(
        'tbody',
        {},
        members.map(({ id, outcome, reason, reward, rewards, advantage, because }) =>
          h('tr', {}, [
            h(
              'th',
              { scope: 'row' },
              h('a', { href: `/episodes/${encodeURIComponent(id)}` }, shortName(id)),
            ),
            h('td', {}, badge(outcome)),
            h('td.number', {}, figure(reward)),
            components.map((name) => h('td.number', {}, figure(rewards?.[name]))),
            h(
              `td.number.${advantage > 0 ? 'up' : advantage < 0 ? 'down' : 'level'}`,
              {},
              signed(advantage),
            ),
            h('td.because', {}, reward === null && reason ? `${because}: ${reason}` : because),
          ]),
        ),
      ),
    ]),
  )
}

function columns(members, read, by) {
  const shown = members.map((member) => ({ member, episode: read.get(member.id) }))
  const known = shown.filter(({ episode }) => !(episode instanceof Error))
  if (shown.length === 0) return empty('Choose episodes to compare')
  if (known.length === 0) return empty('No trajectory is kept of these')
  const parting = partingTurn(
    known.map(({ episode }) => episode),
    by,
  )
  const first = known[0].episode
  return [
    h('p.parting', {}, sentence(parting, known, by)),
    parting > 0 &&
      h(
        'details',
        { 'data-key': 'shared' },
        h(
          'summary',
          {},
          parting === 1
            ? 'Turn 0, which they share'
            : `Turns 0 to ${parting - 1}, which they share`,
        ),
        by === 'actions' &&
          h('p.note', {}, `In the words of ${shortName(first.id)}; the others call the same.`),
        first.turns.slice(0, parting).map((turn) => turnOf(turn)),
      ),
    known.some(({ episode }) => episode.turns.length > parting) &&
      h(
        'div.columns.scroll',
        { tabindex: '0', role: 'region', 'aria-label': 'Episodes side by side' },
        shown.map(({ member, episode }) => column(member, episode, parting)),
      ),
  ]
}

function column({ id, outcome, reward, advantage }, episode, from) {
  return h('article.column', { 'aria-label': id }, [
    h('header', {}, [
      h('a', { href: `/episodes/${encodeURIComponent(id)}` }, shortName(id)),
      badge(outcome),
      h('span', {}, `reward ${figure(reward)}, advantage ${signed(advantage)}`),
    ]),
    episode instanceof Error
      ? empty('Its trajectory is not kept', h('p', {}, episode.message))
      : episode.turns.length <= from
        ? empty('It ended with the shared turns')
        : episode.turns.slice(from).map((turn) => turnOf(turn)),
  ])
}

/** The number of turns that all have in common. */
function partingTurn(episodes, by) {
  const least = Math.min(...episodes.map(({ turns }) => turns.length))
  let turn = 0
  while (turn < least && new Set(episodes.map(({ turns }) => did(turns[turn], by))).size === 1)
    turn++
  return turn
}

/** What a turn did: its calls, or its words where it made none. */
function did({ calls, text }, by) {
  if (by === 'words' || calls.length === 0) return text
  return JSON.stringify(calls.map(({ name, arguments_json }) => [name, arguments_json]))
}

function sentence(parting, known, by) {
  if (known.length === 1) return 'One episode: choose another to compare with.'
  const what = by === 'words' ? 'the same words' : 'the same calls'
  if (known.every(({ episode }) => episode.turns.length === parting))
    return `All of them: ${what} throughout.`
  if (parting === 0) return 'They part at the first turn.'
  return `They have ${what} up to turn ${parting - 1} and part at turn ${parting}.`
}
