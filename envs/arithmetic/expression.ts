// Exact arithmetic over integers and fractions: what the calculator tool computes.

export interface Rational {
  numerator: bigint
  denominator: bigint
}

export type Evaluated = { ok: true; value: Rational } | { ok: false; message: string }

/** Longest expression that is read, characters. */
const MAX_LENGTH = 200

/**
 * The exact value of an expression of whole numbers, `+ - * /` and parentheses. Anything else, and a division by zero,
 * is a sentence that says what was expected.
 */
export function evaluate(expression: string): Evaluated {
  if (expression.length > MAX_LENGTH)
    return {
      ok: false,
      message: `expected at most ${MAX_LENGTH} characters, got ${expression.length}`,
    }
  const tokens = expression.match(/\d+|[-+*/()]|\S/g) ?? []
  let at = 0
  const take = (...wanted: string[]) => {
    const token = tokens[at]
    return token !== undefined && wanted.includes(token) ? tokens[at++] : undefined
  }

  function sum(): Rational {
    let left = product()
    for (let sign = take('+', '-'); sign; sign = take('+', '-')) {
      const right = product()
      left = add(left, sign === '+' ? right : negate(right))
    }
    return left
  }
  function product(): Rational {
    let left = factor()
    for (let sign = take('*', '/'); sign; sign = take('*', '/'))
      left = sign === '*' ? multiply(left, factor()) : multiply(left, invert(factor()))
    return left
  }
  function factor(): Rational {
    if (take('-')) return negate(factor())
    if (take('(')) {
      const inner = sum()
      if (!take(')')) throw new SyntaxError(`expected ")", got ${shown(tokens[at])}`)
      return inner
    }
    const token = tokens[at]
    if (token === undefined || !/^\d+$/.test(token))
      throw new SyntaxError(`expected a whole number or "(", got ${shown(token)}`)
    at++
    return { numerator: BigInt(token), denominator: 1n }
  }

  try {
    const value = sum()
    if (at < tokens.length)
      throw new SyntaxError(`expected + - * / or the end, got ${shown(tokens[at])}`)
    return { ok: true, value }
  } catch (error) {
    if (error instanceof SyntaxError) return { ok: false, message: error.message }
    throw error
  }
}

/** `12`, `-3` or `7/3` in lowest terms. */
export function formatRational({ numerator, denominator }: Rational): string {
  return denominator === 1n ? `${numerator}` : `${numerator}/${denominator}`
}

function shown(token: string | undefined): string {
  return token === undefined ? 'the end' : `"${token}"`
}

function reduced(numerator: bigint, denominator: bigint): Rational {
  let [a, b] = [numerator < 0n ? -numerator : numerator, denominator]
  while (b > 0n) [a, b] = [b, a % b]
  return { numerator: numerator / a, denominator: denominator / a }
}

function add(a: Rational, b: Rational): Rational {
  return reduced(
    a.numerator * b.denominator + b.numerator * a.denominator,
    a.denominator * b.denominator,
  )
}

function multiply(a: Rational, b: Rational): Rational {
  return reduced(a.numerator * b.numerator, a.denominator * b.denominator)
}

function negate({ numerator, denominator }: Rational): Rational {
  return { numerator: -numerator, denominator }
}

function invert({ numerator, denominator }: Rational): Rational {
  if (numerator === 0n) throw new SyntaxError('expected a divisor other than 0')
  return numerator < 0n
    ? { numerator: -denominator, denominator: -numerator }
    : { numerator: denominator, denominator: numerator }
}
