// Text as checks compare it: folded, and with the numbers that prose holds.

/** NFKC, lower case, runs of white space as one space. */
export const normalised = (text: string): string =>
  text.normalize('NFKC').toLowerCase().replace(/\s+/g, ' ').trim()

/** Digits with optional groups behind `,` `.` `'` or a (narrow, unbreakable) space. */
const NUMBER = /[-−]?\d+(?:[.,'’ \u00a0\u202f]\d+)*/g
const GROUPED = /^\d{1,3}(?:([,.'’ ])\d{3})(?:\1\d{3})*(?:(?!\1)[.,]\d+)?$/

/**
 * Whether prose holds a number, with or without thousands separators: 1,250.00, 1.250,00 and 1 250 are all 1250. Where
 * a separator can be read both ways (1,250) both readings count.
 */
export function holdsNumber(text: string, wanted: number, tolerance: number): boolean {
  return [...text.matchAll(NUMBER)]
    .flatMap(([token]) => readings(token))
    .some((value) => Math.abs(value - wanted) <= tolerance)
}

/** Every number that a token may stand for. */
function readings(token: string): number[] {
  const sign = /^[-−]/.test(token) ? -1 : 1
  // A dash may be a minus or only stand before the number: both are read.
  const signs = sign === 1 ? [1] : [1, -1]
  const digits = token.replace(/^[-−]/, '').replace(/[\u00a0\u202f]/g, ' ')
  const values = digits.includes(' ')
    ? [...(GROUPED.test(digits) ? [ungrouped(digits)] : []), ...digits.split(' ').flatMap(plain)]
    : plain(digits)
  return values.flatMap((value) => signs.map((one) => one * value))
}

/** Readings of digits without spaces: grouped where they can be, and with the last separator as decimal point. */
function plain(digits: string): number[] {
  const separators = new Set(digits.match(/[.,'’]/g) ?? [])
  if (separators.size === 0) return [Number(digits)]
  const values = GROUPED.test(digits) ? [ungrouped(digits)] : []
  const parts = digits.split(/[.,'’]/)
  if (parts.length === 2 && !/['’]/.test(digits)) values.push(Number(parts.join('.')))
  // What is neither, as a date or a version, stands for the numbers between its separators.
  return values.length > 0 ? values : parts.map(Number)
}

/** The value of digits in groups; what follows a different last separator is the fraction. */
function ungrouped(digits: string): number {
  const group = GROUPED.exec(digits)![1]!
  const fraction = /[.,]\d+$/.exec(digits)?.[0]
  const whole = fraction && fraction[0] !== group ? digits.slice(0, -fraction.length) : digits
  return Number(whole.replaceAll(group, '') + (whole === digits ? '' : `.${fraction!.slice(1)}`))
}
