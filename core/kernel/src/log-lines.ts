import { type CallContext, defineService } from './token.ts'

/** A line of the log. */
export interface LogLine {
  /** Number of the line in its host, from 1 without gaps. */
  readonly seq: number
  /** JSON without its line end, as it is written: secrets are replaced. */
  readonly text: string
}

/** The last lines of the log of one host. Lines of other workers, and of the supervisor, are not among them. */
export interface LogLines {
  /** The kept lines with a higher number than `after`, oldest first. */
  read(after: number, ctx: CallContext): Promise<readonly LogLine[]>
}
export const LogLines = defineService<LogLines>('log_lines', { api: 1, methods: { read: 'call' } })

const MOST_LINES = 1_000
const MOST_CHARACTERS = 512 * 1024

/** Keeps the last lines in memory. */
export class LogRing {
  #lines: string[] = []
  /** How many lines at the beginning of `#lines` are dropped. */
  #dropped = 0
  #characters = 0
  /** The number of the line before `#lines`. */
  #before = 0

  add(text: string): void {
    this.#lines.push(text)
    this.#characters += text.length
    while (this.#lines.length - this.#dropped > MOST_LINES || (this.#characters > MOST_CHARACTERS && this.#hasMany)) {
      this.#characters -= this.#lines[this.#dropped]!.length
      this.#lines[this.#dropped++] = ''
    }
    if (this.#dropped < MOST_LINES) return
    this.#lines = this.#lines.slice(this.#dropped)
    this.#before += this.#dropped
    this.#dropped = 0
  }

  get #hasMany(): boolean {
    return this.#lines.length - this.#dropped > 1
  }

  after(seq: number): LogLine[] {
    const from = Math.max(this.#dropped, seq - this.#before)
    return this.#lines.slice(from).map((text, at) => ({ seq: this.#before + from + at + 1, text: text.trimEnd() }))
  }
}
