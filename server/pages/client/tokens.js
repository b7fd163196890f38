// The tape as it is trained on: what was sampled, how surely, by which version, and where a chain was cut.
import { foreign, h, visible } from './dom.js'
import { figure } from './figure.js'
import { words } from './format.js'
import { empty } from './parts.js'

/** Least log-probability of each colour, from sure to surprising; the last has everything below. */
const LEVELS = [-0.01, -0.1, -0.5, -1, -2, -4]

/** Sampled tokens that are drawn one by one; of longer episodes the first. */
const MOST = 20_000

export function tokensOf({ samples }, { drift }) {
  if (samples.length === 0)
    return empty(
      'No token ids',
      h(
        'p',
        {},
        'The backend of this episode names no model_dir, so that text was taken as it came.',
      ),
    )
  const causes = Object.entries(drift).map(([cause, count]) => `${words(cause)} (${count})`)
  const told = h(
    'p.token-facts',
    { role: 'status' },
    'Point at a token, or walk through them with the arrow keys.',
  )
  let left = MOST
  return [
    scale(),
    told,
    samples.map((sample, index) => {
      const drawn = chain(sample, left, told)
      left -= drawn.count
      return h('section', {}, [
        index > 0 &&
          h(
            'p.cut',
            {},
            `Cut: the next prompt did not extend this chain${causes.length > 0 ? `: ${causes.join(', ')}` : ''}`,
          ),
        h('h3', {}, samples.length === 1 ? 'One chain' : `Chain ${index + 1} of ${samples.length}`),
        h('p.note', {}, sentence(sample)),
        drawn.element,
        drawn.cut &&
          h(
            'p.note',
            {},
            `Only the first ${MOST} sampled tokens are drawn; the raw route has all of them.`,
          ),
      ])
    }),
  ]
}

function scale() {
  return h('ul.scale', { 'aria-label': 'Colours' }, [
    h('li', {}, h('span.masked', {}, 'not sampled'), ' not trained on'),
    LEVELS.map((least, level) => h('li', {}, h(`span.lp${level}`, {}, `\u2265 ${figure(least)}`))),
    h('li', {}, h(`span.lp${LEVELS.length}`, {}, `< ${figure(LEVELS.at(-1))}`)),
    h('li.note', {}, 'log-probability at sampling'),
  ])
}

function sentence({ ids, mask, logprobs, prompt_length, versions }) {
  const sampled = mask.reduce((sum, one) => sum + one, 0)
  const total = logprobs.reduce((sum, one, at) => sum + (mask[at] ? one : 0), 0)
  const known = [...new Set(versions.map(({ version }) => version ?? 'unknown'))].join(', ')
  return `${ids.length} tokens, ${prompt_length} of them before the first that was sampled; ${sampled} sampled, mean log-probability ${figure(sampled ? total / sampled : null)}; version ${known || 'unknown'}`
}

/** One element for each sampled token, one for each run of others, and a mark wherever the version changes. */
function chain(sample, most, told) {
  const { ids, mask, logprobs, versions, texts } = sample
  const textAt = (at) => texts?.[at] ?? ` ${ids[at]}`
  const parts = []
  let count = 0
  let at = 0
  let version = ''
  while (at < ids.length && count < most) {
    const start = at
    if (mask[at] === 1) {
      const span = versions.find(({ start: from }) => from === at)
      if (span && versionName(span) !== version) {
        version = versionName(span)
        parts.push(h('span.version', {}, version))
      }
      parts.push(h(`span.lp${levelOf(logprobs[at])}`, { 'data-at': at }, shown(textAt(at))))
      count++
      at++
      continue
    }
    while (at < ids.length && mask[at] !== 1) at++
    parts.push(
      masked(
        ids
          .slice(start, at)
          .map((_, offset) => textAt(start + offset))
          .join(''),
      ),
    )
  }
  const element = h('div.tape', { tabindex: '0', role: 'group', 'aria-label': 'Tokens' }, parts)
  walk(element, (index) => {
    const { version = null } =
      versions.find(({ start, end }) => start <= index && index < end) ?? {}
    told.textContent = `id ${ids[index]} \u00b7 ${JSON.stringify(visible(textAt(index)))} \u00b7 log-probability ${figure(logprobs[index], 4)} \u00b7 version ${version ?? 'unknown'} \u00b7 place ${index}`
  })
  return { element, count, cut: at < ids.length }
}

/** A long prompt is folded: it is in every chain, and nobody trains on it. */
function masked(text) {
  const piece = foreign('span.masked', text, { dir: null })
  if (text.length < 600) return piece
  return h(
    'details.masked',
    {},
    h('summary', {}, `${text.length} characters that were not sampled`),
    piece,
  )
}

const versionName = ({ version, approximate }) =>
  `version ${version ?? 'unknown'}${approximate ? ' (about)' : ''}`

/** Ends of lines are shown and kept; a token without text of its own belongs to the character before it. */
const shown = (text) => visible(text).replaceAll('\n', '\u21b5\n') || '\u2219'

function levelOf(logprob) {
  const level = LEVELS.findIndex((least) => logprob >= least)
  return level < 0 ? LEVELS.length : level
}

/** Pointer and arrow keys choose a token of the tape. */
function walk(element, tell) {
  let chosen = null
  const choose = (token) => {
    if (!token) return
    chosen?.classList.remove('chosen')
    chosen = token
    token.classList.add('chosen')
    tell(Number(token.dataset.at))
  }
  element.addEventListener('pointerover', (event) => choose(event.target.closest('[data-at]')))
  element.addEventListener('keydown', (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key]
    if (step === undefined) return
    event.preventDefault()
    const tokens = [...element.querySelectorAll('[data-at]')]
    const place = chosen === null ? (step > 0 ? -1 : tokens.length) : tokens.indexOf(chosen)
    choose(tokens[Math.min(tokens.length - 1, Math.max(0, place + step))])
    chosen?.scrollIntoView({ block: 'nearest' })
  })
}
