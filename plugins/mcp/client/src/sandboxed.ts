import { existsSync } from 'node:fs'
import { isAbsolute } from 'node:path'
import type { Use } from '@svc/core'
import type { ProcessLimits, ProcessSandbox, Released } from '@svc/core/contracts'
import type { Launch } from '@svc/mcp-client'
import { callFailed } from './refusals.ts'
import type { McpClientConfig, SandboxSettings } from './settings.ts'

/** What `sandbox_config` is where it does not say: as documented. Seconds, and binary bytes. */
export const SANDBOX_DEFAULTS = { timeout: 30, memory_limit: '512M' } as const

/** Where a server runs: on this machine with all rights of svc or in the process sandbox, or on another one. */
export type Ground = 'all rights' | 'sandbox' | 'remote'

export function groundOf({ url, sandbox }: McpClientConfig): Ground {
  if (url !== undefined) return 'remote'
  return sandbox ? 'sandbox' : 'all rights'
}

const UNITS: Readonly<Record<string, number>> = { '': 1, K: 1024, M: 1024 ** 2, G: 1024 ** 3 }

/** Bytes of `512M`. */
function bytesOf(limit: string): number {
  const [, count = '0', unit = ''] = /^(\d+)([KMG]?)$/.exec(limit) ?? []
  return Number(count) * UNITS[unit]!
}

/** What a server of this machine may have. Paths among its arguments are there for it to read: whoever wrote them wants that. */
function limitsOf(config: SandboxSettings, args: readonly string[]): ProcessLimits {
  const allowedPaths = config.allowed_paths ?? []
  return {
    memoryBytes: bytesOf(config.memory_limit ?? SANDBOX_DEFAULTS.memory_limit),
    networkAccess: config.network_access ?? false,
    filesystemReadonly: config.filesystem_readonly ?? true,
    allowedPaths,
    readPaths: args.filter(arg => isAbsolute(arg) && !allowedPaths.includes(arg) && existsSync(arg)),
  }
}

/**
 * Makes of each start of a server one in the sandbox, with the variables `env` alone: those that a program in the open inherits (HOME, PATH) name folders that are not
 * there. Throws MCP_CALL_FAILED where there is no sandbox: it is never run open.
 */
export function sandboxed(
  entry: McpClientConfig,
  env: Readonly<Record<string, string>>,
  sandbox: ProcessSandbox | undefined,
  lasting: Use
) {
  const { name, sandbox_config = {}, args = [] } = entry
  if (!sandbox) throw callFailed(name, 'connection_refused', NO_SANDBOX, { delivered: 'no' })
  return async (launch: Launch, { signal }: { readonly signal: AbortSignal }): Promise<Launch> => {
    const { file: command, cwd } = launch
    const limits = limitsOf(sandbox_config, args)
    const request = { command, args: launch.args, env, limits, lasting: true, ...(cwd === undefined ? {} : { cwd }) }
    const wrapped = await sandbox.wrap(request, { ...lasting, signal })
    return {
      file: wrapped.file,
      args: wrapped.args,
      env: wrapped.env,
      contained: true,
      release: async () => endOf(await sandbox.release(wrapped.id, lasting)),
    }
  }
}

function endOf({ outOfMemory, outOfPids }: Released): string | undefined {
  if (outOfMemory) return 'its process ended, for it needed more memory than sandbox_config.memory_limit'
  return outOfPids ? 'its process ended, and it had wanted more processes than the sandbox lets it have' : undefined
}

const NO_SANDBOX =
  'it is to run in the process sandbox, and no plugin provides one: add @svc/plugin-sandbox-process to "plugins", or set sandbox to false'
