import { redactText } from '../config/redaction.ts'
import { didYouMean } from '../config/nearest.ts'
import type { AnyService, AnySlot } from './token.ts'

/** Properties of every svc error besides its message. Code identifies an error by `code`, never by class. */
export interface SvcErrorOptions {
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

  constructor(code: string, message: string, parts: SvcErrorOptions = {}) {
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
export function svcError(code: string, message: string, parts?: SvcErrorOptions): SvcError {
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
export function asSvcError(error: unknown, code: string, parts: SvcErrorOptions = {}): SvcError {
  if (isSvcShaped(error)) return error
  return new SvcError(code, messageOf(error), { ...parts, cause: error })
}

/** Whether an error is an svc error, whichever copy of this file created it. */
export function isSvcShaped(error: unknown): error is SvcError {
  return error instanceof Error && error.name === 'SvcError' && codeOf(error) !== undefined
}

/** Formats an error for people: code and plugin, message and place, hint. The problems of a report follow each other. */
export function formatError(error: unknown): string {
  return redactText(formatted(error))
}

function formatted(error: unknown): string {
  const problems = (error as { problems?: unknown })?.problems
  if (Array.isArray(problems)) return problems.map(formatted).join('\n\n')
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

export const serviceTaken = (plugin: string, service: string, by: string) =>
  svcError('SERVICE_TAKEN', `provides the service "${service}", which ${by} already provides`, {
    plugin,
    details: { service, by },
    hint: `Disable one of the plugins: plugins: [{ use: "${by}", enabled: false }]`,
  })

export const nameTaken = (plugin: string, slot: string, name: string, by: string) =>
  svcError('NAME_TAKEN', `adds "${name}" to ${slot}, but ${by} has already added that name`, {
    plugin,
    details: { slot, name, by },
    hint: 'Rename one of the two items, or disable one of the plugins',
  })

export const undeclaredContribution = (plugin: string, slot: string, name: string, data?: object) =>
  svcError('CONTRIBUTION_UNDECLARED', `adds "${name}" to ${slot}, which its manifest does not declare`, {
    plugin,
    details: { slot, name },
    hint: `Add it to the package.json of the plugin: "svc": { "contributes": { "${slot}": ${data ? JSON.stringify({ [name]: data }) : `["${name}"]`} } }`,
  })

export const contributionDiffers = (plugin: string, slot: string, name: string, said: object, added: object) =>
  svcError(
    'CONTRIBUTION_DIFFERS',
    `adds "${name}" to ${slot} as ${JSON.stringify(added)}, but its manifest declares ${JSON.stringify(said)}`,
    { plugin, details: { slot, name }, hint: 'Make the code and "contributes" in package.json agree' }
  )

export const permissionMissing = (
  plugin: string,
  slot: string,
  name: string,
  wanted: string,
  permission: NonNullable<AnySlot['permission']>
) =>
  svcError(
    'PERMISSION_MISSING',
    'without' in permission
      ? `adds "${name}" to ${slot} without "${permission.without}", but has no permission for it`
      : `adds "${name}" to ${slot} with "${wanted}" in "${permission.listing}", but has no permission for it`,
    {
      plugin,
      details: { slot, name, permission: permission.name },
      hint: `${'without' in permission ? `Give it a "${permission.without}"` : `Remove "${wanted}"`}. Or request the permission in its package.json, "svc": { "permissions": { "${permission.name}": ["${wanted}"] } }, and install the plugin again`,
    }
  )

/** `item` is what the plugin asked for, whatever its type. Absent: it called a method for the whole service. */
export function itemNotPermitted(plugin: string, { name, items }: AnyService, item: unknown): SvcError {
  const shown = typeof item === 'string' ? JSON.stringify(item.slice(0, 64)) : 'an item without a name'
  const what = item === undefined ? `uses the whole service "${name}"` : `uses ${shown} of the service "${name}"`
  const isListed = item !== undefined && items !== undefined && 'permission' in items
  const wanted = isListed ? `"${items.permission}": [${typeof item === 'string' ? shown : '…'}]` : `"services": ["${name}"]`
  return svcError('NOT_PERMITTED', `${what}, but has no permission for it`, {
    plugin,
    details: { service: name },
    hint: `To allow it, write "svc": { "permissions": { ${wanted} } } in the package.json of the plugin, and install the plugin again`,
  })
}

export const topicNotPermitted = (plugin: string, category: string, type: string) =>
  svcError('NOT_PERMITTED', `publishes "${type}" of the category "${category}", an event of svc`, {
    plugin,
    details: { service: 'events' },
    hint: 'Choose a category and a type of your own, such as the name of the plugin',
  })

export const eventTooLarge = (plugin: string, size: number, limit: number) =>
  svcError('EVENT_TOO_LARGE', `publishes an event of ${size} characters of JSON, the limit is ${limit}`, {
    plugin,
    details: { size, limit },
    hint: 'Keep the data in the store, and publish its key',
  })

export const tooManyEvents = (plugin: string, limit: number) =>
  svcError('RATE_LIMITED', `publishes more than ${limit} events in a second`, {
    plugin,
    details: { limit, retry_after: 1 },
    hint: 'Combine changes that happen together into one event',
  })

export const missingService = (plugin: string, service: string, provided: Iterable<string>) =>
  svcError('SERVICE_MISSING', `requires the service "${service}", which no loaded plugin provides`, {
    plugin,
    details: { service },
    hint: `Add a plugin that provides "${service}" to "plugins"${hint(didYouMean(service, provided))}`,
  })

const hint = (text: string | undefined) => (text ? ` (${text})` : '')

export const contractMismatch = (plugin: string, name: string, cause: string) =>
  svcError('CONTRACT_MISMATCH', `uses the contract "${name}" in another version than this host: ${cause}`, {
    plugin,
    details: { name },
    hint: 'Install a version of the plugin that was built for this version of svc',
  })

export const serviceCycle = (path: readonly string[]) =>
  svcError('SERVICE_CYCLE', `plugins require each other in a cycle: ${path.join(' → ')}`, {
    plugin: path[0]!,
    details: { path },
    hint: 'Make one of these services optional, or use a hook or a slot on one side instead',
  })

/** The root of this package, built or not. */
const OURS = new URL('../../', import.meta.url).href

/**
 * Returns where an error was raised: its own `where`, or the first stack line that belongs neither to another package nor to
 * Node.
 */
export function whereOf(plugin: string, cause: unknown): { where?: string } {
  const { where, stack = '' } = (cause ?? {}) as { where?: string; stack?: string }
  if (where) return { where }
  // The stack of an svc error starts where the error was created, mostly in svc itself.
  if (isSvcShaped(cause)) return {}
  const own = `/node_modules/${plugin}/`
  const line = stack
    .split('\n')
    .find(item => /^\s+at .*(file:|\/)/.test(item) && !/node:|node_modules/.test(item.replace(own, '/')) && !item.includes(OURS))
  const place = line && /([^/\\]+:\d+):\d+\)?$/.exec(line)?.[1]
  return place ? { where: place } : {}
}

export const checkFailed = (plugin: string, cause: unknown) =>
  svcError('CHECK_FAILED', `its check of the configuration failed: ${messageOf(cause)}`, {
    plugin,
    cause,
    hint: 'Fix the plugin: its check must return problems and end within host.setup_timeout_ms',
  })

export const setupFailed = (plugin: string, cause: unknown, without = 'remove it from "plugins" to start without it') =>
  svcError('SETUP_FAILED', `its setup failed: ${messageOf(cause)}`, {
    plugin,
    cause,
    details: { cause: codeOf(cause) ?? null },
    ...whereOf(plugin, cause),
    hint: (cause as SvcError)?.hint ?? `Fix the plugin, or ${without}`,
  })

export const setupTimeout = (plugin: string, ms: number, waited: string) =>
  svcError('SETUP_TIMEOUT', `its setup did not end within ${ms} ms; it was waiting for ${waited}`, {
    plugin,
    details: { ms, waited },
    hint: 'Return from setup earlier, or raise host.setup_timeout_ms',
  })

export const tapFailed = (plugin: string, hook: string, cause: unknown) =>
  svcError(codeOf(cause) ?? 'TAP_FAILED', messageOf(cause), {
    // A tap can run code of another plugin. An error that already names a plugin keeps it.
    plugin: (cause as SvcError)?.plugin ?? plugin,
    // The place that the error names is more exact.
    where: (cause as SvcError)?.where ?? hook,
    cause,
    details: { ...(cause as SvcError)?.details, hook },
    hint: (cause as SvcError)?.hint ?? `Disable ${plugin} to continue without its tap of ${hook}`,
  })

export const tapTimeout = (plugin: string, hook: string, ms: number) =>
  svcError('TAP_TIMEOUT', `its tap of ${hook} did not end within ${ms} ms`, {
    plugin,
    where: hook,
    details: { hook, ms },
    hint: 'Make the tap faster, give it its own limit (tap(…, { limitMs })), or raise host.tap_timeout_ms',
  })

export const closeFailed = (plugin: string, what: string, cause: unknown) =>
  svcError('CLOSE_FAILED', `${what}: ${messageOf(cause)}`, {
    plugin,
    cause,
    hint: 'Fix the plugin: an undo function must not throw and must end within host.close_timeout_ms',
  })

export const hostCloseFailed = (problems: readonly SvcError[]) =>
  Object.assign(
    svcError('CLOSE_FAILED', problems.map(problem => problem.message).join('\n'), {
      plugin: problems[0]?.plugin ?? 'svc',
      hint: 'Fix the listed problems; everything else was undone',
    }),
    { problems }
  )

export const scopeClosed = (plugin: string, what: string) =>
  svcError('SCOPE_CLOSED', `${what} after the plugin was closed`, {
    plugin,
    hint: 'Stop the work of the plugin when scope.signal aborts',
  })
