// One episode: how it went, why it was graded so, and the tokens that a trainer reads.
import { get, Refused } from './api.js'
import { foreign, h, replace } from './dom.js'
import { figure, signed } from './figure.js'
import { pretty, words } from './format.js'
import { grade } from './grade.js'
import { badge, facts, failure, loading } from './parts.js'
import { tokensOf } from './tokens.js'
import { turnOf } from './turn.js'

export async function episodePage(main, { id }) {
  const path = `/v1/episodes/${encodeURIComponent(id)}`
  const episode = await get(path)
  const group = await get(`/v1/groups/${encodeURIComponent(episode.group)}/explain`).catch(unknown)
  const member = group?.members.find((one) => one.id === id)
  const view = h('div', { id: 'view' })
  const views = {
    conversation: () => conversation(episode),
    tokens: async () => tokensOf(await get(`${path}/tokens`), episode),
    grade: () => grade(episode),
    raw: () => foreign('pre.raw', JSON.stringify(episode, null, 2)),
  }
  const names = { conversation: 'Conversation', tokens: 'Tokens', grade: 'Grade', raw: 'Raw JSON' }
  const tabs = h(
    'nav.tabs',
    { 'aria-label': 'Views of the episode' },
    Object.entries(names).map(([name, title]) => h('a', { href: `#${name}` }, title)),
  )

  replace(main, [
    h('nav.crumbs', { 'aria-label': 'Where this is' }, [
      h('a', { href: '/' }, 'Batches'),
      h('a', { href: `/batches/${encodeURIComponent(episode.batch)}` }, episode.batch),
      h('a', { href: `/groups/${encodeURIComponent(episode.group)}` }, episode.group),
    ]),
    h('h1', {}, id, ' ', badge(episode.outcome)),
    h('p.task', {}, episode.task),
    facts([
      ['reward', figure(episode.reward)],
      ...(member ? [['advantage', signed(member.advantage)]] : []),
      ['why', episode.reason],
      ['turns', episode.turns.length],
      ['model', episode.policy.model],
      ['mode', episode.policy.mode],
      ['tool format', episode.policy.tool_format],
      ['temperature', figure(episode.policy.sampling.temperature)],
      ['versions', versions(episode.turns)],
      ['seed', episode.seed],
    ]),
    member && h('p.note', {}, member.because),
    h('div.bar', {}, tabs, group && siblings(group.members, id)),
    view,
  ])
  await show()
  addEventListener('hashchange', show)

  /** `#tokens` is a view; every other fragment is a place within the conversation. */
  async function show() {
    const wanted = location.hash.slice(1)
    const name = Object.hasOwn(views, wanted) ? wanted : 'conversation'
    for (const tab of tabs.children) {
      if (tab.getAttribute('href') === `#${name}`) tab.setAttribute('aria-current', 'true')
      else tab.removeAttribute('aria-current')
    }
    if (view.dataset.shown !== name) {
      view.dataset.shown = name
      replace(view, loading(names[name].toLowerCase()))
      const drawn = await Promise.resolve(views[name]()).catch(failure)
      replace(view, h('h2.unseen', {}, names[name]), drawn)
    }
    if (wanted !== name) document.getElementById(wanted)?.scrollIntoView()
  }
}

/** A group that is not finished, or no longer kept, has no explanation; the episode can be shown all the same. */
function unknown(error) {
  if (error instanceof Refused && error.status === 404) return null
  throw error
}

function siblings(members, id) {
  const place = members.findIndex((one) => one.id === id)
  const link = (member, text) =>
    member
      ? h('a', { href: `/episodes/${encodeURIComponent(member.id)}${location.hash}` }, text)
      : h('span', {}, text)
  return h('nav.siblings', { 'aria-label': 'Episodes of the group' }, [
    link(members[place - 1], '\u2190 previous'),
    link(members[place + 1], 'next \u2192'),
  ])
}

function versions(turns) {
  const known = [...new Set(turns.flatMap(({ version }) => version ?? []))]
  return known.length === 0 ? 'not told' : known.join(', ')
}

function conversation({ messages, turns, drift, dropped_tokens }) {
  const first = messages.findIndex(({ role }) => role === 'assistant')
  const prompt = first < 0 ? messages : messages.slice(0, first)
  const cuts = Object.entries(drift).map(([cause, count]) => `${count} \u00d7 ${words(cause)}`)
  return [
    cuts.length > 0 &&
      h(
        'p.warning',
        {},
        `The token chain was cut: ${cuts.join(', ')}. `,
        h('a', { href: '#tokens' }, 'See where'),
      ),
    dropped_tokens > 0 &&
      h('p.warning', {}, `${dropped_tokens} sampled tokens of aborted answers were dropped.`),
    prompt.map(({ role, content }) =>
      h(
        'details.prompt',
        { open: role === 'user' },
        h('summary', {}, words(role)),
        foreign('pre', pretty(content)),
      ),
    ),
    turns.map((turn) => turnOf(turn)),
  ]
}
