import type { SvcError } from '@svc/core'
import type { Tool, ToolResult } from '@svc/core/contracts'
import { bridgedName, type ToolSchema } from '@svc/mcp-protocol'
import { createMcpClient } from './client.ts'
import type { McpClient } from './client-types.ts'
import { noLastWord } from './failures.ts'
import type { HttpOptions } from './options.ts'

/** A tool of a server as one of this service; its end closes the connection. */
export interface BridgedTool extends AsyncDisposable {
  /** The name it goes by here: `<server>__<tool>`. */
  readonly name: string
  readonly tool: Tool
}

export interface BridgeOptions extends Omit<HttpOptions, 'url'> {
  readonly serverUrl: string
  readonly toolName: string
}

/**
 * One tool of a server, to be added to an agent's: `const { name, tool } = await bridgeTool({ serverUrl: 'https://weather.example/mcp', toolName: 'forecast' })`, then
 * `scope.add(Tools, name, tool)`. Throws MCP_CALL_FAILED.
 */
export async function bridgeTool(
  { serverUrl, toolName, ...options }: BridgeOptions,
  use?: { readonly signal?: AbortSignal }
): Promise<BridgedTool> {
  const client = createMcpClient({ ...options, url: serverUrl })
  try {
    const schema = await client.getToolSchema(toolName, use)
    return {
      name: bridgedName(options.name ?? new URL(serverUrl).hostname, toolName),
      tool: toolOf(client, schema),
      [Symbol.asyncDispose]: () => client.close(),
    }
  } catch (error) {
    await client.close()
    throw error as SvcError
  }
}

function toolOf(client: McpClient, { name, title, description, parameters, result }: ToolSchema): Tool {
  return {
    ...(title !== undefined && { title }),
    description,
    category: 'mcp',
    effects: ['execute', 'network'],
    parameters,
    ...(result !== undefined && { result }),
    async call(args, use): Promise<ToolResult> {
      for await (const step of client.call(name, args, {}, use)) if (step.type === 'result') return step.result
      throw noLastWord(client.name)
    },
    run: (args, dialog, use) => client.call(name, args, { dialog, owner: use.principal.id }, use),
  }
}
