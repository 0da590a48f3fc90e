/** Fields of the log line about an error that a tool threw. */
export interface ToolFailure {
  readonly tool: string
  /** The plugin that added the tool. */
  readonly of?: string
  readonly code: string
  readonly request_id?: string
  /** The error with its stack. */
  readonly err: Error
}

const LONGEST = 1000

interface FailureLog {
  warn(fields: object, message: string): void
}

interface Thrown {
  readonly thrown: unknown
  /** The plugin that added the tool. */
  readonly plugin?: string | undefined
  readonly requestId?: string
}

/** Writes one line about an error that a tool threw, with plugin, tool, code and stack. Never throws. */
export function logToolFailure(log: FailureLog, tool: string, failure: Thrown): void {
  log.warn(
    toolFailure(tool, failure),
    `the tool "${tool}"${failure.plugin === undefined ? '' : ` of ${failure.plugin}`} threw an error`
  )
}

/** Describes an error that a tool threw. A tool can throw any value, even one whose getters throw; this function never throws. */
export function toolFailure(tool: string, { thrown, plugin, requestId }: Thrown): ToolFailure {
  const { name, message, code, stack } = readable(thrown)
  return {
    tool,
    ...(plugin === undefined ? {} : { of: plugin }),
    code: codeFor({ code, name, stack }),
    ...(requestId === undefined ? {} : { request_id: requestId }),
    err: Object.assign(new Error(message), { name, stack: stack ?? `${name}: ${message}` }),
  }
}

/** An error without a code has crossed a process as INTERNAL_ERROR; its stack begins with its class. */
function codeFor({ code, name, stack = '' }: Omit<ReturnType<typeof readable>, 'message'>): string {
  if (code !== undefined && code !== 'INTERNAL_ERROR') return code
  const [, thrown] = /^([A-Z]\w*)(?=:|\n|$)/.exec(stack) ?? []
  return thrown === undefined || thrown === 'SvcError' ? (code ?? name) : thrown
}

function readable(thrown: unknown) {
  const text = (key: string) => {
    const value: unknown = Reflect.get(Object(thrown) as object, key)
    return typeof value === 'string' && value !== '' ? value : undefined
  }
  try {
    const message = typeof thrown === 'string' ? thrown : text('message')
    const code = text('code')
    return {
      name: text('name') ?? 'Error',
      message: (message || 'no message').slice(0, LONGEST),
      code: code?.slice(0, LONGEST),
      stack: text('stack'),
    }
  } catch {
    return { name: 'Error', message: 'an error that cannot be read', code: undefined, stack: undefined }
  }
}
