import { nearest, svcError } from '@svc/core'

export const serverUnknown = (name: string, known: readonly string[]) =>
  svcError('MCP_SERVER_UNKNOWN', `there is no tool server "${name.slice(0, 100)}"`, {
    details: { server: name.slice(0, 100), available: [...known] },
    hint: knownHint(name, known),
  })

function knownHint(name: string, known: readonly string[]): string {
  const near = nearest(name, [...known])
  if (near !== undefined) return `did you mean "${near}"?`
  return known.length === 0 ? 'add one: svc mcp add <name> <url>' : `there are: ${known.join(', ')}`
}

/** One fault of an entry of `mcp.clients` or mcp.yaml. */
export const clientInvalid = (message: string, where: string, hint: string) =>
  svcError('MCP_CLIENT_INVALID', message, { where, hint })

export const nameTwice = (name: string, where: string, other: string) =>
  svcError('MCP_CLIENT_INVALID', `the tool server "${name}" is there twice: ${other} has it as well`, {
    where,
    hint: `rename one of the two, or take one out (svc mcp remove ${name} takes out the one of mcp.yaml)`,
  })

export const toolUnknown = (server: string, tool: string, known: readonly string[]) =>
  svcError('MCP_TOOL_UNKNOWN', `the tool server "${server}" has no tool "${tool.slice(0, 100)}"`, {
    details: { server, tool: tool.slice(0, 100), available: [...known] },
    hint: known.length === 0 ? `see what it has: svc mcp tools ${server}` : `it has: ${known.join(', ')}`,
  })

/** The worker that was asked does not own the server any more: whoever asked looks again who does. */
export const moved = (server: string) =>
  svcError('MCP_MOVED', `the tool server "${server}" is owned by another worker now`, { details: { server, retryable: true } })

export const storeForgets = (kind: string) =>
  svcError('STORE_FORGETS', `the store "${kind}" keeps nothing for another process, so no server would know of this`, {
    hint: 'configure a store that lasts: @svc/plugin-store-sqlite',
  })

export const notInFile = (name: string, file: string, hint: string) =>
  svcError('MCP_SERVER_UNKNOWN', `${file} has no tool server "${name}"`, { hint })

export const fileBusy = (file: string, cause: unknown) =>
  svcError('MCP_FILE_BUSY', `${file} cannot be changed: another command holds it`, {
    cause,
    hint: 'Wait until the other command has ended, then run this one again',
  })

export const nameTaken = (name: string, where: string) =>
  svcError('MCP_CLIENT_INVALID', `there is a tool server "${name}" already, in ${where}`, {
    hint: `take another name, or take that one out first: svc mcp remove ${name}`,
  })

export const importInvalid = (message: string) =>
  svcError('MCP_IMPORT_INVALID', message, {
    hint: 'give a file with {"mcpServers": {"<name>": {"command": …, "args": […]} or {"url": …}}}, or - for the standard input',
  })

const HINTS: Readonly<Record<string, string>> = {
  url: 'write it whole: https://example.com/mcp',
  maxAttempts: 'give a whole number, 0 or more',
  backoff: 'take exponential, linear or constant',
}

export const badOption = (what: string, value: unknown) =>
  svcError('CONFIG_INVALID', `${what} must not be ${JSON.stringify(value)}`, {
    details: { option: what },
    hint: HINTS[what] ?? 'give a number above 0',
  })

/** A process to which nothing can be said: nothing has reached it. */
export const deaf = (why: string) => svcError('CHILD_DEAF', why, { hint: 'see what it writes to its standard error' })

export const registeredTwice = (name: string) =>
  svcError('NAME_TAKEN', `there is a server "${name}" already`, {
    details: { name },
    hint: 'take another name, or remove that one',
  })

export const notRegistered = (name: string, known: readonly string[]) =>
  svcError('MCP_SERVER_UNKNOWN', `there is no server "${name}"`, {
    details: { server: name, available: [...known] },
    hint: known.length === 0 ? 'register one' : `there are: ${known.join(', ')}`,
  })

export const notForRemote = (option: string) =>
  svcError('CONFIG_INVALID', `${option} says nothing of a server that runs somewhere else`, {
    details: { option },
    hint: `leave ${option} out, or run the server here`,
  })
