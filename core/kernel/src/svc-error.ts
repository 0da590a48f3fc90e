/** What every failure of svc carries besides its message: told by `code`, never by class. */
export interface ErrorParts {
  /** Facts for a program: plain data, no secrets. */
  details?: Record<string, unknown>
  /** The plugin it belongs to. */
  plugin?: string
  /** Where: a file and line, a path into a configuration, a hook. */
  where?: string
  /** What the reader does next, in his own terms. */
  hint?: string
  cause?: unknown
}

/** An error with a code. Compare `code`; another copy of this class may have made it. */
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

/** Makes an error with a code: `throw svcError('PROVIDER_ERROR', 'the upstream answered 503', { details: { retryable: true } })`. */
export function svcError(code: string, message: string, parts?: ErrorParts): SvcError {
  return new SvcError(code, message, parts)
}

/** The code of anything thrown, `undefined` when it has none. */
export function codeOf(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null | undefined)?.code
  return typeof code === 'string' ? code : undefined
}

/** The message of anything thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** Takes whatever was thrown as an `SvcError`; a foreign error becomes the cause of one with `code`. */
export function asSvcError(error: unknown, code: string, parts: ErrorParts = {}): SvcError {
  if (isSvcShaped(error)) return error
  return new SvcError(code, messageOf(error), { ...parts, cause: error })
}

/** Whether an error is one of ours, whichever copy of this file made it. */
export function isSvcShaped(error: unknown): error is SvcError {
  return error instanceof Error && error.name === 'SvcError' && codeOf(error) !== undefined
}

/** The page a person reads: code and plugin, what and where, the hint; the problems of a report below each other. */
export function formatError(error: unknown): string {
  const problems = (error as { problems?: unknown })?.problems
  if (Array.isArray(problems)) return problems.map(formatError).join('\n\n')
  if (!isSvcShaped(error)) return messageOf(error)
  const head = error.plugin ? `${error.code}  ${error.plugin}` : error.code
  const where = error.where ? `   (${error.where})` : ''
  const body = error.message.split('\n').map(line => `  ${line}`)
  return [head, body.join('\n') + where, ...(error.hint ? [`  ${error.hint}`] : [])].join('\n')
}

/** A start that failed: every problem that could be found, together. */
export class StartFailed extends SvcError {
  readonly problems: readonly SvcError[]

  constructor(problems: readonly SvcError[]) {
    super('START_FAILED', problems.map(p => (p.plugin ? `${p.plugin}: ${p.message}` : p.message)).join('\n'), {
      hint: 'fix what is listed and start again',
      details: { codes: problems.map(p => p.code) },
    })
    this.problems = problems
  }
}
