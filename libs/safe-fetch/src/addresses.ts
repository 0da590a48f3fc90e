import { BlockList, isIP, isIPv4 } from 'node:net'
import { svcError } from '@svc/core'

/** Decides which addresses a connection can reach. */
export interface AddressGuard {
  /** Whether `host`, which resolves to `address`, can be reached at this port. */
  permits(host: string, address: string, port: number): boolean
  /** Gets all addresses of a name before `permits` is called for each. */
  saw?(host: string, addresses: readonly string[]): void
}

/** IPv4 addresses that are not public (IANA's special-purpose registry), and the metadata addresses of clouds. */
const CLOSED_V4 = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '168.63.129.16/32',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
]
/** Public IPv6 is 2000::/3, without Teredo and similar, documentation, and 6to4. */
const OPEN_V6 = ['2000::/3']
const CLOSED_V6 = ['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20']

/** Created at the first use: Node then compiles its pattern for IPv6, which would slow a start. */
let lists: { readonly closed: BlockList; readonly open: BlockList } | undefined
const listsMade = () => (lists ??= { closed: listOf([...CLOSED_V4, ...CLOSED_V6]), open: listOf(OPEN_V6) })
const MAPPED = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i

/**
 * Creates the guard. `allow` has addresses (`10.0.0.7`), networks (`10.0.0.0/8`) and names (`internal.example`, `*.internal.example`). The guard also permits
 * all that one of `servers` permits. Throws CONFIG_INVALID.
 */
export function createAddressGuard(allow: readonly string[] = [], servers: readonly AddressGuard[] = []): AddressGuard {
  const names = allow.filter(isName).map(name => name.toLowerCase())
  const allowed = listOf(allow.filter(item => !isName(item)))
  const named = (host: string) =>
    names.some(name => (name.startsWith('*.') ? host.endsWith(name.slice(1)) && host.length >= name.length : host === name))
  return {
    saw(host, addresses) {
      for (const server of servers) server.saw?.(host, addresses)
    },
    permits(host, written, port) {
      const address = plain(written)
      if (isIP(address) === 0) return false
      if (named(host.toLowerCase().replace(/\.$/, '')) || holds(allowed, address) || isPublic(address)) return true
      return servers.some(server => server.permits(host, address, port))
    },
  }
}

/** Whether an address, as `plain` returns it, is public. */
function isPublic(address: string): boolean {
  const { closed, open } = listsMade()
  return !holds(closed, address) && (isIPv4(address) || holds(open, address))
}

/** Removes the zone, and turns IPv4-mapped IPv6 into IPv4. */
function plain(address: string): string {
  const bare = address.split('%', 1)[0]!
  return MAPPED.exec(bare)?.[1] ?? bare
}

const holds = (list: BlockList, address: string) => list.check(address, isIPv4(address) ? 'ipv4' : 'ipv6')

const NAME = /^(\*\.)?[a-z0-9_-]+(\.[a-z0-9_-]+)*$/i
const isName = (text: string) => NAME.test(text) && isIP(text) === 0

function listOf(networks: readonly string[]): BlockList {
  const list = new BlockList()
  for (const network of networks) {
    const [address = '', bits] = network.split('/')
    const family = isIP(address)
    const most = family === 4 ? 32 : 128
    const prefix = bits === undefined ? most : /^\d{1,3}$/.test(bits) ? Number(bits) : -1
    if (family === 0 || prefix < 0 || prefix > most) throw notAllowable(network)
    list.addSubnet(address, prefix, family === 4 ? 'ipv4' : 'ipv6')
  }
  return list
}

const notAllowable = (entry: string) =>
  svcError('CONFIG_INVALID', `"${entry}" is not an address, network or name`, {
    hint: 'Write 10.0.0.7, 10.0.0.0/8, internal.example or *.internal.example',
  })

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
        isInner ??= addresses.some(address => !isPublic(plain(address)))
        found = new Set(addresses.map(plain))
      },
      permits: (name, address, at) => isHere(name, at) && mayLeadTo(plain(address)),
    },
    permits: (name, address, at) => isHere(name, at) && found.has(plain(address)) && mayLeadTo(plain(address)),
  }
}

const nameOf = (host: string) => host.toLowerCase().replace(/^\[|\]$|\.$/g, '')
