import type { InputRequest, Json } from '@svc/core/contracts'
import { type AddressGuard, createNamedServer, type NamedServer } from '@svc/guarded-fetch'
import { badOption } from '../errors.ts'
import { type Backoff, CLOCK, type Clock } from './timing.ts'

export interface ReconnectPolicy {
  /** Attempts after a connection has failed, before it is `failed`; 0 makes none. */
  readonly maxAttempts: number
  readonly backoff: Backoff
}

/** What bounds a server. */
export interface McpLimits {
  /** Tools; what is more breaks the catalogue (`degraded`); default 1000. */
  readonly tools: number
  /** Pages of one list; default 100. */
  readonly pages: number
  /** Levels of a tool's schemas; default 64. */
  readonly schemaDepth: number
  /** Bytes of one tool as JSON; default 262,144. */
  readonly toolBytes: number
  /** Bytes of one message, and so of a result; default 10 MiB. */
  readonly resultBytes: number
  /** Calls at once; further ones wait; default 64. */
  readonly calls: number
  /** Calls at once of one tool; default 8. */
  readonly callsPerTool: number
  /** Messages a second that nobody asked for, on average over ten seconds; a server that sends more is cut off; default 1000. */
  readonly noticesPerSecond: number
  /** Calls that wait for an answer of the person at once; default 64. */
  readonly parked: number
  /** Milliseconds for which a call waits for that answer; default 300,000. */
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
 * What was learned of a server and makes the next connection quicker: the era of the protocol that it speaks, and since when this is known (Unix milliseconds). Plain
 * data, to be kept; older than a day it is not believed.
 */
export interface KnownEra {
  readonly era: 'legacy' | 'modern'
  readonly since: number
}

interface CommonOptions {
  /** What it is called in messages; default: its address, or its command. */
  readonly name?: string
  /** Milliseconds of a call; default 30,000. */
  readonly timeoutMs?: number
  /** Milliseconds up to which progress extends a call; default ten times `timeoutMs`. */
  readonly maxTotalMs?: number
  /** Milliseconds for a connection, the handshake and the list of tools; default 30,000. */
  readonly connectMs?: number
  /** Default: 5 attempts, `exponential`. */
  readonly reconnect?: ReconnectPolicy
  /** What a server of the protocol before 2026 may ever ask for: told when the connection is made; default `elicitation/create`. */
  readonly can?: readonly InputRequest['method'][]
  /** Milliseconds without a call after which the connection is given up until it is needed; 0 keeps it; default 0. */
  readonly idleMs?: number
  /** Failed connections and broken promises in a row after which it is `quarantined`; default 20. */
  readonly quarantineAfter?: number
  readonly known?: KnownEra
  readonly limits?: Partial<McpLimits>
  readonly clock?: Clock
}

/** A server somewhere else. */
export interface HttpOptions extends CommonOptions {
  readonly url: string
  readonly command?: undefined
  /** Sent as `apiKeyHeader` says. */
  readonly apiKey?: string
  /** Default `authorization`: `Authorization: Bearer <key>`. */
  readonly apiKeyHeader?: 'authorization' | 'x-api-key'
  readonly oauth?: OAuthOptions
  /** False: no address but the server's own, not even for logging in. Default true. */
  readonly networkAccess?: boolean
  /** What may be reached though it is not public, besides the server's own host and `oauth.tokenUrl`'s: names, addresses, networks. */
  readonly allow?: readonly string[]
  /** Certificates to trust besides those of Node, in PEM form. */
  readonly ca?: string
}

/** A program to be started, and all its variables. */
export interface Launch {
  readonly file: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly cwd?: string
  /** True where its end is the end of all that it started (a process namespace). */
  readonly contained?: boolean
  /** Called once it has ended; may answer why it did, where that is known better here. */
  readonly release?: () => Promise<string | undefined>
}

/** A program of this machine. */
export interface StdioOptions extends CommonOptions {
  readonly command: string
  readonly args?: readonly string[]
  /** Its variables besides PATH, HOME, LANG, TERM, TMPDIR, USER, LOGNAME, SHELL and TZ of this process: no other is inherited. */
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  /** Makes something else of each start: a sandbox. */
  readonly wrap?: (launch: Launch, use: { readonly signal: AbortSignal }) => Promise<Launch>
  readonly url?: undefined
}

export type McpClientOptions = HttpOptions | StdioOptions

/** Keeps what logging in has brought (tokens, a registered client): one value, secret. */
export interface TokenStorage {
  load(): Promise<Json | undefined>
  /** `undefined` forgets it. */
  save(value: Json | undefined): Promise<void>
}

/** Somebody who can log in, now. */
export interface Person {
  /** Where the browser is sent back to. */
  readonly redirectUrl: string
  /** Shows the page; answers what came back to `redirectUrl`. */
  authorize(page: URL): Promise<URLSearchParams>
}

/**
 * OAuth. With `tokenUrl`: client credentials, asked for there. Without: the protocol's own discovery, with the authorization code grant and PKCE; somebody has to log in
 * once (`loginMcp`), then tokens are refreshed from `storage`.
 */
export interface OAuthOptions {
  readonly clientId?: string
  readonly clientSecret?: string
  readonly tokenUrl?: string
  /** The only authorization server that somebody may be sent to: reached though it is not public. Default: the one that the tool server names. */
  readonly issuer?: string
  readonly scope?: string
  /** Where a server that needs no registration finds what this client is (https). */
  readonly clientMetadataUrl?: string
  /** Default: in memory. */
  readonly storage?: TokenStorage
  /** Where nobody is there, a server that wants a login is `needs_auth`. */
  readonly person?: Person
}

/** Options with all that was left out. */
export interface Settled {
  readonly options: McpClientOptions
  readonly name: string
  readonly timeoutMs: number
  readonly maxTotalMs: number
  readonly connectMs: number
  readonly idleMs: number
  readonly quarantineAfter: number
  readonly reconnect: ReconnectPolicy
  readonly can: readonly InputRequest['method'][]
  readonly limits: McpLimits
  readonly clock: Clock
  /** Of a server somewhere else: what the operator has named. */
  readonly servers: () => NamedServers
}

const TIMEOUT_MS = 30_000
const CONNECT_MS = 30_000
const TIMES_WITH_PROGRESS = 10
const QUARANTINE_AFTER = 20

/** Throws CONFIG_INVALID. */
export function settle(options: McpClientOptions): Settled {
  const timeoutMs = above0('timeoutMs', options.timeoutMs ?? TIMEOUT_MS)
  let servers: NamedServers | undefined
  return {
    options: withStorage(options),
    name: options.name ?? (options.url === undefined ? options.command : shownUrl(options.url)),
    timeoutMs,
    maxTotalMs: Math.max(timeoutMs, options.maxTotalMs ?? TIMES_WITH_PROGRESS * timeoutMs),
    connectMs: above0('connectMs', options.connectMs ?? CONNECT_MS),
    idleMs: options.idleMs ?? 0,
    quarantineAfter: options.quarantineAfter ?? QUARANTINE_AFTER,
    reconnect: policyOf(options.reconnect ?? { maxAttempts: 5, backoff: 'exponential' }),
    can: options.can ?? ['elicitation/create'],
    limits: { ...LIMITS, ...options.limits },
    clock: options.clock ?? CLOCK,
    servers: () => (servers ??= namedServers(options as HttpOptions)),
  }
}

/** A login must outlive the connection that it was made on. */
function withStorage(options: McpClientOptions): McpClientOptions {
  if (options.url === undefined || options.oauth === undefined) return options
  return { ...options, oauth: { storage: createMemoryStorage(), ...options.oauth } }
}

/** Milliseconds of a wait. Throws CONFIG_INVALID where it is none. */
export function above0(what: string, ms: number): number {
  if (!(ms > 0) || !Number.isFinite(ms)) throw badOption(what, ms)
  return ms
}

const BACKOFFS: readonly string[] = ['exponential', 'linear', 'constant'] satisfies Backoff[]

/** A policy that can be kept to. Throws CONFIG_INVALID. */
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

/** The servers that the operator names for one connection. They live as long as the client, so that a name cannot lead elsewhere later. */
export interface NamedServers {
  readonly itself: NamedServer
  /** Where logins and tokens come from. The operator named these servers, so they may be private. */
  readonly logins: readonly AddressGuard[]
}

function namedServers({ url, oauth }: HttpOptions): NamedServers {
  const logins = [oauth?.tokenUrl, oauth?.issuer].filter(one => one !== undefined)
  return { itself: createNamedServer(url), logins: logins.map(one => createNamedServer(one).guard) }
}

/** Keeps a login as long as the process lives. */
export function createMemoryStorage(): TokenStorage {
  let kept: Json | undefined
  return {
    load: async () => kept,
    save: async value => {
      kept = value
    },
  }
}

const UNITS: Readonly<Record<string, number>> = { '': 1, K: 2 ** 10, M: 2 ** 20, G: 2 ** 30 }

/** Bytes of a size like `512M`. Throws CONFIG_INVALID. */
export function bytesOf(size: string): number {
  const [, digits, unit] = /^(\d+)([KMG]?)$/.exec(size) ?? []
  if (digits === undefined || unit === undefined || Number(digits) === 0) throw badOption('memory_limit', size)
  return Number(digits) * UNITS[unit]!
}
