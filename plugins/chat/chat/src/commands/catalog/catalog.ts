import type { JsonSchema } from '@svc/core'
import type { Effect, Effective, ProviderFeatures } from '@svc/core/contracts'
import type { ToolRecord } from '@svc/api-types'

/** A tool; what is optional here is told by a host in this process alone. */
export interface ListedTool extends ToolRecord {
  readonly effects?: readonly Effect[]
  /** A person is asked before each call in a chat. */
  readonly asks?: boolean
  readonly timeoutMs?: number
  readonly schema?: JsonSchema
  readonly result?: JsonSchema
}

/** A provider in the form of `GET /api/v1/providers`. */
export interface ProviderRecord {
  readonly name: string
  readonly models: readonly string[]
  readonly features: ProviderFeatures
}

export interface Health {
  readonly healthy: boolean
  readonly error?: string
  /** What the probe took; a server tells none. */
  readonly ms?: number
}

/** What came of one tiny message. Times in milliseconds. */
export interface Hello {
  readonly model: string
  /** To the first text; absent where the model gave none. */
  readonly firstMs?: number
  readonly ms: number
  readonly output: number
}

/** What there is to use, of a server or of a host in this process. */
export interface Catalog {
  /** For people: whose it is. */
  readonly of: string
  /** A switch there holds for other clients too. */
  readonly shared: boolean
  tools(signal: AbortSignal): Promise<readonly ListedTool[]>
  providers(signal: AbortSignal): Promise<readonly ProviderRecord[]>
  /** How each provider is, or these. Never a billed call. */
  health(signal: AbortSignal, limitMs: number, names?: readonly string[]): Promise<Readonly<Record<string, Health>>>
  /** Says a few words to a provider: a billed call. Throws what fails. */
  hello(provider: string, model: string | undefined, signal: AbortSignal): Promise<Hello>
  effective(signal: AbortSignal): Promise<Effective>
  /** Throws INVALID_VALUE, and FORBIDDEN where the credential has no scope `admin`. */
  switch(what: Switched, name: string, signal: AbortSignal): Promise<Effective>
}

/** What is switched for a whole server. */
export type Switched = 'profile' | 'mode'
