import { nearest, type SvcError, svcError } from '@svc/core'
import type { ConfigProblem, ConfigSource } from '@svc/core/contracts'

export const keyLocal = (keys: readonly string[], reason: string, where: string | undefined): SvcError =>
  svcError('CONFIG_KEY_LOCAL', `${keys.join('.')} cannot be changed over HTTP, because ${reason}`, {
    details: { path: keys.join('.') },
    ...(where === undefined ? {} : { where }),
    hint: 'Edit the configuration file on the machine of the server',
  })

/** A source of higher priority sets the key, so that a value in the file would have no effect. */
export const keyOverridden = (keys: readonly string[], { kind, name }: ConfigSource, where: string | undefined): SvcError => {
  const source = SOURCES[kind]
  return svcError(
    'CONFIG_KEY_OVERRIDDEN',
    `${keys.join('.')} would have no effect in the file of the svc home, because ${source.what(name)} overrides it`,
    {
      details: { path: keys.join('.') },
      ...(where === undefined ? {} : { where }),
      hint: source.hint(name),
    }
  )
}

const FILE_SOURCE = {
  what: (name?: string) => `the configuration file ${name ?? 'of the project'}`,
  hint: (name?: string) => `Change or remove the key in ${name ?? 'that file'} on the machine of the server`,
}
const SOURCES: Readonly<Record<ConfigSource['kind'], typeof FILE_SOURCE>> = {
  default: FILE_SOURCE,
  installed: FILE_SOURCE,
  home: FILE_SOURCE,
  file: FILE_SOURCE,
  environment: {
    what: name => (name === undefined ? 'the environment' : `the variable ${name}`),
    hint: name => `Unset ${name ?? 'the variable'} in the environment of the server, then restart it`,
  },
  flags: {
    what: () => 'a flag of the command',
    hint: () => 'Restart the server without the flag, or with another value',
  },
}

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
