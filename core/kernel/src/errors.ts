import { didYouMean } from '../config/nearest.ts'
import { codeOf, isSvcShaped, messageOf, svcError, type SvcError } from './svc-error.ts'
import type { AnySlot } from './token.ts'

export * from './svc-error.ts'

export const serviceTaken = (plugin: string, service: string, by: string) =>
  svcError('SERVICE_TAKEN', `provides the service "${service}", which ${by} provides already`, {
    plugin,
    details: { service, by },
    hint: `disable one: plugins: [{ use: "${by}", enabled: false }]`,
  })

export const nameTaken = (plugin: string, slot: string, name: string, by: string) =>
  svcError('NAME_TAKEN', `adds "${name}" to ${slot}, where ${by} has added that name already`, {
    plugin,
    details: { slot, name, by },
    hint: 'rename one of the two, or disable one of the plugins',
  })

export const undeclaredContribution = (plugin: string, slot: string, name: string, data?: object) =>
  svcError('CONTRIBUTION_UNDECLARED', `adds "${name}" to ${slot}, which its manifest does not declare`, {
    plugin,
    details: { slot, name },
    hint: `add it to its package.json: "svc": { "contributes": { "${slot}": ${data ? JSON.stringify({ [name]: data }) : `["${name}"]`} } }`,
  })

/** What it adds is not what its manifest says. */
export const contributionDiffers = (plugin: string, slot: string, name: string, said: object, added: object) =>
  svcError(
    'CONTRIBUTION_DIFFERS',
    `adds "${name}" to ${slot} as ${JSON.stringify(added)}, and its manifest says ${JSON.stringify(said)}`,
    { plugin, details: { slot, name }, hint: 'let its code and "contributes" in its package.json say the same' }
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
      ? `adds "${name}" to ${slot} without "${permission.without}", and has no permission for that`
      : `adds "${name}" to ${slot} with "${wanted}" in "${permission.listing}", and has no permission for that`,
    {
      plugin,
      details: { slot, name, permission: permission.name },
      hint: `${'without' in permission ? `give it a "${permission.without}"` : `leave "${wanted}" out`}; or ask for the permission in its package.json, "svc": { "permissions": { "${permission.name}": ["${wanted}"] } }, and install it again`,
    }
  )

export const missingService = (plugin: string, service: string, provided: Iterable<string>) =>
  svcError('SERVICE_MISSING', `requires the service "${service}", which no loaded plugin provides`, {
    plugin,
    details: { service },
    hint: `add a plugin that provides "${service}" to "plugins"${hint(didYouMean(service, provided))}`,
  })

const hint = (text: string | undefined) => (text ? ` (${text})` : '')

export const contractMismatch = (plugin: string, name: string, cause: string) =>
  svcError('CONTRACT_MISMATCH', `knows "${name}" in another form than this host: ${cause}`, {
    plugin,
    details: { name },
    hint: 'install versions of the two plugins that were built for the same contract',
  })

export const serviceCycle = (path: readonly string[]) =>
  svcError('SERVICE_CYCLE', `plugins require each other in a circle: ${path.join(' → ')}`, {
    plugin: path[0]!,
    details: { path },
    hint: 'make one of these services optional, or let one side tap a hook or read a slot instead',
  })

/** All of this package, built or not. */
const OURS = new URL('../../', import.meta.url).href

/** Where it went wrong, in its own words or as the first line of its stack that is no other package's and no part of Node. */
export function whereOf(plugin: string, cause: unknown): { where?: string } {
  const { where, stack = '' } = (cause ?? {}) as { where?: string; stack?: string }
  if (where) return { where }
  // the stack of such an error begins where it is worded, mostly in svc
  if (isSvcShaped(cause)) return {}
  const own = `/node_modules/${plugin}/`
  const line = stack
    .split('\n')
    .find(one => /^\s+at .*(file:|\/)/.test(one) && !/node:|node_modules/.test(one.replace(own, '/')) && !one.includes(OURS))
  const place = line && /([^/\\]+:\d+):\d+\)?$/.exec(line)?.[1]
  return place ? { where: place } : {}
}

export const checkFailed = (plugin: string, cause: unknown) =>
  svcError('CHECK_FAILED', `its check of the configuration failed: ${messageOf(cause)}`, {
    plugin,
    cause,
    hint: 'fix the plugin: a check answers what is wrong, and ends within host.setup_timeout_ms',
  })

export const setupFailed = (plugin: string, cause: unknown, without = 'take it out of "plugins" to start without it') =>
  svcError('SETUP_FAILED', `its setup failed: ${messageOf(cause)}`, {
    plugin,
    cause,
    details: { cause: codeOf(cause) ?? null },
    ...whereOf(plugin, cause),
    hint: (cause as SvcError)?.hint ?? `fix the plugin, or ${without}`,
  })

export const setupTimeout = (plugin: string, ms: number, waited: string) =>
  svcError('SETUP_TIMEOUT', `its setup did not end within ${ms} ms; it was waiting for ${waited}`, {
    plugin,
    details: { ms, waited },
    hint: 'let setup return once its parts are wired, or raise host.setup_timeout_ms',
  })

export const tapFailed = (plugin: string, hook: string, cause: unknown) =>
  svcError(codeOf(cause) ?? 'TAP_FAILED', messageOf(cause), {
    // a tap may do others' work: whoever knows whose it was has said so
    plugin: (cause as SvcError)?.plugin ?? plugin,
    where: hook,
    cause,
    details: { ...(cause as SvcError)?.details, hook },
    hint: (cause as SvcError)?.hint ?? `its tap of ${hook} failed; disable ${plugin} to go on without it`,
  })

export const tapTimeout = (plugin: string, hook: string, ms: number) =>
  svcError('TAP_TIMEOUT', `its tap of ${hook} did not answer within ${ms} ms`, {
    plugin,
    where: hook,
    details: { hook, ms },
    hint: `let the tap end sooner, give it a limit of its own (tap(…, { limitMs })), or raise host.tap_timeout_ms`,
  })

export const closeFailed = (plugin: string, what: string, cause: unknown) =>
  svcError('CLOSE_FAILED', `${what}: ${messageOf(cause)}`, {
    plugin,
    cause,
    hint: 'an undo must not throw and must end within host.close_timeout_ms',
  })

export const hostCloseFailed = (problems: readonly SvcError[]) =>
  Object.assign(
    svcError('CLOSE_FAILED', problems.map(one => one.message).join('\n'), {
      plugin: problems[0]?.plugin ?? 'svc',
      hint: 'fix what is listed; everything else was undone',
    }),
    { problems }
  )

export const scopeClosed = (plugin: string, what: string) =>
  svcError('SCOPE_CLOSED', `${what} after the plugin was closed`, {
    plugin,
    hint: 'stop the work when scope.signal aborts',
  })
