import { isIP } from 'node:net'
import { isTree } from '@svc/core'
import type { Json, ListenAddress, NodeAddress } from '@svc/core/contracts'

const SCHEMES: ReadonlySet<unknown> = new Set(['http', 'https'])
const HOST_NAME = /^[A-Za-z0-9]([\w.-]{0,252})$/
/** The addresses of all networks of a machine. */
const ANY: ReadonlySet<string> = new Set(['0.0.0.0', '::'])

/** The address of a worker in its answer. */
export const addressFact = ({ host, port, scheme = 'http' }: ListenAddress): Json => ({ host, port, scheme })

/** The address in the answer of another node, which can be any value. `machine`: the name of its machine. */
export function addressIn(sent: unknown, machine: string | undefined): NodeAddress | undefined {
  if (!isTree(sent)) return undefined
  const { host, port, scheme } = sent as Readonly<Record<string, unknown>>
  if (typeof host !== 'string' || typeof port !== 'number' || !SCHEMES.has(scheme)) return undefined
  const reached = ANY.has(host) ? machine : host
  if (!isHost(host) || !isHost(reached) || !Number.isInteger(port) || port < 1 || port > 65_535) return undefined
  return { host, port, url: `${String(scheme)}://${isIP(reached) === 6 ? `[${reached}]` : reached}:${port}` }
}

const isHost = (host: string | undefined): host is string => host !== undefined && (isIP(host) !== 0 || HOST_NAME.test(host))
