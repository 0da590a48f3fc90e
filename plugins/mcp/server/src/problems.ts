import { svcError } from '@svc/core'

const KEY = 'mcp.server.auth.api_key_env'

export const keyMissing = (variable: string) =>
  svcError('MCP_KEY_MISSING', `the tool server asks for a key, and the environment variable ${variable} is not set or empty`, {
    where: KEY,
    details: { variable },
    hint: `put the key into ${variable}, name the variable that has it in ${KEY}, or set mcp.server.auth.required to false`,
  })

export const keyUnusable = (variable: string, longest: number) =>
  svcError('MCP_KEY_UNUSABLE', `the environment variable ${variable} holds no key that a header can carry`, {
    where: KEY,
    details: { variable },
    hint: `put a key of visible ASCII characters without blanks into it, at most ${longest} of them`,
  })

/** Not an error: the server starts. Neither the key nor its length is told. */
export const shortKey = (variable: string, short: number) => ({
  message: `the key of the tool server in ${variable} has fewer than ${short} characters and can be guessed`,
  hint: `put a longer one into ${variable} (openssl rand -hex 32)`,
})

export const twoCredentials = () => svcError('AUTHENTICATION_FAILED', 'two different credentials were given')

/** A name in the configuration that leads to no tool. */
export interface LostName {
  readonly key: string
  readonly name: string
  /** What was perhaps meant. */
  readonly near?: string | undefined
  /** There is such a tool, and `mcp.server.tools` leaves it out. */
  readonly isLeftOut: boolean
}

/** Names that no tool has. */
export const toolsUnknown = (lost: readonly LostName[]) =>
  svcError('MCP_TOOL_UNKNOWN', lost.map(lostLine).join('\n'), {
    where: [...new Set(lost.map(({ key }) => key))].join(', '),
    details: { tools: lost.map(({ name }) => name) },
    hint: 'fix the names, or take them out; `svc tools list --local` shows all',
  })

const lostLine = ({ key, name, near, isLeftOut }: LostName) => {
  if (isLeftOut) return `${key} names "${name}", which mcp.server.tools leaves out`
  return `${key} names "${name}", and there is no such tool${near === undefined ? '' : `: did you mean "${near}"?`}`
}
