// What of the dashboard is looked at: time, environments, modes and backends, kept in the address so that a link has them.
import { h } from './dom.js'

const TITLES = { env: 'Environment', mode: 'Mode', backend: 'Backend' }

/** What the address says, of that which there is. */
export function readView(ranges, variables) {
  const said = new URLSearchParams(location.search)
  const minutes = Number(said.get('minutes'))
  const known = ranges.map(([length]) => length)
  const chosen = {}
  for (const { name } of variables)
    chosen[name] = new Set((said.get(name) ?? '').split(',').filter((value) => value !== ''))
  return { minutes: known.includes(minutes) ? minutes : Math.min(60, known.at(-1)), chosen }
}

/** As the routes take it; what stands for all is left out. */
export function queryOf({ minutes, chosen }) {
  const query = new URLSearchParams({ minutes: String(minutes) })
  for (const [name, values] of Object.entries(chosen))
    if (values.size > 0) query.set(name, [...values].join(','))
  return query
}

export function writeView(view) {
  history.replaceState(null, '', `${location.pathname}?${queryOf(view)}${location.hash}`)
}

export function rangePicker(ranges, view, changed) {
  return h('span.picker', {}, [
    h('label', { for: 'range' }, 'Last '),
    h(
      'select',
      {
        id: 'range',
        onchange: (event) => {
          view.minutes = Number(event.target.value)
          changed()
        },
      },
      ranges.map(([value, text]) => h('option', { value, selected: value === view.minutes }, text)),
    ),
  ])
}

/** Boxes to tick; none ticked is all. What the address names stays to be seen although there is none of it now. */
export function picker({ name, values }, view, changed) {
  const chosen = view.chosen[name]
  const title = TITLES[name] ?? name
  const all = [...new Set([...values, ...chosen])]
  const summary = h('summary', {}, said())
  const boxes = all.map((value) =>
    h('label', {}, [
      h('input', {
        type: 'checkbox',
        value,
        checked: chosen.has(value),
        onchange: (event) => tick(value, event.target.checked),
      }),
      ` ${value}`,
    ]),
  )
  const element = h(
    'details.picker',
    {
      onkeydown: (event) => {
        if (event.key !== 'Escape') return
        element.open = false
        summary.focus()
      },
    },
    summary,
    h(
      'div.choices',
      { role: 'group', 'aria-label': title },
      boxes.length === 0 ? h('p.note', {}, 'None yet') : boxes,
    ),
  )
  return element

  function said() {
    const some = [...chosen]
    return `${title}: ${some.length === 0 ? 'all' : some.join(', ')}`
  }

  function tick(value, on) {
    if (on) chosen.add(value)
    else chosen.delete(value)
    summary.textContent = said()
    changed()
  }
}

/** Closes the pickers that focus or pointer have left; a click on a label gives focus to what is around it, which is no leaving. */
export function closeLeftPickers(root) {
  const closeOthers = (kept) => {
    for (const one of root.querySelectorAll('details.picker[open]'))
      if (!kept(one)) one.open = false
  }
  root.ownerDocument.addEventListener('pointerdown', ({ target }) =>
    closeOthers((one) => one.contains(target)),
  )
  root.ownerDocument.addEventListener('focusin', ({ target }) =>
    closeOthers((one) => one.contains(target) || target.contains(one)),
  )
}
