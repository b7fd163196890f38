// The pages: which address shows what, what stands around it, and the token where the server asks for one.
import { forgetToken, get, hasToken, keepToken, Refused } from './api.js'
import { batchPage } from './batch.js'
import { dashPage } from './dash.js'
import { h, replace } from './dom.js'
import { episodePage } from './episode.js'
import { groupPage } from './group.js'
import { overviewPage } from './overview.js'
import { failure, loading } from './parts.js'

/** Each page draws into `main` and, where it is live, calls `every` to be asked again. */
/** @type {[RegExp, string, (main: HTMLElement, page: any) => unknown][]} */
const PAGES = [
  [/^\/$/, 'Batches', overviewPage],
  [/^\/batches\/([^/]+)$/, 'Batch', batchPage],
  [/^\/groups\/([^/]+)$/, 'Group', groupPage],
  [/^\/episodes\/([^/]+)$/, 'Episode', episodePage],
  [/^\/dash$/, 'Dashboard', dashPage],
]

const main = document.querySelector('main')
/** @type {HTMLElement} */
const status = document.querySelector('#status')
/** @type {HTMLElement} */
const forget = document.querySelector('#forget')

start()

async function start() {
  forget.hidden = !hasToken()
  forget.addEventListener('click', () => {
    forgetToken()
    location.reload()
  })
  for (const link of document.querySelectorAll('header nav a'))
    if (link.getAttribute('href') === location.pathname) link.setAttribute('aria-current', 'page')
  const found = PAGES.find(([pattern]) => pattern.test(location.pathname))
  if (!found) return replace(main, failure(new Error(`There is no page ${location.pathname}.`)))
  const [pattern, title, page] = found
  const id = decodeURIComponent(pattern.exec(location.pathname)[1] ?? '')
  document.title = id ? `${id} \u00b7 Paddock` : `${title} \u00b7 Paddock`
  replace(main, loading(title.toLowerCase()))
  await shown(() => page(main, { id, every }))
}

/**
 * Draws what `draw` gives, again every `seconds` while the page is looked at, until it gives false. A server that is gone
 * for a while leaves the last picture standing, and says so.
 */
async function every(seconds, draw) {
  for (;;) {
    let goOn = true
    try {
      goOn = await draw()
      main.dataset.drawn = ''
      tell(goOn === false ? '' : 'live')
    } catch (error) {
      if (!(error instanceof Refused) || error.status !== 0) throw error
      if (main.querySelector('h1') === null) replace(main, failure(error))
      tell('offline', 'The server does not answer; this is what it said last.')
    }
    if (goOn === false) return
    await new Promise((resolve) => setTimeout(resolve, 1000 * seconds))
    await inView()
  }
}

function inView() {
  if (!document.hidden) return
  return new Promise((resolve) =>
    document.addEventListener('visibilitychange', resolve, { once: true }),
  )
}

function tell(state, detail = '') {
  status.className = state
  status.title = detail
  status.textContent = state
}

/** Runs a page; asks for a token where one is missing, and shows every other failure in its place. */
async function shown(run) {
  try {
    await run()
  } catch (error) {
    tell('')
    if (error instanceof Refused && error.status === 401) return askForToken(error)
    replace(main, failure(error))
    if (!(error instanceof Refused)) throw error
  } finally {
    main.dataset.drawn = ''
  }
}

function askForToken({ message }) {
  const input = h('input', { id: 'token', type: 'password', autocomplete: 'off', required: true })
  const problem = h('p.problem', { role: 'alert' }, hasToken() ? message : '')
  const form = h(
    'form.token',
    {},
    h('h1', {}, 'This server asks for a token'),
    h(
      'p',
      {},
      'One of server.tokens; it may be any with the role submit or lease. It is kept until this tab is closed.',
    ),
    h('label', { for: 'token' }, 'Bearer token'),
    input,
    h('button', { type: 'submit' }, 'Show'),
    problem,
  )
  form.addEventListener('submit', async (event) => {
    event.preventDefault()
    keepToken(input.value.trim())
    try {
      await get('/v1/batches')
      location.reload()
    } catch (error) {
      problem.textContent = String(error instanceof Error ? error.message : error)
      if (error instanceof Refused && error.status === 401) forgetToken()
      else location.reload()
    }
  })
  replace(main, form)
  input.focus()
}
