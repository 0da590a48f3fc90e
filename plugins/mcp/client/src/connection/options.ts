import type { InputRequest, Json } from '@svc/core/contracts'
import { type AddressGuard, createNamedServer, type NamedServer } from '@svc/safe-fetch'
import { nearest, svcError } from '@svc/core'
import { badOption } from '../errors.ts'

const FIRST_WAIT_MS = 500
const MAX_WAIT_MS = 30_000

/** Milliseconds before the next attempt after so many failures in a row: `exponential` = min(30 s, 0.5 s · 2ⁿ) with full jitter. */
export const BACKOFFS = {
  exponential: failures => Math.round(Math.random() * Math.min(MAX_WAIT_MS, FIRST_WAIT_MS * 2 ** failures)),
  linear: failures => Math.min(MAX_WAIT_MS, 1_000 * (failures + 1)),
  constant: () => 1_000,
} satisfies Record<string, (failures: number) => number>

/** The wait before the next attempt, or a function that returns its milliseconds after so many failures in a row. */
export type Backoff = keyof typeof BACKOFFS | ((failures: number) => number)

/** The limits of a server. */
export interface McpLimits {
  /** Tools; a longer list is cut, and the server is `degraded`; default 1000. */
  readonly tools: number
  /** Pages of one list; default 100. */
  readonly pages: number
  /** Levels of a tool's schemas; default 64. */
  readonly schemaDepth: number
  /** Bytes of one tool as JSON; default 262,144. */
  readonly toolBytes: number
  /** Bytes of one message, and so of a result; default 10 MiB. */
  readonly resultBytes: number
  /** Concurrent calls; further ones wait; default 64. */
  readonly calls: number
  /** Concurrent calls of one tool; default 8. */
  readonly callsPerTool: number
  /** Messages a second without a request, averaged over ten seconds; above it the connection is closed; default 1000. */
  readonly noticesPerSecond: number
  /** Concurrent calls that wait for the answer of a user; default 64. */
  readonly parked: number
  /** Milliseconds that a call waits for that answer; default 300,000. */
  readonly parkedMs: number
}

export const LIMITS: McpLimits = {
  tools: 1_000,
  pages: 100,
  schemaDepth: 64,
  toolBytes: 262_144,
  resultBytes: 10_485_760,
  calls: 64,
  callsPerTool: 8,
  noticesPerSecond: 1_000,
  parked: 64,
  parkedMs: 300_000,
}

/**
 * The era of the protocol that a server speaks, and when the client learned it (Unix milliseconds). Plain data; pass it to the next client to shorten the handshake.
 * Ignored when older than a day.
 */
export interface KnownEra {
  readonly era: 'legacy' | 'modern'
  readonly since: number
}

interface CommonOptions {
  /** The name in messages; default: the address, or the command. */
  readonly name?: string
  /** The names of the tools to use; `[]`: none; default: all. */
  readonly tools?: readonly string[]
  /** Seconds of a call; default 30. */
  readonly timeout?: number
  /** Seconds up to which progress extends a call; default ten times `timeout`. */
  readonly maxTimeout?: number
  /** Further attempts after a failed one, before the connection is `failed`; 0 makes none; default 5. */
  readonly retryAttempts?: number
  /** Default `exponential`. */
  readonly backoff?: Backoff
  /** Milliseconds for a connection, the handshake and the list of tools; default 30,000. */
  readonly connectMs?: number
  /** The questions of a server before protocol 2026, declared in the handshake; default `elicitation/create`. */
  readonly can?: readonly InputRequest['method'][]
  /** Milliseconds without a call after which the connection is closed until the next one; 0 keeps it; default 0. */
  readonly idleMs?: number
  /** Failures in a row after which the server is `quarantined`; default 20. */
  readonly quarantineAfter?: number
  readonly known?: KnownEra
  readonly limits?: Partial<McpLimits>
}

/** Stores the result of a login (tokens, a registered client): one value, secret. */
export interface TokenStorage {
  load(): Promise<Json | undefined>
  /** `undefined` deletes it. */
  save(value: Json | undefined): Promise<void>
}

/** A user who can log in now. */
export interface Person {
  /** Where the browser is sent back to. */
  readonly redirectUrl: string
  /** Shows the page; resolves with the query that came back to `redirectUrl`. */
  authorize(page: URL): Promise<URLSearchParams>
}

/**
 * OAuth. With `tokenUrl`: client credentials from there. Without: the discovery of the protocol, with the authorization code grant and PKCE; a user has to log in
 * once (`loginMcp`), then the client refreshes the tokens of `storage`.
 */
export interface OAuthOptions {
  readonly clientId?: string
  readonly clientSecret?: string
  readonly tokenUrl?: string
  /** The only authorization server for logins; can have a private address. Default: the one that the MCP server names. */
  readonly issuer?: string
  readonly scope?: string
  /** Metadata of this client for servers that need no registration (https). */
  readonly clientMetadataUrl?: string
  /** Default: in memory. */
  readonly storage?: TokenStorage
  /** Without a user, a server that needs a login becomes `needs_auth`. */
  readonly person?: Person
}

/** A remote server. */
export interface HttpOptions extends CommonOptions {
  readonly url: string
  readonly command?: undefined
  /** Sent as `apiKeyHeader` says. */
  readonly apiKey?: string
  /** Default `authorization`: `Authorization: Bearer <key>`. */
  readonly apiKeyHeader?: 'authorization' | 'x-api-key'
  readonly oauth?: OAuthOptions
  /** False: no address but the server's own, not even for a login. Default true. */
  readonly networkAccess?: boolean
  /** Private names, addresses and networks that can be reached, besides the server's own host and `oauth.tokenUrl`'s. */
  readonly allow?: readonly string[]
  /** Additional trusted certificates in PEM form. */
  readonly ca?: string
}

