import { isIP } from 'node:net'
import { type AddressGuard, isPublic, plain } from './addresses.ts'

/**
 * A server that the operator has configured by its URL. It can be reached although its address is not public. Requests with an untrusted URL reach it only at
 * its own port, and at the addresses that the server's own name resolved to.
 */
export interface NamedServer {
  /** For requests to the server itself, which resolve its addresses. */
  readonly guard: AddressGuard
  /** Whether a request with an untrusted URL goes to this server. */
  permits(host: string, address: string, port: number): boolean
}

/** Metadata addresses of clouds, which give credentials to any caller inside. A name never leads there. */
const METADATA = /^(169\.254\.|168\.63\.129\.16$|100\.100\.100\.200$|fe80:|fd00:ec2:)/i

/** Creates it from a valid URL. Keep it for the life of the server: a public name that later resolves to a private address is an attack. */
export function createNamedServer(written: string): NamedServer {
  const url = new URL(written)
  const host = nameOf(url.hostname)
  const port = Number(url.port) || (url.protocol === 'https:' ? 443 : 80)
  let found: ReadonlySet<string> = new Set(isIP(host) === 0 ? [] : [plain(host)])
  let isInner: boolean | undefined = isIP(host) === 0 ? undefined : true
  const isHere = (name: string, at: number) => nameOf(name) === host && at === port
  const mayLeadTo = (address: string) => isPublic(address) || (isInner === true && (isIP(host) !== 0 || !METADATA.test(address)))
  return {
    guard: {
      saw(name, addresses) {
        if (nameOf(name) !== host) return
        isInner ??= addresses.some(one => !isPublic(plain(one)))
        found = new Set(addresses.map(plain))
      },
      permits: (name, address, at) => isHere(name, at) && mayLeadTo(plain(address)),
    },
    permits: (name, address, at) => isHere(name, at) && found.has(plain(address)) && mayLeadTo(plain(address)),
  }
}

const nameOf = (host: string) => host.toLowerCase().replace(/^\[|\]$|\.$/g, '')
