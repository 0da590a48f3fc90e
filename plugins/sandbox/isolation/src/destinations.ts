import { isIP } from 'node:net'
import { createAddressGuard, createGuardedResolve, type Resolve } from '@svc/safe-fetch'

const DNS_MS = 5000

/** Where a plugin may connect to. */
export interface Destinations {
  /** Whether a host is declared, by its name alone. */
  declares(host: string, port: number): boolean
  /** The addresses to connect to at this port. Throws ADDRESS_FORBIDDEN, HOST_UNKNOWN. */
  resolve(host: string, port: number): Promise<readonly string[]>
}

/**
 * Hosts as a manifest declares them: `api.example.com`, `api.example.com:8443`, `*.example.com`, an address, `localhost`, and `*` for every public one. A name
 * may lead to what is not public only where that very address is declared, with that port if it has one, or it is `localhost`.
 */
export function createDestinations(declared: readonly string[], resolve?: Resolve): Destinations {
  const entries = declared.map(entryOf)
  const at = (port: number) => entries.filter(entry => (entry.port ?? port) === port)
  return {
    declares: (host, port) => at(port).some(entry => isFor(entry.host, host)),
    resolve(host, port) {
      const named = at(port).map(entry => entry.host)
      const guard = createAddressGuard(named.filter(one => isIP(one) !== 0 || one === 'localhost'))
      return createGuardedResolve(guard, DNS_MS, isIP(host) === 0 ? resolve : async () => [host])(host, port)
    },
  }
}

/** `host:port`, `[::1]:80`, each without its port, too. Undefined for what is none. */
export function entryOf(written: string): { readonly host: string; readonly port?: number } {
  const [, bracketed, plain, port] = /^(?:\[([^\]]+)\]|([^:]*))(?::(\d{1,5}))?$/.exec(written) ?? []
  const host = bracketed ?? plain ?? written
  return { host: host.toLowerCase().replace(/\.$/, ''), ...(port === undefined ? {} : { port: Number(port) }) }
}

function isFor(declared: string, host: string): boolean {
  if (declared === '*') return true
  return declared.startsWith('*.') ? host.endsWith(declared.slice(1)) && host.length >= declared.length : declared === host
}
