// Numbers as people read them, the same on the pages, on the command line and in explanations. Plain JavaScript with its types
// in comments, since browsers are given this very file.

/** A double keeps fifteen significant digits; a sum of a few hundred of them these. */
const SOUND_DIGITS = 12

const UNKNOWN = '\u2013'
const MINUS = '\u2212'

/**
 * To so many decimals (fewer than none: tens, hundreds), half away from zero, of the decimal number that is meant: a mean of
 * 0.5775 is 0.578 although one way of summing gives 0.57749999999999999 and another 0.57750000000000012.
 * @param {number} value
 * @param {number} decimals
 * @returns {number}
 */
export function rounded(value, decimals) {
  if (!Number.isFinite(value)) return value
  const [digits, exponent] = Math.abs(value)
    .toExponential(SOUND_DIGITS - 1)
    .split('e')
  const places = Number(exponent) + decimals
  if (places >= SOUND_DIGITS) return value
  const whole = Math.round(Number(`${digits}e${places}`))
  return Math.sign(value) * Number(`${whole}e${-decimals}`)
}

/**
 * Three significant digits and all that stand before the point, with a real minus sign; a dash for what is not known.
 * @param {number | null | undefined} value
 * @param {number} [digits]
 */
export function figure(value, digits = 3) {
  if (value === null || value === undefined) return UNKNOWN
  const exponent = value === 0 ? 0 : Number(value.toExponential().split('e')[1])
  return signless(rounded(value, Math.max(0, digits - 1 - exponent)).toString())
}

/**
 * The same number of decimals in each row of a table.
 * @param {number | null | undefined} value
 * @param {number} [decimals]
 */
export function fixed(value, decimals = 3) {
  if (value === null || value === undefined) return UNKNOWN
  return signless(rounded(value, decimals).toFixed(decimals))
}

/**
 * With a plus where it is above zero.
 * @param {number | null | undefined} value
 * @param {(value: number | null | undefined) => string} [form]
 */
export function signed(value, form = figure) {
  return value !== null && value !== undefined && value > 0 ? `+${form(value)}` : form(value)
}

/** @param {string} text */
function signless(text) {
  // A number that is rounded to nothing has no sign.
  return /^-0(\.0*)?$/.test(text) ? text.slice(1) : text.replace('-', MINUS)
}
