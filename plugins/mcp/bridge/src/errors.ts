import { type SvcError, svcError } from '@svc/core'
import { callFailed } from '@svc/mcp-protocol'

const words = (names: readonly string[]) => names.map(name => `"${name}"`).join(', ')

/** The tool asks for something, and this caller cannot be asked. */
export const nobodyToAsk = (tool: string, asked: readonly string[]): SvcError =>
  svcError('TOOL_NEEDS_ANSWER', `the tool "${tool}" asks for something before it goes on (${words(asked)})`, {
    details: { tool, asked },
    hint: 'call it from a client of the tool protocol that can be asked',
  })

export const noResult = (tool: string, server: string): SvcError =>
  callFailed(server, 'protocol_error', `the call of "${tool}" ended without a result`)

/** Two tools would have one name. */
export const nameClash = (name: string, server: string, cause: unknown): SvcError =>
  svcError(
    'MCP_NAME_CLASH',
    `a tool of the server "${server}" would be called "${name}", and there is one of that name already`,
    {
      details: { name, server },
      hint: `it stays out of use; give the server another name, or leave the tool out: deny: [...] in its entry of mcp.clients`,
      cause,
    }
  )
