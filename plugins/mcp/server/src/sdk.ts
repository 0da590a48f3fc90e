// The SDK and zod take a fifth of a second to load: only who needs them pays.
import type { AuthInfo, Server, ServerContext } from '@modelcontextprotocol/server'
import type { CallContext } from '@svc/core'
import type { CallEnd } from './call.ts'

export type Sdk = typeof import('@modelcontextprotocol/server')
export type { Server, ServerContext }

let loading: Promise<Sdk> | undefined

export const loadSdk = (): Promise<Sdk> => (loading ??= import('@modelcontextprotocol/server'))

/** What the handlers of a request need to know of it. */
export interface Exchange {
  readonly ctx: CallContext
  /** What came of the call before the SDK was asked, for its first round. */
  begun?: CallEnd | undefined
}

const carried = new WeakMap<AuthInfo, Exchange>()

/** Takes an exchange through the SDK to its handlers: they see this very object. */
export function carry(exchange: Exchange): AuthInfo {
  const { id, scopes } = exchange.ctx.principal
  const info: AuthInfo = { token: '', clientId: id, scopes: [...scopes] }
  carried.set(info, exchange)
  return info
}

/** The circumstances of the request that a handler answers: its signal is the protocol's own. `own` where nothing was carried: one client has the whole server. */
export function exchangeOf(context: ServerContext, own: CallContext | undefined): Exchange {
  const info = context.http?.authInfo
  const exchange = info && carried.get(info)
  if (exchange) return exchange
  if (own) return { ctx: own }
  throw new TypeError('a request without its circumstances')
}
