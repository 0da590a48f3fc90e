import { existsSync } from 'node:fs'
import { isAbsolute } from 'node:path'
import type { CallContext } from '@svc/core'
import type { McpCallOptions, ProcessLimits, ProcessSandbox, Released } from '@svc/core/contracts'
import { callFailed } from '@svc/mcp-protocol'
import { bytesOf, definedOf } from '@svc/plugin-kit'
import {
  type KnownEra,
  type Launch,
  type McpClientOptions,
  PROGRESS_FACTOR,
  TIMEOUT_S,
  type TokenStorage,
} from '../connection/client-types.ts'
import type { McpServerSettings } from './configured-servers.ts'
import type { McpClientConfig, SandboxSettings } from './settings.ts'

/** What a connection needs besides its entry. */
export interface ClientOptionsContext {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly sandbox: ProcessSandbox | undefined
  /** The storage of the login. */
  readonly storage: TokenStorage
  /** The context of work without a request. */
  readonly lasting: CallContext
  readonly known?: KnownEra | undefined
}

const IDLE_S = 3_600
/** Default of `sandbox_config`, as documented. */
const SANDBOX_MEMORY = '512M'

/** Milliseconds of a call; progress extends it up to `total`. In a sandbox, `sandbox_config.timeout` is the maximum. */
export function callTimesOf({ timeout = TIMEOUT_S, sandbox, sandbox_config }: McpClientConfig): { usual: number; total: number } {
  const usual = timeout * 1000
  if (!sandbox) return { usual, total: usual * PROGRESS_FACTOR }
  const total = (sandbox_config?.timeout ?? TIMEOUT_S) * 1000
  return { usual: Math.min(usual, total), total }
}

/** The timeout of a call overrides the server's, but not the maximum of a sandbox. */
export function limitedBySandbox(entry: McpClientConfig, options: McpCallOptions): McpCallOptions {
  const { timeoutMs } = options
  return entry.sandbox && timeoutMs !== undefined
    ? { ...options, timeoutMs: Math.min(timeoutMs, callTimesOf(entry).total) }
    : options
}

/** The client options of a server. Throws MCP_CALL_FAILED if a variable or the sandbox that the entry names is missing. */
export function clientOptions({ entry }: McpServerSettings, context: ClientOptionsContext): McpClientOptions {
  const { name, url, retry_attempts: retryAttempts } = entry
  const { usual, total } = callTimesOf(entry)
  const times = { timeout: usual / 1_000, maxTimeout: total / 1_000 }
  const common = { name, ...times, ...definedOf({ retryAttempts, known: context.known }) }
  return url === undefined ? { ...common, ...stdioOptions(entry, context) } : { ...common, ...httpOptions(entry, url, context) }
}

function stdioOptions(entry: McpClientConfig, { env: outer, sandbox, lasting }: ClientOptionsContext) {
  const { command = '', args = [], env = {}, idle_timeout = IDLE_S } = entry
  const own = Object.fromEntries(Object.entries(env).map(([name, value]) => [name, substitute(entry, value, outer)]))
  const wrap = entry.sandbox ? { wrap: sandboxed(entry, own, sandbox, lasting) } : {}
  return { command, args, env: own, idleMs: idle_timeout * 1000, ...wrap }
}

function httpOptions(entry: McpClientConfig, url: string, { env, storage }: ClientOptionsContext) {
  const { api_key_env, api_key_header, oauth = {}, sandbox, sandbox_config } = entry
  const { client_id, client_secret_env, token_url, issuer, scope } = oauth
  const networkAccess = sandbox ? (sandbox_config?.network_access ?? false) : undefined
  const common = { url, ...definedOf({ apiKeyHeader: api_key_header, networkAccess }) }
  if (api_key_env !== undefined) return { ...common, apiKey: variable(entry, api_key_env, 'api_key_env', env) }
  const clientSecret =
    client_secret_env === undefined ? oauth.client_secret : variable(entry, client_secret_env, 'oauth.client_secret_env', env)
  const client = definedOf({ clientId: client_id, clientSecret, tokenUrl: token_url, issuer, scope })
  return { ...common, oauth: { ...client, storage } }
}

function variable({ name }: McpClientConfig, variable: string, key: string, env: ClientOptionsContext['env']): string {
  const value = env[variable]?.trim()
  if (value) return value
  const message = `${key} names the environment variable ${variable}, which is unset or empty`
  throw callFailed(name, 'authentication_failed', message, { delivered: 'no' })
}

/** Replaces `${NAME}` with the environment variable. */
function substitute({ name }: McpClientConfig, text: string, env: ClientOptionsContext['env']): string {
  return text.replace(/\$\{([A-Za-z_]\w*)\}/g, (_, variable: string) => {
    const value = env[variable]
    if (value !== undefined) return value
    const message = `its env names the environment variable ${variable}, which is not set`
    throw callFailed(name, 'connection_refused', message, { delivered: 'no' })
  })
}

/** Where a server runs: locally with all rights of svc, locally in the process sandbox, or on another machine. */
export type Placement = 'all rights' | 'sandbox' | 'remote'

export function placementOf({ url, sandbox }: McpClientConfig): Placement {
  if (url !== undefined) return 'remote'
  return sandbox ? 'sandbox' : 'all rights'
}

/** The limits of a sandboxed server. It can read the paths among its arguments. */
function limitsOf(config: SandboxSettings, args: readonly string[]): ProcessLimits {
  const allowedPaths = config.allowed_paths ?? []
  return {
    memoryBytes: bytesOf(config.memory_limit ?? SANDBOX_MEMORY),
    networkAccess: config.network_access ?? false,
    filesystemReadonly: config.filesystem_readonly ?? true,
    allowedPaths,
    readPaths: args.filter(arg => isAbsolute(arg) && !allowedPaths.includes(arg) && existsSync(arg)),
  }
}

/**
 * Replaces each launch of a server with one in the sandbox. The server gets no variables but `env`: HOME and PATH of this process name folders that the sandbox does
 * not have. Throws MCP_CALL_FAILED if there is no sandbox; the server never runs without it.
 */
function sandboxed(
  entry: McpClientConfig,
  env: Readonly<Record<string, string>>,
  sandbox: ProcessSandbox | undefined,
  lasting: CallContext
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
      release: async () => endReason(await sandbox.release(wrapped.id, lasting)),
    }
  }
}

function endReason({ outOfMemory, outOfPids }: Released): string | undefined {
  if (outOfMemory) return 'its process ended: it needed more memory than sandbox_config.memory_limit'
  return outOfPids ? 'its process ended: it started more processes than the sandbox allows' : undefined
}

const NO_SANDBOX =
  'no plugin provides the process sandbox that its entry requires; add @svc/plugin-sandbox-process to "plugins", or set sandbox to false'
