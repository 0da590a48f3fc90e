import type { IncomingMessage } from 'node:http'
import { BlockList, isIP, isIPv6 } from 'node:net'
import { proxyInvalid } from './errors.ts'

/** Who asks, by address: forwarding headers count only from proxies that are trusted. */
export interface Addresses {
  /** The client's address: of the connection, or what the nearest trusted proxies say, from the right, up to the first that nobody vouches for. */
  readonly clientOf: (req: IncomingMessage) => string
  /** `http` or `https`, as the client sees it. */
  readonly schemeOf: (req: IncomingMessage) => string
}

/** `trusted`: addresses and networks (`10.0.0.0/8`, `fd00::/8`). Throws PROXY_INVALID. */
export function createAddresses(trusted: readonly string[]): Addresses {
  if (trusted.length === 0) return { clientOf: peerOf, schemeOf: ownScheme }
  const proxies = listOf(trusted)
  const trusts = (address: string) => proxies.check(address, isIPv6(address) ? 'ipv6' : 'ipv4')
  return {
    clientOf(req) {
      const peer = peerOf(req)
      const forwarded = req.headers['x-forwarded-for']
      return forwarded === undefined || peer === '' || !trusts(peer) ? peer : behind(peer, String(forwarded), trusts)
    },
    schemeOf(req) {
      const peer = peerOf(req)
      const told = req.headers['x-forwarded-proto']
      return (told === 'https' || told === 'http') && peer !== '' && trusts(peer) ? told : ownScheme(req)
    },
  }
}

/** The rightmost hop that is no trusted proxy; what is no address ends the chain, for nobody vouches for what stands left of it. */
function behind(peer: string, forwarded: string, trusts: (address: string) => boolean): string {
  let client = peer
  for (const hop of forwarded.split(',').toReversed()) {
    const address = addressIn(hop.trim())
    if (address === undefined) return client
    client = address
    if (!trusts(address)) return client
  }
  return client
}

/** `1.2.3.4`, `1.2.3.4:5678`, `::1`, `[::1]`, `[::1]:5678`. */
function addressIn(hop: string): string | undefined {
  const bare = /^\[([^\]]+)\](?::\d+)?$/.exec(hop)?.[1] ?? (/^[\d.]+:\d+$/.test(hop) ? hop.slice(0, hop.indexOf(':')) : hop)
  return isIP(bare) === 0 ? undefined : plain(bare)
}

function listOf(trusted: readonly string[]): BlockList {
  const list = new BlockList()
  for (const entry of trusted) addTo(list, entry)
  return list
}

function addTo(list: BlockList, entry: string) {
  const [address = '', bits, ...more] = entry.split('/')
  const family = isIPv6(address) ? 'ipv6' : 'ipv4'
  const most = family === 'ipv6' ? 128 : 32
  const isSubnet = bits !== undefined
  if (isIP(address) === 0 || more.length > 0 || (isSubnet && !(/^\d{1,3}$/.test(bits) && Number(bits) <= most)))
    throw proxyInvalid(entry)
  if (isSubnet) list.addSubnet(address, Number(bits), family)
  else list.addAddress(plain(address), family)
}

/** The address at the other end of a connection; empty where it is gone. */
export const peerOf = ({ socket }: Pick<IncomingMessage, 'socket'>) => plain(socket.remoteAddress ?? '')
const ownScheme = ({ socket }: IncomingMessage) => ('encrypted' in socket ? 'https' : 'http')

/** An IPv4 address that comes as IPv6 is one all the same. */
const plain = (address: string) => (address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address)

/** Whether a name or address is this machine's own. */
export const isLoopback = (host: string) => host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host)
