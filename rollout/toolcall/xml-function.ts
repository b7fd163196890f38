// One <function=…> of the XML-looking form as text: its name, its parameters as written, or where it is malformed.
import {
  CALL_CLOSE,
  FUNCTION_CLOSE,
  FUNCTION_OPEN,
  PARAMETER_CLOSE,
  PARAMETER_OPEN,
} from './block.ts'
import type { Leniencies } from './parser.ts'
import { isSpace, type Reader, type Source } from './source.ts'
import {
  type Malformed,
  malformed,
  OPEN,
  type Open,
  readName,
  readValue,
  STRUCTURE,
} from './xml-value.ts'

interface XmlParameter {
  key: string
  text: string
  /** Whether the text holds tags of the form. */
  hasTags: boolean
}

export interface XmlFunction {
  kind: 'function'
  name: string
  parameters: XmlParameter[]
  /** The position after `</function>`. */
  end: number
  /** Whether the end of a value was supplied (`acceptUnclosedParameter`). */
  repaired: boolean
}

/** Reads the function whose opening tag stands at `start`. */
export function* readFunction(
  source: Source,
  start: number,
  lenient: Leniencies,
): Reader<XmlFunction | Malformed | Open> {
  const name = yield* readName(source, start, FUNCTION_OPEN)
  if (name.kind !== 'name') return name
  const parameters: XmlParameter[] = []
  let repaired = false
  for (let next = name.end; ; ) {
    const at = yield* source.skipSpace(next)
    const tag = yield* source.tagAt(at, STRUCTURE)
    if (tag === FUNCTION_CLOSE) {
      const end = at + FUNCTION_CLOSE.length
      return { kind: 'function', name: name.text, parameters, end, repaired }
    }
    if (source.endsAt(at, STRUCTURE)) return OPEN
    if (tag !== PARAMETER_OPEN) return yield* misplaced(source, at, tag)
    const key = yield* readName(source, at, PARAMETER_OPEN)
    if (key.kind !== 'name') return key
    const value = yield* readValue(
      source,
      key.end,
      key.text,
      lenient.acceptUnclosedParameter === true,
    )
    if (value.kind !== 'value') return value
    parameters.push({ key: key.text, text: value.text, hasTags: value.hasTags })
    repaired ||= value.repaired
    next = value.end
  }
}

/** Whether a tag is written as in XML (`<function name="…">`), which is not this form. */
export function* hasAttributes(source: Source, at: number): Reader<boolean> {
  const tag = yield* source.tagAt(at, ['<function', '<parameter'])
  if (tag === null) return false
  const after = at + tag.length
  return !(yield* source.has(after)) || isSpace(source.units[after]) || source.units[after] === 0x3e
}

/** What stands where only a parameter or the end of the function may. */
function* misplaced(source: Source, at: number, tag: string | null): Reader<Malformed> {
  const expected = `expected ${PARAMETER_OPEN}…> or ${FUNCTION_CLOSE}, came ${tag ?? (yield* source.quote(at))}`
  if (tag !== null && tag !== PARAMETER_CLOSE)
    return malformed(
      'UNCLOSED_FUNCTION',
      `${expected}: close the function before ${CALL_CLOSE}`,
      at,
    )
  if (yield* hasAttributes(source, at))
    return malformed(
      'MALFORMED_TAG',
      `${expected}: write the name after '=', without attributes`,
      at,
    )
  return malformed('UNEXPECTED_TEXT', `${expected}: write nothing between the tags`, at)
}
