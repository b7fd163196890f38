// The raw text of a turn as it arrives: a growing UTF-16 buffer, and the scans that wait for text which has not come yet.
import type { FinishReason } from './parser.ts'

/**
 * A reader written as a generator: it yields where it needs text that has not come, and goes on when there is more.
 * It only sees units and the end, never where one chunk met the next, so every split gives the same result.
 */
export type Reader<Result> = Generator<undefined, Result, undefined>

export const LINE_FEED = 0x0a
const LESS_THAN = 0x3c
/** A final one of these, with white space after it, is not part of the message. */
const END_MARKERS = ['<|im_end|>', '<|endoftext|>']
/** How often a failed reader may go back over the same text, so that time stays linear in the text. */
const MAX_REREADS = 8

/** How much of a text an error message quotes. */
const QUOTED_UNITS = 12

/** Text from the policy in a message: quoted, and cut where it is long. */
export function quoteText(text: string): string {
  return JSON.stringify(text.length > 40 ? `${text.slice(0, 40)}…` : text)
}

/** White space of the grammar (`ws`): blank, tab, line feed, carriage return. */
export function isSpace(unit: number | undefined): boolean {
  return unit === 0x20 || unit === LINE_FEED || unit === 0x09 || unit === 0x0d
}

/** The text without white space of the grammar at its ends. Loops, because a regular expression would be quadratic. */
export function trimSpace(text: string): string {
  let start = 0
  let end = text.length
  while (start < end && isSpace(text.charCodeAt(start))) start++
  while (end > start && isSpace(text.charCodeAt(end - 1))) end--
  return text.slice(start, end)
}

export class Source {
  /** UTF-16 units; valid up to `length`. */
  units = new Uint16Array(1024)
  /** How many units are known to be part of the message. Grows. */
  length = 0
  ended = false
  finish: FinishReason = 'stop'
  #written = 0
  /** All that came, where it came in one chunk. */
  #whole: string | null = null
  /** Where a possible end marker starts (-1: none), and which markers it can still be. */
  #markerStart = -1
  #markers: string[] = []
  #rereads = 0
  #rereadEnd = 0

  /** A source that holds all of a text at once; end markers in it are text. */
  static of(text: string): Source {
    const source = new Source()
    source.#write(text)
    source.length = text.length
    source.ended = true
    return source
  }

