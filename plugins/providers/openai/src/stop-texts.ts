/** A text that an answer is searched for while it arrives (Knuth, Morris and Pratt: one step for each character). */
class Search {
  readonly text: string
  /** For each length of a match, that of the longest match which it ends with. */
  readonly #shorter: readonly number[]
  #matched = 0

  constructor(text: string) {
    this.text = text
    const shorter = [0]
    for (let at = 1, length = 0; at < text.length; at++) {
      while (length > 0 && text[at] !== text[length]) length = shorter[length - 1]!
      shorter.push(text[at] === text[length] ? ++length : 0)
    }
    this.#shorter = shorter
  }

  /** Characters at the end so far that can be the beginning of the text. */
  get matched(): number {
    return this.#matched
  }

  /** Takes the next character. Returns whether the text is complete. */
  step(character: string): boolean {
    while (this.#matched > 0 && this.text[this.#matched] !== character) this.#matched = this.#shorter[this.#matched - 1]!
    if (this.text[this.#matched] === character) this.#matched++
    return this.#matched === this.text.length
  }

  reset(): void {
    this.#matched = 0
  }
}

/** Ends an answer before the first of some texts, for a server that cannot. */
export class StopTexts {
  readonly #searches: readonly Search[]
  /** Text that can be the beginning of a stop text. */
  #held = ''
  /** The stop text at which the answer ends. */
  found: string | undefined

  constructor(texts: readonly string[]) {
    this.#searches = texts.map(text => new Search(text))
  }

  /** Takes a piece of the answer. Returns the text that certainly belongs to it. */
  take(piece: string): string {
    const from = this.#held.length
    const text = this.#held + piece
    for (let at = from; at < text.length; at++) {
      const complete = this.#searches.filter(search => search.step(text[at]!))
      if (complete.length === 0) continue
      // of two that end here, the longer one began first
      const { text: found } = complete.reduce((longest, one) => (one.text.length > longest.text.length ? one : longest))
      this.found = found
      this.#held = ''
      return text.slice(0, at + 1 - found.length)
    }
    const sure = text.length - Math.max(...this.#searches.map(({ matched }) => matched))
    this.#held = text.slice(sure)
    return text.slice(0, sure)
  }

  /** The text that is still held, as the answer goes on with something else. */
  rest(): string {
    const text = this.#held
    this.#held = ''
    for (const search of this.#searches) search.reset()
    return text
  }
}
