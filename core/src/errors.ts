import { nearest } from '../config/nearest.ts'

/** What every failure of svc carries besides its message: told by `code`, never by class. */
export interface ErrorParts {
  /** Facts for a program: plain data, no secrets. */
  details?: Record<string, unknown>
  /** The plugin it belongs to. */
  plugin?: string
  /** Where: a file and line, a path into a configuration, a hook. */
  where?: string
  /** What the reader does next, in his own terms. */
  mend?: string
  cause?: unknown
}

/** An error with a code. Compare `code`; another copy of this class may have made it. */
export class SvcError extends Error {
  override readonly name = 'SvcError'
  readonly code: string
  readonly details: Record<string, unknown>
  plugin: string | undefined
  readonly where: string | undefined
  readonly mend: string | undefined

  constructor(code: string, message: string, parts: ErrorParts = {}) {
    super(message, parts.cause === undefined ? undefined : { cause: parts.cause })
    this.code = code
    this.details = parts.details ?? {}
    this.plugin = parts.plugin
    this.where = parts.where
    this.mend = parts.mend
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

/** The page a person reads: code and plugin, what and where, the mend; the problems of a report below each other. */
export function formatError(error: unknown): string {
  const problems = (error as { problems?: unknown })?.problems
  if (Array.isArray(problems)) return problems.map(formatError).join('\n\n')
  if (!isSvcShaped(error)) return messageOf(error)
  const head = error.plugin ? `${error.code}  ${error.plugin}` : error.code
  const where = error.where ? `   (${error.where})` : ''
  const body = error.message.split('\n').map(line => `  ${line}`)
  return [head, body.join('\n') + where, ...(error.mend ? [`  ${error.mend}`] : [])].join('\n')
}

/** A start that failed: every problem that could be found, together. */
export class StartFailed extends SvcError {
  readonly problems: readonly SvcError[]

  constructor(problems: readonly SvcError[]) {
    super('START_FAILED', problems.map(p => (p.plugin ? `${p.plugin}: ${p.message}` : p.message)).join('\n'), {
      mend: 'mend what is listed and start again',
      details: { codes: problems.map(p => p.code) },
    })
    this.problems = problems
  }
}

const didYouMean = (name: string, known: Iterable<string>) => {
  const near = nearest(name, known)
  return near ? `did you mean "${near}"?` : undefined
}

export const unknownPlugin = (name: string, from: readonly string[], cause?: unknown) =>
  svcError('PLUGIN_UNKNOWN', `no package "${name}" can be found from ${from.join(', ') || 'here'}`, {
    plugin: name,
    cause,
    mend: `install it (npm install ${name}), mend the name, or take it out of "plugins"`,
  })

export const manifestInvalid = (plugin: string, message: string, where: string, mend: string) =>
  svcError('MANIFEST_INVALID', message, { plugin, where, mend })

export const manifestNewer = (plugin: string, api: number, ours: number, where: string) =>
  svcError('MANIFEST_NEWER', `was written for plugin api ${api}, this host speaks api ${ours}`, {
    plugin,
    where,
    details: { api, host: ours },
    mend: `update svc, or install a version of ${plugin} for api ${ours}`,
  })

export const importFailed = (plugin: string, cause: unknown) =>
  svcError('PLUGIN_IMPORT_FAILED', `could not be imported: ${messageOf(cause)}`, {
    plugin,
    cause,
    mend: 'its module must load and export default definePlugin({ … })',
  })

export const pluginTwice = (plugin: string) =>
  svcError('PLUGIN_TWICE', 'is listed twice', { plugin, mend: 'keep one entry of it in "plugins"' })

export const serviceTaken = (plugin: string, service: string, by: string) =>
  svcError('SERVICE_TAKEN', `provides the service "${service}", which ${by} provides already`, {
    plugin,
    details: { service, by },
    mend: `disable one: plugins: [{ use: "${by}", enabled: false }]`,
  })

export const nameTaken = (plugin: string, slot: string, name: string, by: string) =>
  svcError('NAME_TAKEN', `adds "${name}" to ${slot}, where ${by} has added that name already`, {
    plugin,
    details: { slot, name, by },
    mend: 'rename one of the two, or disable one of the plugins',
  })

export const undeclaredContribution = (plugin: string, slot: string, name: string) =>
  svcError('CONTRIBUTION_UNDECLARED', `adds "${name}" to ${slot}, which its manifest does not declare`, {
    plugin,
    details: { slot, name },
    mend: `add it to its package.json: "svc": { "contributes": { "${slot}": ["${name}"] } }`,
  })

export const missingService = (plugin: string, service: string, provided: Iterable<string>) =>
  svcError('SERVICE_MISSING', `requires the service "${service}", which no loaded plugin provides`, {
    plugin,
    details: { service },
    mend: `add a plugin that provides "${service}" to "plugins"${hint(didYouMean(service, provided))}`,
  })

const hint = (text: string | undefined) => (text ? ` (${text})` : '')

export const contractMismatch = (plugin: string, name: string, cause: string) =>
  svcError('CONTRACT_MISMATCH', `knows "${name}" in another form than this host: ${cause}`, {
    plugin,
    details: { name },
    mend: 'install versions of the two plugins that were built for the same contract',
  })

export const serviceCycle = (path: readonly string[]) =>
  svcError('SERVICE_CYCLE', `plugins require each other in a circle: ${path.join(' → ')}`, {
    plugin: path[0]!,
    details: { path },
    mend: 'make one of these services optional, or let one side tap a hook or read a slot instead',
  })

export const configInvalid = (plugin: string | undefined, message: string, where: string | undefined, mend?: string) =>
  svcError('CONFIG_INVALID', message, {
    ...(plugin ? { plugin } : {}),
    ...(where ? { where } : {}),
    mend: mend ?? 'mend the value, or take the key out to get its default',
  })

export const configUnknownKey = (path: string, known: Iterable<string>, where: string | undefined) =>
  svcError('CONFIG_UNKNOWN_KEY', `${path} is no known key`, {
    ...(where ? { where } : {}),
    details: { path },
    mend: didYouMean(path.split('.').at(-1)!, known) ?? `known here: ${[...known].sort().join(', ') || 'nothing'}`,
  })

export const configUnreadable = (message: string, where: string) =>
  svcError('CONFIG_UNREADABLE', message, { where, mend: 'mend the file; svc starts with none rather than a broken one' })

export const setupFailed = (plugin: string, cause: unknown) =>
  svcError('SETUP_FAILED', `its setup failed: ${messageOf(cause)}`, {
    plugin,
    cause,
    details: { cause: codeOf(cause) ?? null },
    mend: (cause as SvcError)?.mend ?? 'the log has the stack; disable the plugin to start without it',
  })

export const setupTimeout = (plugin: string, ms: number, waited: string) =>
  svcError('SETUP_TIMEOUT', `its setup did not end within ${ms} ms; it was waiting for ${waited}`, {
    plugin,
    details: { ms, waited },
    mend: 'let setup return once its parts are wired, or raise host.setup_timeout_ms',
  })

export const tapFailed = (plugin: string, hook: string, cause: unknown) =>
  svcError(codeOf(cause) ?? 'TAP_FAILED', messageOf(cause), {
    plugin,
    where: hook,
    cause,
    details: { ...(cause as SvcError)?.details, hook },
    mend: (cause as SvcError)?.mend ?? `its tap of ${hook} failed; disable ${plugin} to go on without it`,
  })

export const tapTimeout = (plugin: string, hook: string, ms: number) =>
  svcError('TAP_TIMEOUT', `its tap of ${hook} did not answer within ${ms} ms`, {
    plugin,
    where: hook,
    details: { hook, ms },
    mend: `let the tap end sooner, give it a limit of its own (tap(…, { limitMs })), or raise host.tap_timeout_ms`,
  })

export const closeFailed = (plugin: string, what: string, cause: unknown) =>
  svcError('CLOSE_FAILED', `${what}: ${messageOf(cause)}`, {
    plugin,
    cause,
    mend: 'an undo must not throw and must end within host.close_timeout_ms',
  })

export const hostCloseFailed = (problems: readonly SvcError[]) =>
  Object.assign(
    svcError('CLOSE_FAILED', problems.map(one => one.message).join('\n'), {
      plugin: problems[0]?.plugin ?? 'svc',
      mend: 'mend what is listed; everything else was undone',
    }),
    { problems }
  )

export const scopeClosed = (plugin: string, what: string) =>
  svcError('SCOPE_CLOSED', `${what} after the plugin was closed`, {
    plugin,
    mend: 'stop the work when scope.signal aborts',
  })

export const reservedAsked = (path: string, what: string, where: string | undefined, mend: string) =>
  svcError('CONFIG_UNOWNED', `${path} asks for ${what}, which no loaded plugin does`, {
    ...(where ? { where } : {}),
    details: { path },
    mend,
  })
