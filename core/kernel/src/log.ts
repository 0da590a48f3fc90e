import { createRequire } from 'node:module'
import type { DestinationStream, Logger, LoggerOptions, pino } from 'pino'
import { isSecret } from '../config/secrets.ts'

/** What a plugin writes its log with: facts first, then a sentence. */
export interface Log {
  debug(facts: object, message?: string): void
  info(facts: object, message?: string): void
  warn(facts: object, message?: string): void
  error(facts: object, message?: string): void
}

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent'

/** Where log lines go and from which level on. Without a destination nothing is written. */
export interface LogOptions {
  level?: LogLevel
  destination?: DestinationStream
}

/** What stands deeper is not written at all. */
const DEEPEST = 6

/**
 * Facts without secrets, as pino's documented `formatters.log`. Its option `redact` cannot do this: it takes exact paths, and hands the censor of a wildcard no key,
 * so it knows neither names by pattern (`stripeApiKey`), nor any depth, nor passwords in texts (`postgres://user:password@host`).
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
  // its serializer says what of it is written
  if (value instanceof Error && depth === 0 && key === 'err') return value
  if (isSecret(key) && Object.values(value).some(one => typeof one !== 'number')) return '[secret]'
  if (depth === DEEPEST) return '[deep]'
  return withoutSecrets(value instanceof Error ? Object.assign({}, value) : value, depth + 1)
}

const withoutPassword = (text: string) =>
  text.includes('@') && text.includes('://') ? text.replace(/:\/\/[^\s/?#"'<>]*@/g, '://[secret]@') : text

/** As pino's, but says nothing twice: whoever passes a failure on often has its words already. */
function messageWithCauses({ message, cause }: Error, depth = DEEPEST): string {
  const inner = cause instanceof Error && depth > 0 ? messageWithCauses(cause, depth - 1) : ''
  return message.includes(inner) ? message : `${message}: ${inner}`
}

/** Loaded with the first log: most processes and threads that import this package write none. */
const loadPino = () => createRequire(import.meta.url)('pino') as typeof pino

/** Makes the host's log. Each plugin gets a child that carries its name. */
export function createLog(options: LogOptions): Logger {
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
    timestamp: () => `,"time":"${timestamp()}"`,
  }
  return options.destination ? pino(settings, options.destination) : pino(settings)
}

let at = 0
let text = ''

/** The time now as ISO 8601 with milliseconds. One text serves all of a millisecond: to write it takes as long as ten other readings of a clock. */
export function timestamp(): string {
  const now = Date.now()
  if (now !== at) [at, text] = [now, new Date(now).toISOString()]
  return text
}
