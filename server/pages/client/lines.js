// How the line of each series is drawn: what has a meaning keeps its colour in every panel, and no two of a panel look alike.

/** Verdicts by the colour of style.css with their number; green, amber and grey are those of the other pages. */
/** @type {Record<string, number>} */
const OF_VERDICTS = {
  zero_variance: 1,
  valid: 2,
  verifier_error: 3,
  contract_violation: 4,
  partial: 5,
  timeout: 6,
  parse_error: 7,
  aborted: 8,
  infra: 9,
}

/** Colours for what has no meaning of its own, in turn; then again with the next dash. */
const COLORS = 8
/** Lengths of strokes and gaps; none for a whole line. */
const DASHES = [[], [8, 4], [2, 3]]

/**
 * @param {string} name
 * @param {number} place of the series among those of its panel
 */
export function lineOf(name, place) {
  if (Object.hasOwn(OF_VERDICTS, name))
    return { color: OF_VERDICTS[name], dash: 0, strokes: DASHES[0] }
  const dash = Math.floor(place / COLORS) % DASHES.length
  return { color: place % COLORS, dash, strokes: DASHES[dash] }
}
