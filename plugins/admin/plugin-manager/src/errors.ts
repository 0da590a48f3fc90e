import { codeOf, messageOf, type SvcError, svcError } from '@svc/core'
import type { PluginChange } from '@svc/core/contracts'
import { plainWords } from './set/errors.ts'

/** No path of this machine and no credential, for answers of the server. */
export const plainText = (error: unknown): string => plainWords(messageOf(error))

export const pluginUnknown = (name: string): SvcError =>
  svcError('INVALID_VALUE', `this server has no plugin ${JSON.stringify(name.slice(0, 214))}`, {
    details: { field: 'name', value: name.slice(0, 214), reason: 'not found' },
    hint: 'List the plugins: svc plugins list --all',
  })

/** The settings of a server, which can contain secrets, are for commands only. */
export const settingsPrivate = (): SvcError =>
  svcError('FORBIDDEN', 'only commands on the machine of the server can ask for its settings', {
    hint: 'Run `svc config show` on that machine',
  })

export const planUnknown = (hash: string): SvcError =>
  svcError('INVALID_VALUE', 'there is no such plan; plans expire after 10 minutes', {
    details: { field: 'hash', value: hash.slice(0, 100), reason: 'not found' },
    hint: 'Make a new plan',
  })

/** The package or the installed plugins are not those of the plan any more. */
export const planChanged = (changed: readonly string[]): SvcError =>
  svcError('CONFLICT', `not as planned: ${changed.join('; ')}. Nothing was changed: make a new plan, and read it`, {
    details: { changed, retryable: false },
    hint: 'Make a new plan, and read it',
  })

/** Why this server cannot change its plugins. */
export const changesImpossible = (reason: string): SvcError =>
  svcError('UNAVAILABLE', `this server cannot change its plugins over HTTP: ${reason}`, {
    details: { retryable: false },
    hint: 'Use the command line: svc plugins install',
  })

export const sourceLocal = (name: string, kind: string): SvcError =>
  svcError(
    'INVALID_VALUE',
    `${name} was installed from a ${kind}, which only the command line can read: svc plugins update ${name}`,
    {
      details: { field: 'name', value: name, reason: `was installed from a ${kind}` },
      hint: `Run: svc plugins update ${name}`,
    }
  )

export const archiveDiffers = (name: string, found: string): SvcError =>
  svcError('INVALID_VALUE', `the archive contains ${found}, not ${name}`, {
    details: { field: 'name', value: name, reason: `the archive contains ${found}` },
    hint: 'Leave out name, or give that of the package in the archive',
  })

/** The archive of a plan is not in the store any more, or was changed there. */
export const archiveGone = (): SvcError =>
  svcError('INVALID_VALUE', 'the archive of the plan does not exist any more; make a new plan', {
    details: { field: 'hash', reason: 'its archive does not exist any more' },
    hint: 'Make a new plan',
  })

export const rolledBack = (problems: readonly SvcError[]): SvcError =>
  svcError(
    'PLUGIN_CHANGE_ROLLED_BACK',
    `svc restored the former plugins, because it cannot start with the change: ${problems.map(lineOf).join('; ')}`,
    {
      details: {
        rolled_back: true,
        problems: problems.map(({ code, plugin, message }) => ({
          code,
          ...(plugin ? { plugin } : {}),
          message: plainWords(message),
        })),
        retryable: false,
      },
      hint: 'Fix the listed problems, and make a new plan',
    }
  )

const lineOf = ({ plugin, message, code }: SvcError) => plainWords(`${plugin ? `${plugin}: ` : ''}${message} (${code})`)

const UNKNOWN: ReadonlySet<string> = new Set(['PLUGIN_NOT_FOUND', 'PLUGIN_NOT_INSTALLED'])
const TRY_LATER: ReadonlySet<string> = new Set([
  'PLUGIN_SET_BEHIND',
  'PLUGIN_SET_BUSY',
  'NPM_FAILED',
  'NPM_MISSING',
  'ISOLATION_UNAVAILABLE',
])
const OWN: ReadonlySet<string> = new Set(['CONFLICT', 'INVALID_VALUE', 'UNAVAILABLE'])

/** The error of a plan as clients get it: the reason stays, with its code in `details.code`. */
export function forClients(error: unknown, { name, archive }: Pick<PluginChange, 'name' | 'archive'>): unknown {
  const code = codeOf(error)
  if (code === undefined || OWN.has(code)) return error
  const { plugin } = error as Partial<SvcError>
  const text = plainText(error)
  const message = plugin === undefined || text.startsWith(plugin) ? text : `${plugin} ${text}`
  if (TRY_LATER.has(code)) return svcError('UNAVAILABLE', message, { cause: error, details: { code } })
  const reason = UNKNOWN.has(code) ? 'not found' : message
  const given = archive === undefined ? { field: 'name', value: name } : { field: 'archive' }
  return svcError('INVALID_VALUE', message, { cause: error, details: { ...given, reason, code } })
}

/** Whether another attempt can succeed. */
export const isLasting = (error: unknown): boolean => !TRY_LATER.has(codeOf(error) ?? '')
