import { nearest, type SvcError, svcError } from '@svc/core'
import type { ConfigProblem } from '@svc/core/contracts'

export const keyLocal = (keys: readonly string[], reason: string, where: string | undefined): SvcError =>
  svcError('CONFIG_KEY_LOCAL', `${keys.join('.')} cannot be changed over HTTP, because ${reason}`, {
    details: { path: keys.join('.') },
    ...(where === undefined ? {} : { where }),
    hint: 'Edit the configuration file on the machine of the server',
  })

export const keyReserved = (keys: readonly string[]): SvcError =>
  svcError('CONFIG_UNKNOWN_KEY', `${keys.join('.')} is not a known key`, {
    details: { path: keys.join('.') },
    hint: 'Remove the key',
  })

export const tooManyKeys = (most: number): SvcError =>
  svcError('CONFIG_TOO_LARGE', `a configuration has at most ${most} values`, { hint: 'Remove values' })

export const draftInvalid = (problems: readonly ConfigProblem[]): SvcError =>
  svcError(
    'CONFIG_DRAFT_INVALID',
    `the configuration would have ${problems.length === 1 ? 'a problem' : 'problems'}: ${problems[0]?.message}`,
    {
      details: { problems },
      hint: problems[0]?.hint ?? 'Fix the values',
    }
  )

export const configLocked = (reason: string): SvcError =>
  svcError('CONFIG_LOCKED', `the configuration cannot be changed over HTTP: ${reason}`, {
    details: { reason },
    hint: 'Edit the configuration on the machine of the server',
  })

/** The same error as at a start. */
export function toolUnknownInSet(plugin: string, name: string, where: string, known: readonly string[]): SvcError {
  const near = nearest(name, known)
  return svcError(
    'MCP_TOOL_UNKNOWN',
    `the tool server publishes "${name}", but no plugin declares this tool${near === undefined ? '' : `: did you mean "${near}"?`}`,
    { plugin, where, details: { tools: [name] }, hint: 'Correct or remove the name; `svc tools list --local` lists all tools' }
  )
}
