import { svcError, type SvcError } from '@svc/core'
import type { RefusalKind } from '@svc/core/contracts'
import type { ConfiguredServer } from './configured-servers.ts'
import type { PermissionValues } from './permission-values.ts'

export const notIsolable = (plugin: string, slot: string) =>
  svcError('NOT_ISOLABLE', `uses ${slot}, which works only in the process of the host`, {
    plugin,
    details: { slot },
    hint: `If you trust its code, write { use: "${plugin}", isolation: "in-process" } into "plugins", or install it with --isolation in-process --trust`,
  })

export const usesNotPermitted = (plugin: string, names: readonly string[]) =>
  svcError('NOT_PERMITTED', `requires ${names.join(', ')}, but has no permission for it`, {
    plugin,
    details: { services: names },
    hint: `To allow it, write "svc": { "permissions": { "services": ${JSON.stringify(names)} } } in the package.json of the plugin, and install the plugin again${names.some(name => name === 'tools' || name === 'providers') ? '. For single tools or providers, list their names in "tools" or "providers" instead' : ''}${names.includes('store') ? '. For single spaces of the store, list their names in "spaces" instead' : ''}`,
  })

export const hookNotPermitted = (plugin: string, hook: string) =>
  svcError('NOT_PERMITTED', `taps the hook ${hook}, but has no permission for it`, {
    plugin,
    details: { hook },
    hint: `To allow it, write "svc": { "permissions": { "hooks": ["${hook}"] } } in the package.json of the plugin, and install the plugin again`,
  })

export const spaceNotPermitted = (plugin: string, space: string) =>
  svcError('NOT_PERMITTED', `opens the space ${space} of the store, but has no permission for it`, {
    plugin,
    details: { space },
    hint: `To allow it, write "svc": { "permissions": { "spaces": [${JSON.stringify(space)}] } } in the package.json of the plugin, and install the plugin again`,
  })

export const notInSpaces = (plugin: string, kind: string, name: string) =>
  svcError('NOT_PERMITTED', `uses the ${kind} ${name} of the store, which none of its open spaces declares`, {
    plugin,
    details: { [kind]: name },
    hint: `Open the space that declares the ${kind}, and list this space in "spaces" of the permissions`,
  })

export const jobLeaseNotPermitted = (plugin: string) =>
  svcError('NOT_PERMITTED', 'acquires a lease of the store whose name begins with "job/"', {
    plugin,
    hint: 'Choose another name: svc uses these leases for jobs. To write for a job, put the fence of the job into your batches',
  })

export const holdersNotPermitted = (plugin: string) =>
  svcError('NOT_PERMITTED', 'releases the leases of a holder, but has permissions for single spaces only', {
    plugin,
    hint: 'Release each lease with `release`',
  })

export const answerNotPermitted = (plugin: string, topic: string) =>
  svcError('NOT_PERMITTED', `asks other workers for ${topic}, which it does not answer itself`, {
    plugin,
    details: { topic },
    hint: 'Ask for an item that this plugin adds to the slot peer_answers',
  })

export const membershipNotPermitted = (plugin: string) =>
  svcError('NOT_PERMITTED', 'joins or leaves the cluster, which only svc does', {
    plugin,
    hint: 'Use the other methods of node_bus: they work as long as the server is a member',
  })

export const addedTooMuch = (plugin: string, most: string) =>
  svcError('ADDED_TOO_MUCH', `exceeds a limit of isolated plugins: at most ${most}`, {
    plugin,
    details: { most },
    hint: 'Add fewer or smaller contributions, or shorten the name',
  })

export const declaresInvalid = (plugin: string, what: string) =>
  svcError('PLUGIN_INVALID', `its declarations are invalid: ${what}`, {
    plugin,
    details: { what },
    hint: 'Export the result of definePlugin',
  })

/**
 * Describes a denied access and the line to add. It replaces Node's message, which names a flag of the process. `setting`: the
 * setting with this value.
 */
export const undeclared = (kind: RefusalKind, what: string, setting?: string): string =>
  kind === 'process'
    ? `an isolated plugin cannot use ${what}; run it in-process if you trust it`
    : `${what} is not declared: add "svc": { "permissions": { "${kind}": [${JSON.stringify(setting === undefined ? what : `<${setting}>`)}] } } to its package.json`

/** The same for a host of the configuration at another port: a permission for the setting would not cover it. */
export const undeclaredPort = (what: string, { setting, host }: ConfiguredServer): string =>
  `${what} is not declared: the setting ${setting} is ${host}. Connect to the port of the setting, correct the setting, or add "svc": { "permissions": { "network": [${JSON.stringify(what)}] } } to its package.json`

const VERBS: Readonly<Record<keyof PermissionValues, string>> = {
  network: 'connect to',
  env: 'read the variable',
  read: 'read',
  write: 'write to',
}

/** The configuration gives a plugin access to something that a person has not accepted for it. */
export const valueNotAccepted = (plugin: string, kind: keyof PermissionValues, setting: string, value: string): SvcError =>
  svcError('PERMISSION_NOT_ACCEPTED', `could ${VERBS[kind]} ${readable(value)}, which you have not accepted for this plugin`, {
    plugin,
    where: setting,
    details: { kind, setting, value },
    hint: `Check the value, then accept it (svc plugins accept ${plugin}), or restore the former value. To accept all values without a question, for example in a container, set SVC_ACCEPT_VALUES=1`,
  })

const readable = (value: string) => value.replaceAll(/[\p{Cc}\p{Cf}]/gu, '')

export const filesChanging = (plugin: string): SvcError =>
  svcError('PLUGIN_CHANGED', 'its files changed during the load', {
    plugin,
    hint: 'Find the program that writes to the files of the plugin, and stop it. Then run `svc plugins update` to restore the files, and start again',
  })

/** Replaces the message and keeps the code. The stack starts with the message and is what a log shows. */
export function reword(error: Error, message: string): void {
  error.stack = error.stack?.replace(error.message, () => message) ?? message
  error.message = message
}

/** Called once per kind and name of a denied access. */
export type ReportRefusal = (kind: RefusalKind, what: string) => void
