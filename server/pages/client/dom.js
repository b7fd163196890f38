// Elements from plain values. Data becomes text nodes only: nothing that a model wrote is ever read as markup.

/**
 * @param {string} tag of HTML, with classes: `span.badge.ok`
 * @param {Record<string, any>} attributes `on…` are listeners, `style` sets custom properties, false and null are left out
 * @param {...(Node | string | number | null | false | undefined | unknown[])} children
 * @returns {any} an HTMLElement of the tag's own kind
 */
export function h(tag, attributes = {}, ...children) {
  const [name, ...classes] = tag.split('.')
  const element = document.createElement(name)
  element.classList.add(...classes)
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue
    if (key.startsWith('on')) element.addEventListener(key.slice(2), value)
    else if (key === 'style')
      for (const [property, text] of Object.entries(value))
        element.style.setProperty(property, text)
    else element.setAttribute(key, value === true ? '' : String(value))
  }
  append(element, children)
  return element
}

function append(element, children) {
  for (const child of children) {
    if (Array.isArray(child)) append(element, child)
    else if (child instanceof Node) element.append(child)
    else if (child !== null && child !== undefined && child !== false) element.append(String(child))
  }
}

/** Text of strangers: what would move, hide or reorder other text is spelled out, and its direction stays its own. */
export function foreign(tag, text, attributes = {}) {
  return h(tag, { dir: 'auto', ...attributes }, visible(text))
}

/** Control characters as their pictures, characters that steer direction or are unseen as their code points. */
export function visible(text) {
  return text
    .replaceAll(/[\u0000-\u0008\u000b-\u001f]/g, (character) =>
      String.fromCharCode(0x2400 + character.charCodeAt(0)),
    )
    .replaceAll('\u007f', '\u2421')
    .replaceAll(
      /[\u0080-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g,
      (character) =>
        `\u27e8U+${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}\u27e9`,
    )
}

/** Puts `children` in place of what is there, and keeps focus and opened details where they were. */
export function replace(root, ...children) {
  const focused = root.contains(document.activeElement) ? keyOf(document.activeElement) : null
  const toggled = new Map(
    [...root.querySelectorAll('details[data-key]')].map((one) => [one.dataset.key, one.open]),
  )
  root.replaceChildren()
  append(root, children)
  for (const one of root.querySelectorAll('details[data-key]'))
    if (toggled.has(one.dataset.key)) one.open = toggled.get(one.dataset.key)
  if (focused === null) return
  for (const one of root.querySelectorAll('a, button, select, input, summary, [tabindex]'))
    if (keyOf(one) === focused) return one.focus({ preventScroll: true })
}

function keyOf(element) {
  return element.dataset.key ?? element.getAttribute('href') ?? element.id
}
