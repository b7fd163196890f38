// The parsed turn as it is put together: fields only ever grow by what is also sent as a delta, so the two agree.
import type { Leniency, ParseErrorCode, ParseFlag } from '../../protocol/parse-codes.ts'
import type { JsonNode } from './json-automaton.ts'
import type { Delta, ParsedCall, ParsedTurn, ParseError } from './parser.ts'

/** A call before it has a place in the text. */
export interface ReadCall {
  name: string
  arguments: JsonNode
  flags: ParseFlag[]
  leniencies: Leniency[]
}

export interface Refusal {
  code: ParseErrorCode
  message: string
}

export class Draft {
  /** Whether a block, taken or refused, has been read. */
  hasBlock = false
  /** Whether the content ends inside a code fence. */
  insideFence = false
  readonly flags = new Set<ParseFlag>()
  readonly leniencies = new Set<Leniency>()
  #reasoning: string[] | null = null
  readonly #content: string[] = []
  readonly #calls: ParsedCall[] = []
  readonly #errors: ParseError[] = []
  #deltas: Delta[] = []

  /** The turn has reasoning, be it empty. */
  openReasoning(): void {
    this.#reasoning ??= []
  }

  writeReasoning(text: string): void {
    this.#reasoning?.push(text)
    this.#deltas.push({ kind: 'reasoning', text })
  }

  /** A writer of one run of content; runs are joined by one line feed. */
  contentRun(): (text: string) => void {
    let joined = this.#content.length === 0
    return (text) => {
      const piece = joined ? text : `\n${text}`
      joined = true
      this.#content.push(piece)
      this.#deltas.push({ kind: 'content', text: piece })
      if (this.hasBlock && /\S/.test(text)) this.flags.add('TEXT_AFTER_CALL')
    }
  }

  take(call: ReadCall, start: number, end: number): void {
    const { name, arguments: node } = call
    const index = this.#calls.length
    for (const flag of call.flags) this.flags.add(flag)
    for (const leniency of call.leniencies) this.leniencies.add(leniency)
    if (this.insideFence) this.flags.add('FENCED_CALL')
    this.hasBlock = true
    this.#calls.push({
      name,
      arguments: node.value as ParsedCall['arguments'],
      arguments_json: node.json,
      start,
      end,
    })
    this.#deltas.push({ kind: 'call', index, name }, { kind: 'arguments', index, text: node.json })
  }

  /** A block that contributes no call. */
  refuse({ code, message }: Refusal, start: number, end: number): void {
    this.hasBlock = true
    this.report({ code, message }, start, end)
  }

  /** An error that takes nothing out of content. */
  report({ code, message }: Refusal, start: number, end: number): void {
    this.#errors.push({ code, start, end, message })
  }

  takeDeltas(): Delta[] {
    const deltas = this.#deltas
    this.#deltas = []
    return deltas
  }

  get content(): string | null {
    return this.#content.length === 0 ? null : this.#content.join('')
  }

  finish(): ParsedTurn {
    return {
      reasoning: this.#reasoning?.join('') ?? null,
      content: this.content,
      calls: this.#calls,
      errors: this.#errors.sort((a, b) => a.start - b.start),
      flags: [...this.flags].sort(),
      leniencies: [...this.leniencies].sort(),
      tail: this.takeDeltas(),
    }
  }
}
