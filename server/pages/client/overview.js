// What a person opens first: is it learning, and how far each batch is.
import { get } from './api.js'
import { h, replace } from './dom.js'
import { figure } from './figure.js'
import { figuresOf } from './figures.js'
import { amount, duration, share } from './format.js'
import { badge, empty, legend, shareBar } from './parts.js'

const SECONDS = 2

export function overviewPage(main, { every }) {
  let before = ''
  return every(SECONDS, async () => {
    const [{ batches }, figures] = await Promise.all([get('/v1/batches'), figuresOf()])
    const now = JSON.stringify([batches, figures])
    if (now !== before) draw(main, batches, figures)
    before = now
  })
}

function draw(main, batches, figures) {
  const newest = batches.toReversed()
  replace(
    main,
    h('h1', {}, 'Batches'),
    figures.length > 0 &&
      h('section', { 'aria-labelledby': 'learning' }, [
        h('h2', { id: 'learning' }, 'Is it learning?'),
        h('ul.figures', {}, figures.map(tile)),
        h(
          'p.note',
          {},
          'As the dashboard has them: training groups, each over the span of its panel there, at the last moment in the past hour at which there were any.',
        ),
      ]),
    h('section', { 'aria-labelledby': 'list' }, [
      h('h2', { id: 'list' }, batches.length === 1 ? '1 batch' : `${batches.length} batches`),
      batches.length === 0
        ? empty(
            'No batch yet',
            h(
              'p',
              {},
              'A trainer submits one with POST /v1/batches; it appears here at once. ',
              h('a', { href: '/docs' }, 'How to submit one'),
            ),
          )
        : h('ul.cards', {}, newest.map(card)),
    ]),
  )
}

function tile({ title, text, color, description, id }) {
  return h(
    'li',
    {},
    h(
      `a.tile.${color}`,
      { href: `/dash?mode=train#panel-${id}`, title: description },
      h('span.name', {}, title),
      h('strong', {}, text),
    ),
  )
}

function card(batch) {
  const { id, mode, state, groups, episodes, tokens, seconds } = batch
  const paused = batch.admission === 'open' || state !== 'running' ? null : batch.admission
  const verdicts = Object.entries(groups.verdicts)
  return h(
    'li.card',
    {},
    h('div.cardhead', {}, [
      h('a.title', { href: `/batches/${encodeURIComponent(id)}` }, id),
      h('span.badges', {}, badge(state), paused && badge(paused), h('span.badge.quiet', {}, mode)),
    ]),
    shareBar(
      state === 'running' && groups.in_flight > 0
        ? [...verdicts, ['running', groups.in_flight]]
        : verdicts,
      groups.total,
    ),
    h('p.line', {}, [
      h('span', {}, `${groups.finished} of ${groups.total} groups`),
      [
        ['ready', groups.ready],
        ['leased', groups.leased],
        ['acked', groups.settled.acked ?? 0],
      ].map(([name, count]) => count > 0 && h('span', {}, `${count} ${name}`)),
      h('span', {}, `${episodes.finished} of ${episodes.total} episodes`),
      h('span', {}, `mean reward ${figure(episodes.mean_reward)} over episodes`),
      h('span', {}, `${amount(tokens.completion)} tokens`),
      lost(batch) > 0 && h('span', {}, `${wasted(batch)} of them in groups dropped or replaced`),
      h('span', {}, timing(state, seconds, groups)),
    ]),
    legend(verdicts),
  )
}

/** Share of sampled tokens, of the groups that are over, which no trainer will see. */
export function wasted(batch) {
  const gone = lost(batch)
  return share(gone, gone + batch.groups.costs.delivered.completion_tokens)
}

function lost({ groups: { costs } }) {
  return costs.replaced.completion_tokens + costs.dropped.completion_tokens
}

export function timing(state, seconds, { finished, total }) {
  if (state !== 'running' || finished === 0) return duration(seconds)
  const left = (seconds / finished) * (total - finished)
  return `${duration(seconds)}, about ${duration(left)} to go`
}
