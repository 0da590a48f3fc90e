import { isLoopback } from './address.ts'
import type { ServerConfig } from './config.ts'
import type { Context, Middleware } from './context.ts'
import { hostForbidden, invalidValue } from './errors.ts'

/** Names remembered as good: clients use a handful, and nobody may fill our memory with spellings of them. */
const REMEMBERED = 256
const HOST = /^(?:\[([0-9a-f:.]+)\]|([^\s:[\]@/]+))(?::\d{1,5})?$/

/** A request line that names the whole URL, as to a proxy, says itself whom it means; the Host beside it is to be ignored (RFC 9112, 3.2.2). */
const ABSOLUTE = /^https?:\/\/([^/?#]*)/i
const authorityOf = (url: string) => (url.startsWith('/') ? undefined : ABSOLUTE.exec(url)?.[1])

/** Which names the server answers to. */
export interface HostGuard {
  /** Each Host is checked; false where the server is open to all names. */
  readonly isChecked: boolean
  /** Refuses what another name was used for: a page whose name was bent to this address. Throws INVALID_VALUE, FORBIDDEN. */
  readonly middleware: Middleware
}

export function createHostGuard({ host, allowed_hosts }: Pick<ServerConfig, 'host' | 'allowed_hosts'>): HostGuard {
  const isChecked = isLoopback(host) || allowed_hosts.length > 0
  const names = new Set([host, ...allowed_hosts].map(name => name.toLowerCase().replace(/^\[(.*)\]$/, '$1')))
  const good = new Set<string>()
  const isOurs = (given: string) => {
    const match = HOST.exec(given)
    const name = (match?.[1] ?? match?.[2] ?? '').replace(/\.$/, '')
    return isLoopback(name) || names.has(name) || names.has(given)
  }
  const check = ({ req, originalUrl }: Context) => {
    const sent = req.headers.host
    // HTTP/1.0 allows a request without one, but then nothing says that this server was meant
    if (sent === undefined) throw invalidValue('host', 'is missing')
    const authority = authorityOf(originalUrl)
    const given = authority ?? sent
    // for the guard of origins and for mounts too: what Host says counts no more
    if (authority !== undefined) req.headers.host = authority
    if (good.has(given)) return
    if (given.includes(',')) throw invalidValue('host', 'is given more than once')
    if (isChecked && !isOurs(given.toLowerCase())) throw hostForbidden(given)
    if (given === '') throw invalidValue('host', 'is empty')
    if (good.size < REMEMBERED) good.add(given)
  }
  return {
    isChecked,
    middleware(ctx, next) {
      check(ctx)
      return next()
    },
  }
}