/** A program to start, with all of its variables. */
export interface Launch {
  readonly file: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly cwd?: string
  /** True if all of its child processes end with it (a process namespace). */
  readonly contained?: boolean
  /** Called after it has ended; can return a better reason for the end. */
  readonly release?: () => Promise<string | undefined>
}

/** A local program. */
export interface StdioOptions extends CommonOptions {
  readonly command: string
  readonly args?: readonly string[]
  /** Variables besides PATH, HOME, LANG, TERM, TMPDIR, USER, LOGNAME, SHELL and TZ of this process: it inherits no other. */
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  /** Replaces each launch, for example with one in a sandbox. */
  readonly wrap?: (launch: Launch, ctx: { readonly signal: AbortSignal }) => Promise<Launch>
  readonly url?: undefined
}

export type McpClientOptions = HttpOptions | StdioOptions

/** Options with all defaults. */
export interface ResolvedOptions
  extends Required<Pick<CommonOptions, 'name' | 'connectMs' | 'can' | 'idleMs' | 'quarantineAfter'>> {
  readonly input: McpClientOptions
  readonly timeoutMs: number
  readonly maxTotalMs: number
  readonly reconnect: ReconnectPolicy
  readonly limits: McpLimits
  /** For a remote server: the servers that the operator names. */
  readonly servers: () => NamedServers
}

const TIMEOUT_S = 30
const PROGRESS_FACTOR = 10

/** Throws CONFIG_INVALID. */
export function resolveOptions(input: McpClientOptions): ResolvedOptions {
  for (const key of Object.keys(input)) if (!KEYS.includes(key)) throw unknownOption(key)
  const { timeout = TIMEOUT_S, maxTimeout = PROGRESS_FACTOR * timeout, connectMs = 30_000, idleMs = 0 } = input
  const timeoutMs = positive('timeout', timeout, 1_000)
  let servers: NamedServers | undefined
  return {
    input: withStorage(input),
    name: input.name ?? (input.url === undefined ? input.command : shownUrl(input.url)),
    timeoutMs,
    maxTotalMs: Math.max(timeoutMs, positive('maxTimeout', maxTimeout, 1_000)),
    connectMs: positive('connectMs', connectMs),
    idleMs: Math.min(idleMs, LONGEST_MS),
    quarantineAfter: input.quarantineAfter ?? 20,
    reconnect: policyOf(input.retryAttempts ?? 5, input.backoff ?? 'exponential'),
    can: input.can ?? ['elicitation/create'],
    limits: { ...LIMITS, ...input.limits },
    servers: () => (servers ??= namedServers(input as HttpOptions)),
  }
}

const KEYS: readonly string[] = [
  'name tools timeout maxTimeout retryAttempts backoff connectMs can idleMs quarantineAfter known limits',
  'url apiKey apiKeyHeader oauth networkAccess allow ca',
  'command args env cwd wrap',
].flatMap(keys => keys.split(' '))

/** A login must outlive the connection on which it was made. */
function withStorage(input: McpClientOptions): McpClientOptions {
  if (input.url === undefined || input.oauth === undefined) return input
  return { ...input, oauth: { storage: createMemoryStorage(), ...input.oauth } }
}

/** Stores a login in memory. */
export function createMemoryStorage(): TokenStorage {
  let saved: Json | undefined
  return {
    load: async () => saved,
    save: async value => {
      saved = value
    },
  }
}

/** The longest timer of Node: a longer one fires at once. */
const LONGEST_MS = 2 ** 31 - 1

/** Milliseconds of a time above 0. Throws CONFIG_INVALID. */
export function positive(option: string, value: number, unitMs = 1): number {
  if (!(value > 0) || !Number.isFinite(value)) throw badOption(option, value)
  return Math.min(value * unitMs, LONGEST_MS)
}

/** How a connection is made again. */
export interface ReconnectPolicy {
  readonly retryAttempts: number
  readonly backoff: (failures: number) => number
}

/** Throws CONFIG_INVALID. */
export function policyOf(retryAttempts: number, backoff: Backoff): ReconnectPolicy {
  if (!Number.isInteger(retryAttempts) || retryAttempts < 0) throw badOption('retryAttempts', retryAttempts)
  if (typeof backoff === 'function') return { retryAttempts, backoff }
  if (!Object.hasOwn(BACKOFFS, backoff)) throw badOption('backoff', backoff)
  return { retryAttempts, backoff: BACKOFFS[backoff] }
}

const unknownOption = (option: string) =>
  svcError('CONFIG_INVALID', `there is no option "${option.slice(0, 100)}"`, {
    details: { option: option.slice(0, 100) },
    hint: `Use ${nearest(option, KEYS) ?? `one of: ${KEYS.join(', ')}`}`,
  })

/** An address without credentials, query and fragment. Throws CONFIG_INVALID. */
function shownUrl(written: string): string {
  const url = URL.parse(written)
  if (url === null) throw badOption('url', written.slice(0, 100))
  return url.origin + url.pathname
}

/** The servers that the operator names for one connection. They live as long as the client: a name must not lead to another address later. */
export interface NamedServers {
  readonly itself: NamedServer
  /** Sources of logins and tokens. The operator named them, so their addresses can be private. */
  readonly logins: readonly AddressGuard[]
}

function namedServers({ url, oauth }: HttpOptions): NamedServers {
  const logins = [oauth?.tokenUrl, oauth?.issuer].filter(one => one !== undefined)
  return { itself: createNamedServer(url), logins: logins.map(one => createNamedServer(one).guard) }
}
