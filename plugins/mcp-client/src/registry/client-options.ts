import { existsSync } from 'node:fs'
import { isAbsolute } from 'node:path'
import type { Use } from '@svc/core'
import type { McpCallOptions, ProcessLimits, ProcessSandbox, Released } from '@svc/core/contracts'
import { callFailed } from '@svc/mcp'
import type { KnownEra, Launch, McpClientOptions, OAuthOptions, TokenStorage } from '../connection/options.ts'
import type { Server } from './configured-servers.ts'
import type { McpClientConfig, SandboxSettings } from './settings.ts'

/** What a connection is made of besides its entry. */
export interface ConnectionParts {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly sandbox: ProcessSandbox | undefined
  /** Where logging in is kept. */
  readonly storage: TokenStorage
  /** The circumstances of work that no request waits for. */
  readonly lasting: Use
  readonly known?: KnownEra | undefined
}

const TIMEOUT_S = 30
const RETRIES = 5
const IDLE_S = 3_600
/** So many times its time a call may take that tells of progress. */
const PROGRESS_FACTOR = 10

/** Milliseconds of a call; `total`: up to which progress extends it. In a sandbox its own time is the most, whatever is told. */
export function timesOf({ timeout = TIMEOUT_S, sandbox, sandbox_config }: McpClientConfig): { usual: number; total: number } {
  const usual = timeout * 1000
  if (!sandbox) return { usual, total: usual * PROGRESS_FACTOR }
  const most = (sandbox_config?.timeout ?? SANDBOX_DEFAULTS.timeout) * 1000
  return { usual: Math.min(usual, most), total: most }
}

/** A call's own time wins over the server's, but in a sandbox: nobody is given more there. */
export function withinSandbox(entry: McpClientConfig, options: McpCallOptions): McpCallOptions {
  const { timeoutMs } = options
  return entry.sandbox && timeoutMs !== undefined ? { ...options, timeoutMs: Math.min(timeoutMs, timesOf(entry).total) } : options
}

/** How a server is connected. Throws MCP_CALL_FAILED where what its entry names is not there: a variable, a sandbox. */
export function clientOptions({ entry }: Server, parts: ConnectionParts): McpClientOptions {
  const { usual, total } = timesOf(entry)
  const common = {
    name: entry.name,
    timeoutMs: usual,
    maxTotalMs: total,
    reconnect: { maxAttempts: entry.retry_attempts ?? RETRIES, backoff: 'exponential' as const },
    ...(parts.known === undefined ? {} : { known: parts.known }),
  }
  return entry.url === undefined ? { ...common, ...commandOf(entry, parts) } : { ...common, ...remote(entry, entry.url, parts) }
}

function commandOf(entry: McpClientConfig, { env: outer, sandbox, lasting }: ConnectionParts) {
  const { command = '', args = [], env = {}, idle_timeout = IDLE_S } = entry
  const own = Object.fromEntries(Object.entries(env).map(([name, value]) => [name, filled(entry, value, outer)]))
  const wrap = entry.sandbox ? { wrap: sandboxed(entry, own, sandbox, lasting) } : {}
  return { command, args, env: own, idleMs: idle_timeout * 1000, ...wrap }
}

function remote(entry: McpClientConfig, url: string, { env, storage }: ConnectionParts) {
  const { api_key_env, api_key_header, sandbox, sandbox_config } = entry
  return {
    url,
    ...(api_key_env === undefined
      ? { oauth: { ...oauthOf(entry, env), storage } }
      : { apiKey: variable(entry, api_key_env, 'api_key_env', env) }),
    ...(api_key_header === undefined ? {} : { apiKeyHeader: api_key_header }),
    ...(sandbox ? { networkAccess: sandbox_config?.network_access ?? false } : {}),
  }
}

function oauthOf(entry: McpClientConfig, env: ConnectionParts['env']): OAuthOptions {
  const { client_id, client_secret, client_secret_env, token_url, issuer, scope } = entry.oauth ?? {}
  const secret =
    client_secret_env === undefined ? client_secret : variable(entry, client_secret_env, 'oauth.client_secret_env', env)
  return {
    ...(client_id === undefined ? {} : { clientId: client_id }),
    ...(secret === undefined ? {} : { clientSecret: secret }),
    ...(token_url === undefined ? {} : { tokenUrl: token_url }),
    ...(issuer === undefined ? {} : { issuer }),
    ...(scope === undefined ? {} : { scope }),
  }
}

function variable({ name }: McpClientConfig, variable: string, key: string, env: ConnectionParts['env']): string {
  const value = env[variable]?.trim()
  if (value) return value
  throw callFailed(
    name,
    'authentication_failed',
    `${key} names the environment variable ${variable}, which is not set or empty`,
    {
      delivered: 'no',
    }
  )
}

/** A text with the variables that it names. */
function filled({ name }: McpClientConfig, text: string, env: ConnectionParts['env']): string {
  return text.replace(/\$\{([A-Za-z_]\w*)\}/g, (_, variable: string) => {
    const value = env[variable]
    if (value !== undefined) return value
    throw callFailed(name, 'connection_refused', `its env names the environment variable ${variable}, which is not set`, {
      delivered: 'no',
    })
  })
}

/** What `sandbox_config` is where it does not say: as documented. Seconds, and binary bytes. */
const SANDBOX_DEFAULTS = { timeout: 30, memory_limit: '512M' } as const

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
function sandboxed(
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
