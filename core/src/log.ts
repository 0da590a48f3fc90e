import { type DestinationStream, type Logger, type LoggerOptions, pino } from 'pino'

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

/** The names whose values are never written, wherever they stand. */
const SECRETS = [
  'api_key',
  'apiKey',
  'authorization',
  'cookie',
  'password',
  'secret',
  'client_secret',
  'token',
  'access_token',
  'x-api-key',
]
const PLACES = ['', '*.', '*.*.']

const redact = PLACES.flatMap(place =>
  SECRETS.map(name => (name.includes('-') ? `${place.slice(0, -1)}["${name}"]` : place + name))
)

/** Makes the host's log. Each plugin gets a child that carries its name. */
export function createLog(options: LogOptions): Logger {
  const level = options.destination ? (options.level ?? 'info') : 'silent'
  const settings: LoggerOptions = {
    level,
    base: null,
    redact: { paths: redact, censor: '[secret]' },
    timestamp: () => `,"time":"${new Date().toISOString()}"`,
  }
  return options.destination ? pino(settings, options.destination) : pino(settings)
}
