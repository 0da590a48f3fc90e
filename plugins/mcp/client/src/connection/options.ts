import type { InputRequest, Json } from '@svc/core/contracts'
import { type AddressGuard, createNamedServer, type NamedServer } from '@svc/safe-fetch'
import { badOption } from '../errors.ts'
import { type Backoff, CLOCK, type Clock } from './timing.ts'

export interface ReconnectPolicy {
  /** Further attempts after a failed one, before the connection is `failed`; 0 makes none. */
  readonly maxAttempts: number
  readonly backoff: Backoff
}

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
  /** Milliseconds of a call; default 30,000. */
  readonly timeoutMs?: number
  /** Milliseconds up to which progress extends a call; default ten times `timeoutMs`. */
  readonly maxTotalMs?: number
  /** Milliseconds for a connection, the handshake and the list of tools; default 30,000. */
  readonly connectMs?: number
  /** Default: 5 attempts, `exponential`. */
  readonly reconnect?: ReconnectPolicy
  /** The questions of a server before protocol 2026, declared in the handshake; default `elicitation/create`. */
  readonly can?: readonly InputRequest['method'][]
  /** Milliseconds without a call after which the connection is closed until the next one; 0 keeps it; default 0. */
  readonly idleMs?: number
  /** Failures in a row after which the server is `quarantined`; default 20. */
  readonly quarantineAfter?: number
  readonly known?: KnownEra
  readonly limits?: Partial<McpLimits>
  readonly clock?: Clock
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
  extends Required<Pick<CommonOptions, 'name' | 'timeoutMs' | 'maxTotalMs' | 'connectMs' | 'idleMs' | 'quarantineAfter'>>,
    Required<Pick<CommonOptions, 'reconnect' | 'can' | 'clock'>> {
  readonly input: McpClientOptions
  readonly limits: McpLimits
  /** For a remote server: the servers that the operator names. */
  readonly servers: () => NamedServers
}

const TIMEOUT_MS = 30_000
const CONNECT_MS = 30_000
const TIMES_WITH_PROGRESS = 10
const QUARANTINE_AFTER = 20

/** Throws CONFIG_INVALID. */
export function resolveOptions(input: McpClientOptions): ResolvedOptions {
  const timeoutMs = positive('timeoutMs', input.timeoutMs ?? TIMEOUT_MS)
  let servers: NamedServers | undefined
  return {
    input: withStorage(input),
    name: input.name ?? (input.url === undefined ? input.command : shownUrl(input.url)),
    timeoutMs,
    maxTotalMs: Math.max(timeoutMs, input.maxTotalMs ?? TIMES_WITH_PROGRESS * timeoutMs),
    connectMs: positive('connectMs', input.connectMs ?? CONNECT_MS),
    idleMs: input.idleMs ?? 0,
    quarantineAfter: input.quarantineAfter ?? QUARANTINE_AFTER,
    reconnect: policyOf(input.reconnect ?? { maxAttempts: 5, backoff: 'exponential' }),
    can: input.can ?? ['elicitation/create'],
    limits: { ...LIMITS, ...input.limits },
    clock: input.clock ?? CLOCK,
    servers: () => (servers ??= namedServers(input as HttpOptions)),
  }
}

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

/** Returns a positive, finite number. Throws CONFIG_INVALID. */
export function positive(what: string, value: number): number {
  if (!(value > 0) || !Number.isFinite(value)) throw badOption(what, value)
  return value
}

const BACKOFFS: readonly string[] = ['exponential', 'linear', 'constant'] satisfies Backoff[]

/** Returns a valid policy. Throws CONFIG_INVALID. */
export function policyOf({ maxAttempts, backoff }: ReconnectPolicy): ReconnectPolicy {
  if (!Number.isInteger(maxAttempts) || maxAttempts < 0) throw badOption('maxAttempts', maxAttempts)
  if (!BACKOFFS.includes(backoff)) throw badOption('backoff', backoff)
  return { maxAttempts, backoff }
}

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

const UNITS: Readonly<Record<string, number>> = { '': 1, K: 2 ** 10, M: 2 ** 20, G: 2 ** 30 }

/** Bytes of a size like `512M`; undefined if it is not a size. */
export function bytesOf(size: string): number | undefined {
  const [, digits, unit] = /^(\d+)([KMG]?)$/.exec(size) ?? []
  return digits === undefined || unit === undefined ? undefined : Number(digits) * UNITS[unit]!
}
