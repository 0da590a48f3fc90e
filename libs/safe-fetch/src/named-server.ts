import { isIP } from 'node:net'
import { type AddressGuard, isPublic, plain } from './addresses.ts'

/**
 * A server that the operator has named by its URL. It is reached where it lies, though that is not public; requests that somebody else has named reach it at
 * its own port only, and at the addresses that were found for the server itself.
 */
export interface NamedServer {
  /** For requests to the server itself: they find its addresses. */
  readonly guard: AddressGuard
  /** For requests that somebody else has named: whether they go to this server. */
  permits(host: string, address: string, port: number): boolean
}

/** Where clouds give credentials to whatever asks from within: a name never leads there. */
const METADATA = /^(169\.254\.|168\.63\.129\.16$|100\.100\.100\.200$|fe80:|fd00:ec2:)/i

/** Makes it of a URL that can be parsed. It lasts as long as the server is known: a name that was public and then leads inward is an attack. */
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
