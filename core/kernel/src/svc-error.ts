/** Properties of every svc error besides its message. Code identifies an error by `code`, never by class. */
export interface ErrorParts {
  /** Facts for programs: plain data, no secrets. */
  details?: Record<string, unknown>
  /** The plugin that the error belongs to. */
  plugin?: string
  /** A file and line, a path in a configuration, or a hook. */
  where?: string
  /** What the reader can do, in the imperative. */
  hint?: string
  cause?: unknown
}

/** An error with a code. Compare `code`, not the class: another copy of this package can have created the error. */
export class SvcError extends Error {
  override readonly name = 'SvcError'
  readonly code: string
  readonly details: Record<string, unknown>
  plugin: string | undefined
  readonly where: string | undefined
  readonly hint: string | undefined

  constructor(code: string, message: string, parts: ErrorParts = {}) {
    super(message, parts.cause === undefined ? undefined : { cause: parts.cause })
    this.code = code
    this.details = parts.details ?? {}
    this.plugin = parts.plugin
    this.where = parts.where
    this.hint = parts.hint
  }
}

/**
 * Creates an error with a code: `throw svcError('PROVIDER_ERROR', 'the upstream responded with 503', { details: { retryable:
 * true } })`.
 */
export function svcError(code: string, message: string, parts?: ErrorParts): SvcError {
  return new SvcError(code, message, parts)
}

/** Returns the code of any thrown value, or `undefined`. */
export function codeOf(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null | undefined)?.code
  return typeof code === 'string' ? code : undefined
}

/** Returns the message of any thrown value. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** Converts any thrown value to an `SvcError`. A foreign error becomes the cause of an error with `code`. */
export function asSvcError(error: unknown, code: string, parts: ErrorParts = {}): SvcError {
  if (isSvcShaped(error)) return error
  return new SvcError(code, messageOf(error), { ...parts, cause: error })
}

/** Whether an error is an svc error, whichever copy of this file created it. */
export function isSvcShaped(error: unknown): error is SvcError {
  return error instanceof Error && error.name === 'SvcError' && codeOf(error) !== undefined
}

/** Formats an error for people: code and plugin, message and place, hint. The problems of a report follow each other. */
export function formatError(error: unknown): string {
  const problems = (error as { problems?: unknown })?.problems
  if (Array.isArray(problems)) return problems.map(formatError).join('\n\n')
  if (!isSvcShaped(error)) return messageOf(error)
  const head = error.plugin ? `${error.code}  ${error.plugin}` : error.code
  const where = error.where ? `   (${error.where})` : ''
  const body = error.message.split('\n').map(line => `  ${line}`)
  return [head, body.join('\n') + where, ...(error.hint ? [`  ${error.hint}`] : [])].join('\n')
}

/** A failed start with every problem that could be found. */
export class StartFailed extends SvcError {
  readonly problems: readonly SvcError[]

  constructor(problems: readonly SvcError[]) {
    super('START_FAILED', problems.map(p => (p.plugin ? `${p.plugin}: ${p.message}` : p.message)).join('\n'), {
      hint: 'Fix the listed problems and start again',
      details: { codes: problems.map(p => p.code) },
    })
    this.problems = problems
  }
}