  append(chunk: string): void {
    const from = this.#written
    this.#write(chunk)
    for (let at = from; at < this.#written; at++) {
      const unit = this.units[at]!
      if (this.#markerStart >= 0) this.#followMarker(unit, at)
      if (this.#markerStart < 0 && unit === LESS_THAN) {
        this.#markerStart = at
        this.#markers = END_MARKERS
      }
    }
    this.length = this.#markerStart < 0 ? this.#written : this.#markerStart
  }

  end(finish: FinishReason): void {
    const tail = this.#written - this.#markerStart
    const marked = this.#markerStart >= 0 && this.#markers.some((marker) => tail >= marker.length)
    this.length = marked ? this.#markerStart : this.#written
    this.finish = finish
    this.ended = true
  }

  /**
   * The text of `[start, end)`: a slice of the text itself where that came whole. Else utf16le, which keeps lone
   * surrogates and is the order of bytes on every host that Node runs on but s390x.
   */
  slice(start: number, end: number): string {
    if (this.#whole !== null) return this.#whole.slice(start, end)
    return Buffer.from(this.units.buffer, 2 * start, 2 * (end - start)).toString('utf16le')
  }

  /** What stands at `at`, for messages: a short quotation, or the end of the text. Waits for all that it quotes. */
  *quote(at: number): Reader<string> {
    yield* this.has(at + QUOTED_UNITS)
    return this.quoteNow(at)
  }

  /** The same of what has come. */
  quoteNow(at: number): string {
    if (at >= this.length) return 'the end of the text'
    return JSON.stringify(this.slice(at, Math.min(at + QUOTED_UNITS, this.length)))
  }

  /** Whether there is a unit at `at`; waits for it. */
  *has(at: number): Reader<boolean> {
    while (at >= this.length && !this.ended) yield
    return at < this.length
  }

  /** The first position from `at` that is no white space, or the end of the message. */
  *skipSpace(at: number): Reader<number> {
    for (let next = at; ; ) {
      while (next < this.length && isSpace(this.units[next])) next++
      if (next < this.length || this.ended) return next
      yield
    }
  }

  /** The one of `tags` that stands at `at`, or null. No tag may be the beginning of another. */
  *tagAt<Tag extends string>(at: number, tags: readonly Tag[]): Reader<Tag | null> {
    for (;;) {
      const found = this.#match(at, tags)
      if (found !== 'partial') return found
      yield
    }
  }

  /**
   * The first of `tags` at or after `at` and where it stands, or null if the message ends without one. `grow` hears
   * before each wait up to where there is no tag.
   */
  *nextTag<Tag extends string>(
    at: number,
    tags: readonly Tag[],
    grow?: (to: number) => void,
  ): Reader<{ tag: Tag; at: number } | null> {
    for (let next = at; ; ) {
      while (next < this.length && this.units[next] !== LESS_THAN) next++
      const found = next < this.length ? this.#match(next, tags) : 'partial'
      if (found === null) next++
      else if (found !== 'partial') return { tag: found, at: next }
      else if (this.ended) return null
      else {
        grow?.(next)
        yield
      }
    }
  }

  /** Whether the message has ended at `at`, or within a tag that begins there. */
  endsAt(at: number, tags: readonly string[]): boolean {
    return this.ended && (at >= this.length || tags.some((tag) => this.#isCutShort(at, tag)))
  }

  /** Where the message ends within one of `tags`: the start of that beginning, or -1. */
  partialTagStart(from: number, tags: readonly string[]): number {
    const longest = Math.max(...tags.map((tag) => tag.length))
    for (let at = Math.max(from, this.length - longest); at < this.length; at++)
      if (this.units[at] === LESS_THAN && this.endsAt(at, tags)) return at
    return -1
  }

  /** Whether only blanks stand between `at` and the line feed, or `from`, before it. */
  isLineStart(at: number, from: number): boolean {
    let before = at - 1
    while (before >= from && (this.units[before] === 0x20 || this.units[before] === 0x09)) before--
    return before < from || this.units[before] === LINE_FEED
  }

  /** Whether text from `at` on has been gone over so often that a failed reader may not go back in it again. */
  isWornOut(at: number): boolean {
    return at < this.#rereadEnd && this.#rereads >= MAX_REREADS
  }

  /** Notes that a reader failed after reading `[start, end)` and that this text is read again. */
  noteReread(start: number, end: number): void {
    this.#rereads = start < this.#rereadEnd ? this.#rereads + 1 : 1
    this.#rereadEnd = Math.max(this.#rereadEnd, end)
  }

  #write(text: string): void {
    if (text === '') return
    this.#whole = this.#written === 0 ? text : null
    const size = this.#written + text.length
    if (size > this.units.length) {
      const grown = new Uint16Array(Math.max(size, 2 * this.units.length))
      grown.set(this.units.subarray(0, this.#written))
      this.units = grown
    }
    for (let at = 0; at < text.length; at++) this.units[this.#written + at] = text.charCodeAt(at)
    this.#written = size
  }

  #followMarker(unit: number, at: number): void {
    const offset = at - this.#markerStart
    this.#markers = this.#markers.filter((marker) =>
      offset < marker.length ? marker.charCodeAt(offset) === unit : isSpace(unit),
    )
    if (this.#markers.length === 0) this.#markerStart = -1
  }

  #match<Tag extends string>(at: number, tags: readonly Tag[]): Tag | 'partial' | null {
    if (at >= this.length) return this.ended ? null : 'partial'
    if (this.units[at] !== LESS_THAN) return null
    for (const tag of tags) {
      if (this.#agreement(at, tag) === tag.length) return tag
      if (this.#isCutShort(at, tag)) return this.ended ? null : 'partial'
    }
    return null
  }

  #isCutShort(at: number, tag: string): boolean {
    const agreed = this.#agreement(at, tag)
    return agreed < tag.length && at + agreed >= this.length
  }

  /** How many units of `tag` stand at `at`. */
  #agreement(at: number, tag: string): number {
    let agreed = 0
    while (
      agreed < tag.length &&
      at + agreed < this.length &&
      this.units[at + agreed] === tag.charCodeAt(agreed)
    )
      agreed++
    return agreed
  }
}
