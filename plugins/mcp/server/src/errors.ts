import { svcError } from '@svc/core'

export const toolUnknown = (name: string) => svcError('TOOL_NOT_FOUND', `there is no tool "${name.slice(0, 100)}"`)

/** The message for callers of a tool that its server has changed. */
export const withheldMessage = (name: string, server: string) =>
  `the tool "${name}" has changed and is disabled until it is approved: svc mcp approve ${server}`

export const toolWithheld = (name: string, server: string) =>
  svcError('TOOL_NOT_FOUND', withheldMessage(name, server), {
    details: { tool: name, server, reason: 'changed' },
    hint: `Review the changes with svc mcp tools ${server}, then run svc mcp approve ${server}`,
  })

/** The message for callers of a tool that the mode of the server does not allow. */
export const forbiddenMessage = (mode: string) => `the mode "${mode}" does not allow it`

export const toolForbidden = (name: string, mode: string) =>
  svcError('INVALID_VALUE', `the mode "${mode}" does not allow the tool "${name.slice(0, 100)}"`, {
    details: { field: 'name', value: name.slice(0, 100), reason: `not allowed in mode ${mode}` },
    hint: 'Switch to another mode: POST /api/v1/mode/switch, or svc mcp serve --mode',
  })

/** The arguments of a call do not match the schema of the tool. `field` is the path of the first problem (`arguments.path`). */
export const argumentsInvalid = (message: string, field: string, reason: string) =>
  svcError('INVALID_VALUE', message, { details: { field, reason }, hint: 'Fix the arguments and call the tool again' })

export const toolBroken = (name: string, cause: unknown) =>
  svcError('TOOL_EXECUTION_FAILED', `the tool "${name}" cannot be called: its parameters are not a valid JSON Schema`, {
    cause,
    details: { tool: name, reason: 'broken schema' },
  })

export const callLate = (name: string, limitMs: number) =>
  svcError('TIMEOUT', `the tool "${name}" did not finish within ${limitMs / 1000} s`, {
    details: { tool: name, timeout_ms: limitMs },
  })

const RETRY_SECONDS = 1

export const callsWaiting = (limit: number) =>
  svcError('RATE_LIMITED', `${limit} calls are already waiting; try again later`, {
    details: { limit, window: 0, retry_after: RETRY_SECONDS },
  })

export const parameterMismatch = (header: string, path: readonly string[], what: string) =>
  svcError('MCP_HEADER_MISMATCH', `the header ${header} must equal arguments.${path.join('.')}, but ${what}`, {
    details: { header, field: `arguments.${path.join('.')}` },
  })

/** The tool reported a failure. `content` is its result. */
export const toolFailed = (name: string, reason: string, content: readonly unknown[]) =>
  svcError('TOOL_EXECUTION_FAILED', `the tool "${name}" failed: ${reason}`, { details: { tool: name, reason, content } })

/** The tool reported a timeout of its own. */
export const toolLate = (name: string, message: string) => svcError('TIMEOUT', message, { details: { tool: name } })

/** The server of a tool failed. */
export const upstreamFailed = (message: string, server: string, retryable: boolean) =>
  svcError('PROVIDER_ERROR', message, { details: { server, retryable } })

const KEY = 'mcp.server.auth.api_key_env'

export const keyMissing = (variable: string) =>
  svcError('MCP_KEY_MISSING', `the MCP server requires a key, but the environment variable ${variable} is empty or not set`, {
    where: KEY,
    details: { variable },
    hint: `Set ${variable} to the key, set ${KEY} to another variable, or set mcp.server.auth.required to false`,
  })

export const keyUnusable = (variable: string, longest: number) =>
  svcError('MCP_KEY_UNUSABLE', `the environment variable ${variable} contains a key that is not valid in a header`, {
    where: KEY,
    details: { variable },
    hint: `Set ${variable} to at most ${longest} visible ASCII characters without spaces`,
  })

/** A warning: the server starts. It must not reveal the key or its length. */
export const shortKey = (variable: string, short: number) => ({
  message: `the key of the MCP server in ${variable} has fewer than ${short} characters and can be guessed`,
  hint: `Set ${variable} to the output of: openssl rand -hex 32`,
})

export const twoCredentials = () => svcError('AUTHENTICATION_FAILED', 'the request contains two different credentials')

/** A name in the configuration that matches no published tool. */
export interface UnknownName {
  readonly key: string
  readonly name: string
  /** The most similar name of a tool. */
  readonly near?: string | undefined
  /** The tool exists, but `mcp.server.tools` excludes it. */
  readonly isExcluded: boolean
}

export const toolsUnknown = (names: readonly UnknownName[]) =>
  svcError('MCP_TOOL_UNKNOWN', names.map(describeUnknown).join('\n'), {
    where: [...new Set(names.map(({ key }) => key))].join(', '),
    details: { tools: names.map(({ name }) => name) },
    hint: 'Correct or remove the names; `svc tools list --local` lists all tools',
  })

const describeUnknown = ({ key, name, near, isExcluded }: UnknownName) => {
  if (isExcluded) return `${key} names the tool "${name}", but mcp.server.tools excludes it`
  return `${key} names the tool "${name}", which does not exist${near === undefined ? '' : `: did you mean "${near}"?`}`
}
