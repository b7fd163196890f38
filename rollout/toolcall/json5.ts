// JSON5 rewritten as strict JSON, token by token; for the leniency `json5` only.

const TOKEN =
  /[\s\ufeff]+|\/\/[^\n\r\u2028\u2029]*|\/\*.*?\*\/|"(?:[^"\\\n\r]|\\.)*"|'(?:[^'\\\n\r]|\\.)*'|[{}[\]:,]|[-+.0-9A-Za-z_$\p{L}\p{N}]+/suy
const DECIMAL = /^[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?$/
const HEXADECIMAL = /^([-+]?)(0[xX][0-9a-fA-F]+)$/

/**
 * The text with comments and trailing commas left out, and strings, keys and numbers spelled as JSON spells them; null
 * if a token has no strict form (`NaN` and `Infinity` have none). Whether the rest is JSON, its reader says.
 */
export function toStrictJson(text: string): string | null {
  const tokens: string[] = []
  for (let at = 0; at < text.length; at = TOKEN.lastIndex) {
    TOKEN.lastIndex = at
    const token = TOKEN.exec(text)?.[0]
    if (token === undefined) return null
    if (/^[\s\ufeff/]/.test(token)) continue
    const isTrailing = (token === '}' || token === ']') && tokens.at(-1) === ','
    if (isTrailing && !/^[[{]$/.test(tokens.at(-2) ?? '[')) tokens.pop()
    tokens.push(token)
  }
  const strict = tokens.map((token, index) => strictToken(token, tokens[index + 1] === ':'))
  return strict.includes(null) ? null : strict.join(' ')
}

function strictToken(token: string, isKey: boolean): string | null {
  if (/^["']/.test(token)) return strictString(token)
  if (/^[{}[\]:,]$/.test(token) || token === 'null' || token === 'true' || token === 'false')
    return isKey && /^[a-z]/.test(token) ? JSON.stringify(token) : token
  if (isKey) return /^[\p{L}$_][\p{L}\p{N}$_]*$/u.test(token) ? JSON.stringify(token) : null
  return strictNumber(token)
}

function strictNumber(token: string): string | null {
  const hexadecimal = HEXADECIMAL.exec(token)
  if (hexadecimal) return `${hexadecimal[1] === '-' ? '-' : ''}${BigInt(hexadecimal[2]!)}`
  if (!DECIMAL.test(token)) return null
  return token
    .replace(/^\+/, '')
    .replace(/^(-?)\./, '$10.')
    .replace(/\.(?![0-9])/, '')
}

const ESCAPES: Record<string, string> = {
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
  0: '\0',
}

function strictString(token: string): string | null {
  let isBad = false
  const text = token
    .slice(1, -1)
    .replace(/\\(?:u(.{0,4})|x(.{0,2})|(\r\n|.))/gs, (_all, long, short, plain) => {
      const code: string | undefined = long ?? short
      if (code === undefined)
        return /[\n\r\u2028\u2029]/.test(plain) ? '' : (ESCAPES[plain] ?? plain)
      isBad ||=
        !/^(?:[0-9a-fA-F]{4}|[0-9a-fA-F]{2})$/.test(code) ||
        code.length !== (long === undefined ? 2 : 4)
      return String.fromCharCode(Number.parseInt(code, 16))
    })
  return isBad ? null : JSON.stringify(text)
}
