import type { Socket } from 'node:net'
import { defineSlot, type CallContext } from '@svc/core'

/** An address of this machine; port 0 stands for any that is free. */
export interface ListenAddress {
  readonly host: string
  readonly port: number
}

/**
 * Listens in place of this process, in process only: a supervisor whose workers share a port. An `http.Server` takes what it hands over by
 * `server.emit('connection', connection)`.
 */
export interface Listener {
  /**
   * For a tap of `Host.hooks.ready`. Answers the port; connections come when this process is ready, until it drains. Throws what the system reports, such as
   * EADDRINUSE.
   */
  listen(address: ListenAddress, take: (connection: Socket) => void, ctx: CallContext): Promise<number>
}
/** What listens in place of this process, where something does; else a plugin listens itself. */
export const Listeners = defineSlot<Listener>('listeners', { api: 1, methods: { listen: 'call' }, local: true })
