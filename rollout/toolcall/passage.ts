// A run of plain text between structure (reasoning, content): loses "\n" at edges that touch structure, and streams.
import { LINE_FEED, type Source } from './source.ts'

/**
 * Only what will never be taken back is written: line feeds at the end are held until other text follows them, since
 * structure may come next and they would then be its own (toolcall rule 2, the Qwen3 model card's `strip("\n")`).
 */
export class Passage {
  readonly start: number
  readonly #source: Source
  readonly #write: (text: string) => void
  /** First unit that is not written yet. */
  #from: number
  /** First unit that has not been looked at. */
  #seen: number
  /** The position after the last unit that is no line feed. */
  #solid: number
  #atStrippedEdge: boolean

  /** `touches`: whether the passage begins at structure rather than at the start of the message. */
  constructor(source: Source, start: number, touches: boolean, write: (text: string) => void) {
    this.start = start
    this.#source = source
    this.#write = write
    this.#from = start
    this.#seen = start
    this.#solid = start
    this.#atStrippedEdge = touches
  }

  /** Text up to `to` belongs to the passage for certain. */
  grow(to: number): void {
    const { units } = this.#source
    for (; this.#seen < to; this.#seen++) {
      if (units[this.#seen] === LINE_FEED) continue
      if (this.#atStrippedEdge) this.#from = this.#seen
      this.#atStrippedEdge = false
      this.#solid = this.#seen + 1
    }
    this.#writeTo(this.#solid)
  }

  /** The passage ends at `to`; `touches`: at structure rather than at the end of the message. */
  end(to: number, touches: boolean): void {
    this.grow(to)
    if (!touches && !this.#atStrippedEdge) this.#writeTo(to)
  }

  #writeTo(to: number): void {
    if (to <= this.#from) return
    this.#write(this.#source.slice(this.#from, to))
    this.#from = to
  }
}
