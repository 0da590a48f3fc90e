import { type Channel, openChannel } from '../processes/channel.ts'
import { problemsToWire, type WireError } from '../processes/errors.ts'
import { type HandledPlugin, traceHandling } from '../processes/handling.ts'
import { ipcTransport } from '../processes/wire.ts'
import { defineService, systemContext, type CallContext } from '@svc/core'
import { type ListenAddress, type OpenPort, receiveConnections, type TakeConnection } from './connections.ts'
import { noSupervisor } from './errors.ts'
import { createPeerLink, type PeerLink } from './peer-link.ts'

/** What the supervisor hears from a worker. */
export interface Supervision {
  ready(report: unknown, ctx: CallContext): Promise<void>
  failed(problems: readonly WireError[], ctx: CallContext): Promise<void>
  /** What the first worker of this one's generation has left for those after it. */
  inherited(ctx: CallContext): Promise<unknown>
  /** Opens a port for this worker; connections come once it has reported that it is ready. */
  listen(address: ListenAddress, ctx: CallContext): Promise<OpenPort>
}
export const Supervision = defineService<Supervision>('supervision', {
  api: 1,
  methods: { ready: 'call', failed: 'call', inherited: 'call', listen: 'call' },
})

/** In the environment of a worker whose generation serves already. */
export const SUCCESSOR = 'SVC_SUCCESSOR'

/** In the environment of a worker: the file in which it leaves the trace of what it handled, and what is kept out of it, as JSON. */
export const TRACE = 'SVC_TRACE'
export const EXCLUDED = 'SVC_EXCLUDED'

/** How a worker is to end. */
export interface DrainRequest {
  /** Others take the new work meanwhile: open connections are left to their own end. */
  readonly successor: boolean
  /** Milliseconds that what runs has to end. */
  readonly limitMs?: number
}

/** What a worker is told. */
export interface WorkerControl {
  /** Answers at once; the worker ends when it has drained. */
  drain(wish: DrainRequest, ctx: CallContext): Promise<void>
  /** A sign of life of its event loop. */
  beat(ctx: CallContext): Promise<void>
}
export const WorkerControl = defineService<WorkerControl>('worker', { api: 1, methods: { drain: 'call', beat: 'call' } })

/** A worker's line to its supervisor. */
export interface WorkerLink {
  /** For further contracts between worker and supervisor. */
  readonly channel: Channel
  /** To the other workers. */
  readonly peers: PeerLink
  /** What the first worker of this generation has left (`SupervisorSettings.inherited`): undefined for the first itself, which starts from what is on disk. */
  readonly inherited: Promise<unknown>
  /** Plugins that ended or blocked workers of this generation by what they sent: they are not started. */
  readonly excluded: readonly HandledPlugin[]
  /** Tells that this worker serves; `report` is plain data. */
  ready(report: unknown): Promise<void>
  /** Tells why it cannot start; the worker should end then. Takes what `startHost` throws. */
  failed(error: unknown): Promise<void>
  /**
   * Listens at an address of the supervisor's, which hands over one connection after the other: to an `http.Server` they go by `server.emit('connection', socket)`.
   * Workers that ask for the same address share its port. Answers the port; throws what the system reports, such as EADDRINUSE.
   */
  listen(address: ListenAddress, take: TakeConnection): Promise<number>
  /**
   * `drain` runs when the supervisor asks for it or is gone: it ends with all work done (close the host). No connection comes any more then. The worker ends
   * as soon as nothing else is open. It runs again when the wish changes meanwhile: a worker that ends what it began for a reload learns that the server ends.
   */
  onDrain(drain: (wish: DrainRequest) => unknown): void
}

/** Opens the line; for the entry of a process that a supervisor forked. */
export function workerLink(): WorkerLink {
  if (!process.connected) throw noSupervisor()
  const drained = Promise.withResolvers<DrainRequest>()
  let hurry: ((wish: DrainRequest) => unknown) | undefined
  const channel = openChannel(ipcTransport(process), { name: 'supervisor', self: 'worker' })
  const drain = (wish: DrainRequest) => {
    drained.resolve(wish)
    hurry?.(wish)
  }
  channel.offer('worker', WorkerControl, { drain: async wish => drain(wish), beat: async () => {} })
  channel.signal.addEventListener('abort', () => drain({ successor: false }), { once: true })
  const supervisor = channel.reach('supervision', Supervision)
  const ctx = systemContext(channel.signal)
  const leave = () => {
    if (process.connected) process.disconnect()
  }
  const takers = receiveConnections()
  const isSuccessor = process.env[SUCCESSOR] !== undefined
  const { [TRACE]: trace, [EXCLUDED]: excluded = '[]' } = process.env
  if (trace !== undefined) traceHandling(trace)
  // no child of this worker is one
  for (const name of [SUCCESSOR, TRACE, EXCLUDED]) delete process.env[name]
  return {
    excluded: JSON.parse(excluded) as HandledPlugin[],
    channel,
    inherited: isSuccessor ? supervisor.inherited(ctx) : Promise.resolve(undefined),
    peers: createPeerLink(channel),
    ready: report => supervisor.ready(report, ctx),
    failed: error => supervisor.failed(problemsToWire(error), ctx),
    async listen(address, take) {
      const { id, port } = await supervisor.listen(address, ctx)
      takers.set(id, take)
      return port
    },
    onDrain: begin =>
      void drained.promise
        .then(wish => {
          hurry = begin
          return begin(wish)
        })
        .finally(leave),
  }
}
