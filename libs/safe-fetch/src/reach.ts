import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import { connect as connectTcp, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'

/** A step on the way to a server. `run` returns what it found. */
export interface ReachStep {
  readonly step: 'resolve' | 'connect' | 'tls'
  readonly run: (signal: AbortSignal) => Promise<string>
}

const STEP_MS = 10_000

/**
 * The steps of a connection to an address, made separately to show which one fails: resolve, connect, and with https the handshake of
 * TLS. They are for addresses that an operator has configured: no address is forbidden.
 */
export function reachSteps({ hostname, protocol, port }: URL): readonly ReachStep[] {
  const host = hostname.replace(/^\[|\]$/g, '')
  const isTls = protocol === 'https:'
  const at = { host, port: Number(port === '' ? (isTls ? 443 : 80) : port) }
  const resolve: ReachStep = {
    step: 'resolve',
    run: async () => (await lookup(host, { all: true })).map(one => one.address).join(', '),
  }
  const connect: ReachStep = {
    step: 'connect',
    run: async signal => {
      await reached(connectTcp(at), 'connect', signal)
      return `port ${at.port}`
    },
  }
  const tls: ReachStep = {
    step: 'tls',
    run: async signal => {
      const socket = connectTls({ ...at, ...(/^[\d.:]+$/.test(host) ? {} : { servername: host }) })
      return await reached(socket, 'secureConnect', signal, () => socket.getProtocol() ?? '')
    },
  }
  return isTls ? [resolve, connect, tls] : [resolve, connect]
}

async function reached(socket: Socket, event: string, signal: AbortSignal, found: () => string = () => ''): Promise<string> {
  try {
    await once(socket, event, { signal: AbortSignal.any([signal, AbortSignal.timeout(STEP_MS)]) })
    return found()
  } finally {
    socket.destroy()
  }
}
