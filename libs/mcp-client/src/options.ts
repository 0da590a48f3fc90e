import type { InputRequest } from '@svc/core/contracts'
import type { OAuthOptions } from './oauth/options.ts'

/** How long to wait before the next attempt: `exponential` = min(30 s, 0.5 s · 2ⁿ), with full jitter; `linear` 1 s more each time, up to 30 s; `constant` 1 s. */
export type Backoff = 'exponential' | 'linear' | 'constant'

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

/** Time and chance, for tests. */
export interface Clock {
  now(): number
  /** Calls back once after so many milliseconds; answers what ends it. */
  after(ms: number, call: () => void): () => void
  /** From 0 to 1. */
  random(): number
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
