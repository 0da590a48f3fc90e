import { type EventEmitter, errorMonitor } from 'node:events'
import { Socket } from 'node:net'
import type { Refuse } from './guard.ts'

interface Failure {
  readonly syscall?: string
  readonly address?: string
  readonly port?: number
  readonly hostname?: string
  /** Of the addresses that were tried one after the other. */
  readonly errors?: readonly Failure[]
}

/** Tells of sockets that found no network: the way out is the proxy. Whoever hears no errors of his socket ends with it as before (`errorMonitor`). */
export function guardSockets(refuse: Refuse): void {
  // oxlint-disable-next-line typescript/unbound-method -- bound at each call
  const { connect } = Socket.prototype
  const watched = function (this: EventEmitter, ...args: unknown[]) {
    this.once(errorMonitor, (error: Failure) => {
      const place = placeOf(error)
      if (place !== undefined) refuse('network', `${place} by a bare socket`)
    })
    return Reflect.apply(connect, this, args) as Socket
  }
  Socket.prototype.connect = watched as typeof connect
}

function placeOf({ errors, ...error }: Failure): string | undefined {
  const { syscall, address, port, hostname } = errors?.[0] ?? error
  if (syscall === 'getaddrinfo') return hostname
  return syscall === 'connect' && port !== undefined ? `${address}:${port}` : undefined
}
