import { svcError, type SvcError } from '@svc/core'
import type { RefusalKind } from '@svc/core/contracts'

export const notIsolable = (plugin: string, slot: string) =>
  svcError('NOT_ISOLABLE', `uses ${slot}, which cannot cross a process`, {
    plugin,
    details: { slot },
    hint: 'run it in the process of the host',
  })

export const usesNotPermitted = (plugin: string, names: readonly string[]) =>
  svcError('NOT_PERMITTED', `asks for ${names.join(', ')}, which it is not permitted to use`, {
    plugin,
    details: { services: names },
    hint: `if it should: "svc": { "permissions": { "services": ${JSON.stringify(names)} } } in its package.json, and install it again`,
  })

export const hookNotPermitted = (plugin: string, hook: string) =>
  svcError('NOT_PERMITTED', `joins the hook ${hook}, which it is not permitted to do`, {
    plugin,
    details: { hook },
    hint: `if it should: "svc": { "permissions": { "hooks": ["${hook}"] } } in its package.json, and install it again`,
  })

export const addedTooMuch = (plugin: string, most: string) =>
  svcError('ADDED_TOO_MUCH', `adds more than ${most}, which is more than a plugin in a process of its own may`, {
    plugin,
    details: { most },
    hint: 'take back what is no longer needed before adding more',
  })

export const declaresInvalid = (plugin: string, what: string) =>
  svcError('PLUGIN_INVALID', `what it declares is not of the form of a plugin: ${what}`, {
    plugin,
    details: { what },
    hint: 'fix the plugin: its module exports what definePlugin makes',
  })

/** What a plugin is told in place of Node's words, which name a flag of the process: what it does not declare, and the line to add. */
export const undeclared = (kind: RefusalKind, what: string): string =>
  kind === 'process'
    ? `a plugin in a process of its own may not use this: ${what}; run it in-process if you trust it`
    : `${what} is not declared: add "svc": { "permissions": { "${kind}": [${JSON.stringify(what)}] } } to its package.json`

export const filesChanging = (plugin: string): SvcError =>
  svcError('PLUGIN_CHANGED', 'its files were changed while they were loaded', {
    plugin,
    hint: 'Find out what writes to them, then start again; `svc plugins update` installs them anew',
  })

/** Its code stays; the stack begins with the message, and is what a log shows. */
export function reword(error: Error, message: string): void {
  error.stack = error.stack?.replace(error.message, () => message) ?? message
  error.message = message
}
