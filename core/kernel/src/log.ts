import { createRequire } from 'node:module'
import type { DestinationStream, Logger, LoggerOptions, pino } from 'pino'
import { redactText, isSecret } from '../config/redaction.ts'
import { type CallContext, defineService } from './token.ts'

/** The log of a plugin: fields first, then a sentence. */
export interface Log {
  debug(facts: object, message?: string): void
  info(facts: object, message?: string): void
  warn(facts: object, message?: string): void
  error(facts: object, message?: string): void
}

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent'

/** Destination and level of the log. Without a destination nothing is written. */
export interface LogOptions {
  level?: LogLevel
  destination?: DestinationStream
}

/** Deeper values are replaced by a placeholder. */
const DEEPEST = 6

/**
 * Removes secrets from fields, as the documented `formatters.log` of pino. The option `redact` of pino is not enough: it takes
 * exact paths and passes no key to the censor of a wildcard. So it matches neither names by pattern (`stripeApiKey`), nor any
 * depth, nor passwords in text (`postgres://user:password@host`).
 */
function withoutSecrets<T extends object>(facts: T, depth = 0): T {
  let copy: Record<string, unknown> | undefined
  for (const key of Object.keys(facts)) {
    const value = (facts as Record<string, unknown>)[key]
    const shown = shownOf(key, value, depth)
    if (shown === value) continue
    copy ??= (Array.isArray(facts) ? [...facts] : { ...facts }) as Record<string, unknown>
    copy[key] = shown
  }
  return (copy as T | undefined) ?? facts
}

function shownOf(key: string, value: unknown, depth: number): unknown {
  if (typeof value === 'string') return isSecret(key) ? '[secret]' : withoutPassword(value)
  if (typeof value !== 'object' || value === null) return value
  // The serializer of pino decides what is written of an error.
  if (value instanceof Error && depth === 0 && key === 'err') return value
  if (isSecret(key) && Object.values(value).some(item => typeof item !== 'number')) return '[secret]'
  if (depth === DEEPEST) return '[deep]'
  return withoutSecrets(value instanceof Error ? Object.assign({}, value) : value, depth + 1)
}

const withoutPassword = (text: string) =>
  text.includes('@') && text.includes('://') ? text.replace(/:\/\/[^\s/?#"'<>]*@/g, '://[secret]@') : text

/** Joins the messages of an error and its causes like pino, but skips a cause whose message the outer one already contains. */
function messageWithCauses({ message, cause }: Error, depth = DEEPEST): string {
  const inner = cause instanceof Error && depth > 0 ? messageWithCauses(cause, depth - 1) : ''
  return message.includes(inner) ? message : `${message}: ${inner}`
}

/** Loaded with the first log: most processes and threads that import this package write none. */
const loadPino = () => createRequire(import.meta.url)('pino') as typeof pino

/** Creates the log of a host. Each plugin gets a child logger that carries its name. The ring gets each line that is written. */
export function createLog(options: LogOptions, ring: LogRing): Logger {
  const pino = loadPino()
  const level = options.destination ? (options.level ?? 'info') : 'silent'
  const settings: LoggerOptions = {
    level,
    base: null,
    formatters: { log: facts => withoutSecrets(facts) },
    serializers: {
      err: (error: unknown) =>
        error instanceof Error ? withoutSecrets({ ...pino.stdSerializers.err(error), message: messageWithCauses(error) }) : error,
      msg: (text: unknown) => (typeof text === 'string' ? withoutPassword(text) : text),
    },
    hooks: { streamWrite: redactText },
    timestamp: () => `,"time":"${timestamp()}"`,
  }
  const { destination } = options
  if (!destination) return pino(settings)
  const write = (line: string) => {
    ring.add(line)
    destination.write(line)
  }
  return pino(settings, { write })
}

let at = 0
let text = ''

/**
 * Returns the current time as ISO 8601 with milliseconds. Cached for a millisecond: formatting takes as long as ten other clock
 * reads.
 */
export function timestamp(): string {
  const now = Date.now()
  if (now !== at) [at, text] = [now, new Date(now).toISOString()]
  return text
}

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
