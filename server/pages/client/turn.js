// One turn of a trajectory: what the policy thought, said and called, and what came back.
import { foreign, h } from './dom.js'
import { amount, pretty, words } from './format.js'

/** Lines of an observation that stand open; longer ones are folded. */
const OPEN_LINES = 24

export function turnOf(turn, advantage = undefined) {
  const { reasoning, content, calls, errors, flags, leniencies, observations, user } = turn
  return h('article.turn', { id: `turn-${turn.turn}` }, [
    h('header', {}, [
      h('h3', {}, h('a', { href: `#turn-${turn.turn}` }, `Turn ${turn.turn}`)),
      h('span.facts', {}, about(turn, advantage)),
    ]),
    reasoning &&
      h(
        'details.reasoning',
        { open: true },
        h('summary', {}, 'Reasoning'),
        foreign('p', reasoning),
      ),
    content && foreign('p.said', content),
    calls.map(call),
    errors.map(({ code, message }) =>
      h('p.refused', {}, h('strong', {}, `Refused: ${words(code)}. `), message),
    ),
    [...flags, ...leniencies].length > 0 &&
      h('p.note', {}, `Noted: ${[...flags, ...leniencies].map(words).join(', ')}`),
    turn.text_differs &&
      h(
        'p.refused',
        {},
        "The backend's own text is another than that of the sampled ids, which is shown here.",
      ),
    observations.map(observation),
    user && h('div.user', {}, h('h4', {}, 'User'), foreign('p', user)),
  ])
}

function about({ finish, prompt_tokens, completion_tokens, version, reward }, advantage) {
  return [
    finish === 'length' && 'cut at the length limit',
    `${amount(completion_tokens)} of ${amount(prompt_tokens + completion_tokens)} tokens sampled`,
    version !== null && `version ${version}`,
    reward !== 0 && `turn reward ${reward}`,
    advantage,
  ]
    .filter(Boolean)
    .join(' \u00b7 ')
}

function call({ name, arguments_json }) {
  return h('div.call', {}, [
    h('h4', {}, 'Call ', h('code', {}, name)),
    foreign('pre', pretty(arguments_json)),
  ])
}

function observation({ name, content, is_error, control_token, replaced }) {
  const text = pretty(content)
  const lines = text.split('\n').length
  const body = foreign('pre', text)
  const title = [is_error ? 'Error of ' : 'Answer of ', h('code', {}, name)]
  const notes = [
    control_token && `It spelled out the control token ${control_token}.`,
    replaced && 'Bytes that are no text were replaced.',
  ].filter(Boolean)
  return h(`div.observation${is_error ? '.bad' : ''}`, {}, [
    lines <= OPEN_LINES
      ? [h('h4', {}, title), body]
      : h('details', {}, h('summary', {}, title, ` \u00b7 ${lines} lines`), body),
    notes.map((note) => h('p.note', {}, note)),
  ])
}
