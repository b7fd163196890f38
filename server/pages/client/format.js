// Numbers and words as people read them.
import { figure } from './figure.js'

/** @type {[string, number][]} */
const UNITS = [
  ['G', 1e9],
  ['M', 1e6],
  ['k', 1e3],
]

/** 12345 is 12.3k. */
export function amount(value) {
  for (const [unit, size] of UNITS) if (value >= size) return `${figure(value / size)}${unit}`
  return figure(value)
}

export function share(part, whole) {
  return whole > 0 ? `${figure((100 * part) / whole)} %` : '\u2013'
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return '\u2013'
  if (seconds < 60) return `${figure(seconds, seconds < 10 ? 2 : 3)} s`
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`
}

/** Hours and minutes, of the day that the reader lives in. */
export const clock = (seconds) => new Date(1000 * seconds).toTimeString().slice(0, 5)

/** `zero_variance` is "zero variance". */
export const words = (name) => name.replaceAll('_', ' ')

/**
 * JSON in lines, or the text as it came where it is none. Only white space is added: numbers, doubled keys and their order
 * stay as they were written.
 */
export function pretty(text) {
  try {
    const value = JSON.parse(text)
    if (value === null || typeof value !== 'object') return text
  } catch {
    return text
  }
  let depth = 0
  const line = () => `\n${'  '.repeat(depth)}`
  return text.replaceAll(
    /("(?:[^"\\]|\\.)*")|([{[]\s*[}\]])|([{[])|([}\]])|(,)|(:)|\s+/g,
    (_, string, hollow, opening, closing, comma, colon) => {
      if (string !== undefined) return string
      if (hollow) return hollow.replaceAll(/\s/g, '')
      if (opening) {
        depth++
        return opening + line()
      }
      if (closing) {
        depth--
        return line() + closing
      }
      return comma ? comma + line() : colon ? ': ' : ''
    },
  )
}
