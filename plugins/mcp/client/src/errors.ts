import { type SvcError, svcError } from '@svc/core'
import { callFailed } from '@svc/mcp-protocol'
import { nameHint } from '@svc/plugin-kit'

const SHOWN = 100

export const serverUnknown = (name: string, known: readonly string[]) =>
  svcError('MCP_SERVER_UNKNOWN', `there is no MCP server "${name.slice(0, SHOWN)}"`, {
    details: { server: name.slice(0, SHOWN), available: [...known] },
    hint: nameHint(name, known, 'Add one: svc mcp add <name> <url>'),
  })

/** A problem in an entry of `mcp.clients` or mcp.yaml. */
export const clientInvalid = (message: string, where: string, hint: string) =>
  svcError('MCP_CLIENT_INVALID', message, { where, hint })

export const nameTwice = (name: string, where: string, other: string) =>
  svcError('MCP_CLIENT_INVALID', `the MCP server "${name}" is configured twice: ${other} contains it too`, {
    where,
    hint: `Rename or remove one of them. "svc mcp remove ${name}" removes the one in mcp.yaml`,
  })

export const toolUnknown = (server: string, tool: string, known: readonly string[]) =>
  svcError('MCP_TOOL_UNKNOWN', `the MCP server "${server}" has no tool "${tool.slice(0, SHOWN)}"`, {
    details: { server, tool: tool.slice(0, SHOWN), available: [...known] },
    hint: nameHint(tool, known, `Run "svc mcp tools ${server}" to list its tools`),
  })

/** Internal: the asking worker looks for the new owner. */
export const serverMoved = (server: string) =>
  svcError('MCP_MOVED', `another worker owns the MCP server "${server}" now`, {
    details: { server, retryable: true },
    hint: 'Try again: the call then goes to that worker',
  })

export const notInFile = (name: string, file: string, hint: string) =>
  svcError('MCP_SERVER_UNKNOWN', `${file} has no MCP server "${name}"`, { hint })

export const nameTaken = (name: string, where: string) =>
  svcError('MCP_CLIENT_INVALID', `the MCP server "${name}" is already configured in ${where}`, {
    hint: `Choose another name, or run "svc mcp remove ${name}" first`,
  })

/** A key of an entry that a caller over HTTP cannot set. */
export const keyForbidden = (field: string, reason: string) =>
  svcError('FORBIDDEN', `${field} cannot be set over HTTP: ${reason}`, {
    details: { field, reason },
    hint: 'Run "svc mcp add" on the machine of the server, or set mcp.allow_stdio_over_http to true',
  })

export const entryInvalid = (field: string, reason: string, hint?: string) =>
  svcError('INVALID_VALUE', `${field} ${reason}`, { details: { field, reason }, ...(hint === undefined ? {} : { hint }) })

export const notRemovable = (name: string) =>
  svcError('INVALID_VALUE', `the MCP server "${name}" is in the configuration: remove it there`, {
    details: { field: 'server', value: name, reason: 'in the configuration' },
  })

/** A tool has changed again since a person saw it. */
export const versionStale = (server: string, tool: string) =>
  svcError('PRECONDITION_FAILED', `the tool "${tool.slice(0, SHOWN)}" of ${server} has changed again, so nothing was approved`, {
    details: { field: 'tools', server, tool: tool.slice(0, SHOWN) },
    hint: 'Read its changes again, then approve them',
  })

export const loginUnknown = () => svcError('LOGIN_UNKNOWN', 'no login waits for this answer')

const OPTION_HINTS: Readonly<Record<string, string>> = {
  url: 'Set the complete URL, for example https://example.com/mcp',
  retryAttempts: 'Set a whole number, 0 or more',
  backoff: 'Set exponential, linear or constant',
  memory_limit: 'Set a size, for example 512M',
}

export const badOption = (option: string, value: unknown) =>
  svcError('CONFIG_INVALID', `${option} must not be ${JSON.stringify(value)}`, {
    details: { option },
    hint: OPTION_HINTS[option] ?? 'Set a number above 0',
  })

/** The process reads no input: the message has not reached it. */
export const cannotSend = (why: string) => svcError('CHILD_DEAF', why, { hint: 'Read the standard error of the program' })

export const registeredTwice = (name: string) =>
  svcError('NAME_TAKEN', `the server "${name}" is already registered`, {
    details: { name },
    hint: 'Choose another name, or remove the other server',
  })

export const notRegistered = (name: string, known: readonly string[]) =>
  svcError('MCP_SERVER_UNKNOWN', `the server "${name}" is not registered`, {
    details: { server: name, available: [...known] },
    hint: nameHint(name, known, 'Register a server first'),
  })

export const notForRemote = (option: string) =>
  svcError('CONFIG_INVALID', `${option} has no effect on a remote server`, {
    details: { option },
    hint: `Remove ${option}, or run the server on this machine`,
  })

/** A problem of a connection before the server can have received a call. */
export const notConnected = (server: string, why: string): SvcError =>
  callFailed(server, 'connection_refused', why, { delivered: 'no' })
export const serverDisabled = (server: string) => notConnected(server, `it is disabled; run svc mcp enable ${server}`)
export const noOwner = (server: string) => notConnected(server, 'no worker of this service owns its connection')
export const noApp = (server: string, tool: string) =>
  callFailed(server, 'tool_not_found', `its tool "${tool}" has no app`, { delivered: 'no' })
export const noResult = (server: string) => callFailed(server, 'cancelled', 'the call ended without an answer')
