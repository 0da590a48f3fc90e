import { createMcpClient } from './client.ts'
import type { Arguments, CallAnswer, Waiting } from './client-types.ts'
import { notForRemote } from './errors.ts'
import { LIMITS } from './options.ts'
import { bytesOf } from './size.ts'

/** Limits of a call to a server somewhere else, in the document's words and units. */
export interface McpSandboxConfig {
  /** Seconds; default 30. */
  readonly timeout?: number
  /** What an answer may take: `512M`; at most 10 MiB count; default `512M`. */
  readonly memoryLimit?: string
  /** False: no address but the server's own. Default false. */
  readonly networkAccess?: boolean
  /** A server somewhere else has no files here: only `true` makes sense. */
  readonly filesystemReadonly?: boolean
  readonly allowedPaths?: readonly string[]
}

export interface McpSandbox {
  /** Calls a tool of a server nobody trusts, on a connection of its own. */
  execute(toolName: string, args: Arguments, serverUrl: string, use?: Waiting): Promise<CallAnswer>
}

/** Makes a sandbox: `await createMcpSandbox({ timeout: 5 }).execute('forecast', { city: 'Bonn' }, 'https://weather.example/mcp')`. Throws CONFIG_INVALID. */
export function createMcpSandbox(config: McpSandboxConfig = {}): McpSandbox {
  const { timeout = 30, memoryLimit = '512M', networkAccess = false, filesystemReadonly = true, allowedPaths = [] } = config
  if (!filesystemReadonly) throw notForRemote('filesystem_readonly')
  if (allowedPaths.length > 0) throw notForRemote('allowed_paths')
  const resultBytes = Math.min(LIMITS.resultBytes, bytesOf(memoryLimit))
  return {
    async execute(toolName, args, serverUrl, use = {}) {
      await using client = createMcpClient({
        url: serverUrl,
        networkAccess,
        timeoutMs: timeout * 1_000,
        maxTotalMs: timeout * 1_000,
        reconnect: { maxAttempts: 0, backoff: 'constant' },
        limits: { resultBytes },
      })
      return await client.callTool(toolName, args, use)
    },
  }
}
