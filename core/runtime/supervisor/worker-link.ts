import { type Channel, openChannel } from '../processes/channel.ts'
import { problemsToWire, type WireError } from '../processes/errors.ts'
import { type ExcludedPlugin, traceHandling } from '../processes/handling.ts'
import { ipcTransport } from '../processes/wire.ts'
import { defineService, systemContext, type CallContext } from '@svc/core'
import { type SocketAddressOptions, type OpenPort, receiveConnections, type TakeConnection } from './connections.ts'
import { noSupervisor } from './errors.ts'
import { createPeerLink, type PeerLink } from './peer-link.ts'

/** What the supervisor offers to a worker. */
export interface Supervision {
  ready(report: unknown, ctx: CallContext): Promise<void>
  failed(problems: readonly WireError[], ctx: CallContext): Promise<void>
  /** Data of the first worker of this generation for later ones. */
  inherited(ctx: CallContext): Promise<unknown>
  /** Opens a port for this worker. Connections arrive after it has reported that it is ready. */
  listen(address: SocketAddressOptions, ctx: CallContext): Promise<OpenPort>
  /** Keeps a value in the memory of the supervisor, for later workers of this generation. */
  keep(name: string, value: unknown, ctx: CallContext): Promise<void>
  /** The value that a worker of this generation has kept last. */
  kept(name: string, ctx: CallContext): Promise<unknown>
}
export const Supervision = defineService<Supervision>('supervision', {
  api: 1,
  methods: { ready: 'call', failed: 'call', inherited: 'call', listen: 'call', keep: 'call', kept: 'call' },
})

/** Variable of a worker whose generation already serves. */
export const SUCCESSOR = 'SVC_SUCCESSOR'

/** Variable of a worker: the kind of its start, and after a space the reason of a reload. */
export const START = 'SVC_START'

/** Variable of a worker: its name. */
export const NAME = 'SVC_WORKER'

/** Variables of a worker: the file for its trace, and the excluded plugins as JSON. */
export const TRACE = 'SVC_TRACE'
export const EXCLUDED = 'SVC_EXCLUDED'

/** How a worker should end. */
export interface DrainRequest {
  /** Others take the new work, so open connections end on their own. */
  readonly successor: boolean
  /** Milliseconds that running work has to end. */
  readonly limitMs?: number
}

/** What a worker offers to the supervisor. */
export interface WorkerControl {
  /** Reports that it will drain soon, so that balancers send it no new work. It works as before. */
  leave(ctx: CallContext): Promise<void>
  /** Returns at once. The worker exits when it has drained. */
  drain(request: DrainRequest, ctx: CallContext): Promise<void>
  /** A heartbeat of its event loop. */
  beat(ctx: CallContext): Promise<void>
}
export const WorkerControl = defineService<WorkerControl>('worker', {
  api: 1,
  methods: { leave: 'call', drain: 'call', beat: 'call' },
})

/** Why a worker starts. */
export type WorkerStart =
  | { readonly kind: 'server' }
  | { readonly kind: 'reload' | 'resume'; readonly reason: string }
  | { readonly kind: 'worker' }

/** A start as text, for the environment of a worker. */
export const startText = (start: WorkerStart): string => ('reason' in start ? `${start.kind} ${start.reason}` : start.kind)

function startOf(text: string): WorkerStart {
  const space = text.indexOf(' ')
  const [kind, reason] = [text.slice(0, space), text.slice(space + 1)]
  if (kind === 'reload' || kind === 'resume') return { kind, reason }
  return { kind: text === 'worker' ? text : 'server' }
}

/** Connects a worker to its supervisor. */
export interface WorkerLink {
  /** For further contracts between worker and supervisor. */
  readonly channel: Channel
  /** Connects to the other workers. */
  readonly peers: PeerLink
  /**
   * Data of the first worker of this generation (`SupervisorSettings.inherited`). Undefined for the first worker, which reads
   * the current files.
   */
  readonly inherited: Promise<unknown>
  /** The name of this worker. */
  readonly name: string
  /** Why this worker starts: with the server, as the first worker of a reload or after a pause, or besides others of its generation. */
  readonly start: WorkerStart
  /** Plugins that ended or blocked workers of this generation by their messages. Do not start them. */
  readonly excluded: readonly ExcludedPlugin[]
  /** Reports that this worker serves. `report` is plain data. */
  ready(report: unknown): Promise<void>
  /** Reports why it cannot start; the worker should then exit. Takes the error of `startHost`. */
  failed(error: unknown): Promise<void>
  /**
   * Listens at an address through the supervisor, which sends one connection after the other. Pass them to an `http.Server`
   * with `server.emit('connection', socket)`. Workers with the same address share its port. Resolves to the port. Throws system
   * errors such as EADDRINUSE.
   */
  listen(address: SocketAddressOptions, take: TakeConnection): Promise<number>
  /** Keeps a value in the memory of the supervisor, for later workers of this generation. */
  keep(name: string, value: unknown): Promise<void>
  kept(name: string): Promise<unknown>
  /** Calls `leaving` when the server will stop soon: it should report this, and work as before. */
  onLeave(leaving: () => void): void
  /**
   * Calls `drain` when the supervisor requests it or is gone. It should end all work (close the host). No further connections
   * arrive. The worker exits when nothing else is open. It is called again when the request changes: a worker that drains for a
   * reload learns that the server stops.
   */
  onDrain(drain: (request: DrainRequest) => unknown): void
}

/** Connects to the supervisor, for the entry of a forked process. */
export function workerLink(): WorkerLink {
  if (!process.connected) throw noSupervisor()
  const drained = Promise.withResolvers<DrainRequest>()
  const left = Promise.withResolvers<void>()
  let hurry: ((request: DrainRequest) => unknown) | undefined
  const channel = openChannel(ipcTransport(process), { name: 'supervisor', self: 'worker' })
  const drain = (request: DrainRequest) => {
    drained.resolve(request)
    hurry?.(request)
  }
  channel.offer('worker', WorkerControl, {
    leave: async () => left.resolve(),
    drain: async request => drain(request),
    beat: async () => {},
  })
  channel.signal.addEventListener('abort', () => drain({ successor: false }), { once: true })
  const supervisor = channel.reach('supervision', Supervision)
  const ctx = systemContext(channel.signal)
  const leave = () => {
    if (process.connected) process.disconnect()
  }
  const takers = receiveConnections()
  const isSuccessor = process.env[SUCCESSOR] !== undefined
  const { [START]: start = 'server', [TRACE]: trace, [EXCLUDED]: excluded = '[]', [NAME]: name = '' } = process.env
  if (trace !== undefined) traceHandling(trace)
  // Children of this worker are not workers.
  for (const name of [SUCCESSOR, START, TRACE, EXCLUDED, NAME]) delete process.env[name]
  return {
    excluded: JSON.parse(excluded) as ExcludedPlugin[],
    channel,
    name,
    start: startOf(start),
    inherited: isSuccessor ? supervisor.inherited(ctx) : Promise.resolve(undefined),
    peers: createPeerLink(channel),
    ready: report => supervisor.ready(report, ctx),
    failed: error => supervisor.failed(problemsToWire(error), ctx),
    async listen(address, take) {
      const { id, port } = await supervisor.listen(address, ctx)
      takers.set(id, take)
      return port
    },
    keep: (name, value) => supervisor.keep(name, value, ctx),
    kept: name => supervisor.kept(name, ctx),
    onLeave: leaving => void left.promise.then(leaving),
    onDrain: begin =>
      void drained.promise
        .then(request => {
          hurry = begin
          return begin(request)
        })
        .finally(leave),
  }
}
