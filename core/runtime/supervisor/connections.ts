import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'

/** An address of this machine. Port 0 means any free port. */
export interface SocketAddressOptions {
  readonly host: string
  readonly port: number
}

/** A port that is open for a worker. */
export interface OpenPort {
  /** Identifies the port in messages between supervisor and worker. */
  readonly id: number
  readonly port: number
}

/** The message with which a connection is sent to a worker. */
interface Handover {
  readonly connection: number
  readonly port: number
}

/** The message of a worker that has received a connection. */
interface Taken {
  readonly taken: number
}

/** Asks a worker about a connection that it has not confirmed. The answer comes after a possible `taken`. */
interface Asked {
  readonly asked: number
}
interface Missed {
  readonly missed: number
}

/** Maximum number of waiting connections of one port. Each occupies a descriptor of the supervisor. */
const MAX_WAITING = 4_096
const WAIT_MS = 30_000
/** Minimum time between two reports of closed connections. */
const REPORT_MS = 1_000
/** Delay before a worker that could not be sent a connection is tried again. */
const RETRY_MS = 100
/** Delay before a worker is asked about an unconfirmed connection. */
const ASK_MS = 1_000

/** Limits of connections that no worker can take at the moment. */
export interface WaitLimits {
  /** Maximum number of waiting connections per port. Default 4,096. */
  readonly maxWaiting?: number
  /** Milliseconds that a connection waits. Default 30,000. */
  readonly waitMs?: number
}

interface ConnectionsOptions extends WaitLimits {
  /** Called at most once a second with the number of connections that were closed because no worker took them. */
  onClosed(count: number): void
}

/**
 * The listening sockets of a server. The supervisor owns them and sends each connection to one of the workers, as the
 * documentation of child_process shows (`pauseOnConnect`, `send` with a socket). Each worker gets the next connection when it
 * has confirmed the previous one, so a busy worker holds at most one.
 * - A connection that no worker can take waits, limited in number and time. So a crash refuses no connection, even with one
 *   worker.
 * - A connection that a worker did not confirm before it died is closed: part of its request can be lost with that worker.
 * Measured with two workers and `Connection: close`, 6,000 requests from 64 clients: node:cluster (SCHED_RR) and this cost the
 * same, 0.05 to 0.08 ms of CPU in the supervisor per connection and none per request. Workers that share the handle
 * (`send('server', server)`) cost it nothing and half in themselves, but divide 64 simultaneous connections 1 to 63 and 2,000
 * successive ones 438 to 1,562. In addition, a `net.Server` of the supervisor that keeps the handle open accepts as well.
 */
export class Connections {
  readonly #options: ConnectionsOptions
  readonly #ports = new Set<Port>()
  /** The port that the system assigned for port 0. It is reused after a pause. */
  readonly #given = new Map<string, number>()
  #closed = 0
  #reporting: NodeJS.Timeout | undefined

  constructor(options: ConnectionsOptions) {
    this.#options = options
  }

  /** Listens for a worker, or adds it to the workers of this address. Throws errors of `net.Server`, such as EADDRINUSE. */
  async listen(worker: ChildProcess, { host, port: asked }: SocketAddressOptions): Promise<OpenPort> {
    const address = { host, port: asked === 0 ? (this.#given.get(host) ?? 0) : asked }
    const port = [...this.#ports].find(item => !item.isClosed && item.isAt(address)) ?? this.#open(address)
    port.users.add(worker)
    try {
      const bound = await port.listening
      if (asked === 0) this.#given.set(host, bound)
      return { id: port.id, port: bound }
    } catch (error) {
      this.#ports.delete(port)
      throw error
    }
  }

  /** Starts to send connections to the worker. Its ports then stay open without it. */
  serve(worker: ChildProcess): void {
    for (const port of this.#ports) if (port.users.has(worker)) port.serve(worker)
  }

  /** Stops sending connections to the worker. */
  leave(worker: ChildProcess): void {
    for (const port of this.#ports) port.leave(worker)
  }

  /**
   * Cleans up after a dead process: closes its unconfirmed connections, and ports at which only this worker listened and never
   * served.
   */
  forget(worker: ChildProcess): void {
    for (const port of this.#ports) {
      port.forget(worker)
      if (port.users.size === 0 && !port.isKept) port.close()
      if (port.users.size === 0 && port.isClosed) this.#ports.delete(port)
    }
  }

  /** Closes the ports at which this worker does not listen. */
  keep(worker: ChildProcess): void {
    for (const port of this.#ports) if (!port.users.has(worker)) port.close()
  }

  /** Closes waiting connections, because they can occupy the descriptors that a fork needs. */
  shed(): void {
    for (const port of this.#ports) port.shed()
  }

  /** Closes all ports and waiting connections. Connections are refused until a worker listens again. */
  close(): void {
    for (const port of this.#ports) port.close()
    clearTimeout(this.#reporting)
    this.#reporting = undefined
  }

  #open(address: SocketAddressOptions): Port {
    const { maxWaiting = MAX_WAITING, waitMs = WAIT_MS } = this.#options
    const port = new Port(address, { maxWaiting, waitMs, onClosed: count => this.#report(count) })
    this.#ports.add(port)
    return port
  }

  #report(count: number) {
    this.#closed += count
    this.#reporting ??= setTimeout(() => {
      this.#options.onClosed(this.#closed)
      this.#closed = 0
      this.#reporting = undefined
    }, REPORT_MS)
  }
}

interface Waiting {
  readonly socket: Socket
  /** `performance.now()` at which it is closed. */
  readonly until: number
}

let ports = 0
let connections = 0

/** One listening socket, with waiting connections, free workers, and unconfirmed connections. */
class Port {
  readonly id = ++ports
  readonly listening: Promise<number>
  /** Workers that listen here, serving or not. */
  readonly users = new Set<ChildProcess>()
  /** A worker has served here, so the port stays open until the next generation listens elsewhere. */
  isKept = false
  isClosed = false
  readonly #address: SocketAddressOptions
  readonly #limits: Required<WaitLimits> & ConnectionsOptions
  readonly #server: Server
  readonly #serving = new Set<ChildProcess>()
  /** In the order in which they get connections. */
  readonly #free = new Set<ChildProcess>()
  readonly #sent = new Map<number, { readonly worker: ChildProcess; readonly waiting: Waiting; readonly late: NodeJS.Timeout }>()
  #waiting: Waiting[] = []
  #timer: NodeJS.Timeout | undefined
  #bound: number | undefined

  constructor(address: SocketAddressOptions, limits: Required<WaitLimits> & ConnectionsOptions) {
    this.#address = address
    this.#limits = limits
    // http.Server sets noDelay only for connections that it accepts itself.
    this.#server = createServer({ pauseOnConnect: true, noDelay: true }, socket => this.#accept(socket))
    this.listening = once(this.#server.listen({ ...address }), 'listening').then(() => {
      this.#bound = (this.#server.address() as AddressInfo).port
      return this.#bound
    })
  }

  isAt({ host, port }: SocketAddressOptions): boolean {
    return host === this.#address.host && (port === this.#address.port || port === this.#bound)
  }

  serve(worker: ChildProcess): void {
    if (this.#serving.has(worker)) return
    this.isKept = true
    this.#serving.add(worker)
    this.#free.add(worker)
    worker.on('message', (message: unknown) => {
      if (isTaken(message)) this.#taken(message.taken, worker)
      else if (isMissed(message)) this.#missed(message.missed, worker)
    })
    this.#dispatch()
  }

  leave(worker: ChildProcess): void {
    this.#serving.delete(worker)
    this.#free.delete(worker)
  }

  forget(worker: ChildProcess): void {
    this.leave(worker)
    this.users.delete(worker)
    for (const [id, sent] of this.#sent) {
      if (sent.worker !== worker) continue
      this.#unsent(id)
      sent.waiting.socket.destroy()
    }
  }

  close(): void {
    if (this.isClosed) return
    this.isClosed = true
    this.#server.close()
    clearTimeout(this.#timer)
    for (const { socket } of this.#waiting) socket.destroy()
    this.#waiting = []
  }

  shed(): void {
    if (this.#waiting.length > 0) this.#refuse(this.#waiting.map(({ socket }) => socket))
    this.#waiting = []
  }

  #accept(socket: Socket) {
    socket.on('error', () => {}) // its client is gone, which the worker that takes it will see
    if (this.#waiting.length >= this.#limits.maxWaiting) return this.#refuse([socket])
    this.#waiting.push({ socket, until: performance.now() + this.#limits.waitMs })
    this.#dispatch()
  }

  #dispatch() {
    for (const worker of this.#free) {
      const waiting = this.#waiting.shift()
      if (!waiting) break
      this.#free.delete(worker)
      this.#send(worker, waiting)
    }
    if (this.#waiting.length > 0) this.#timer ??= setTimeout(() => this.#expire(), this.#limits.waitMs)
  }

  #send(worker: ChildProcess, waiting: Waiting) {
    const id = ++connections
    const late = setTimeout(() => this.#ask(id, worker), ASK_MS)
    this.#sent.set(id, { worker, waiting, late })
    const message: Handover = { connection: id, port: this.id }
    // Kept open here, so that a connection that could not be sent goes to another worker.
    worker.send(message, waiting.socket, { keepOpen: true }, error => {
      if (!error || !this.#unsent(id)) return
      if (this.isClosed) return void waiting.socket.destroy()
      this.#waiting.unshift(waiting)
      this.#dispatch()
      // Most likely the worker has died, and its exit is reported next.
      if (worker.connected) setTimeout(() => this.#release(worker), RETRY_MS)
    })
  }

  #taken(id: number, worker: ChildProcess) {
    const waiting = this.#unsent(id)
    if (!waiting) return
    // Closes the supervisor's copy only.
    waiting.socket.destroy()
    this.#release(worker)
  }

  /** Without a free descriptor, a process gets a message without a socket: Node then drops both without an error. */
  #ask(id: number, worker: ChildProcess) {
    const asked: Asked = { asked: id }
    if (worker.connected) worker.send(asked, undefined, undefined, () => {})
  }

  #missed(id: number, worker: ChildProcess) {
    const waiting = this.#unsent(id)
    if (!waiting) return
    if (this.isClosed) waiting.socket.destroy()
    else if (waiting.until <= performance.now()) this.#refuse([waiting.socket])
    else this.#waiting.unshift(waiting)
    this.#dispatch()
    setTimeout(() => this.#release(worker), RETRY_MS)
  }

  #unsent(id: number): Waiting | undefined {
    const sent = this.#sent.get(id)
    clearTimeout(sent?.late)
    this.#sent.delete(id)
    return sent?.waiting
  }

  #release(worker: ChildProcess) {
    if (!this.#serving.has(worker)) return
    this.#free.add(worker)
    this.#dispatch()
  }

  #expire() {
    this.#timer = undefined
    const now = performance.now()
    const late = this.#waiting.filter(({ until }) => until <= now)
    this.#waiting = this.#waiting.slice(late.length)
    if (late.length > 0) this.#refuse(late.map(({ socket }) => socket))
    const [next] = this.#waiting
    if (next) this.#timer = setTimeout(() => this.#expire(), next.until - now)
  }

  #refuse(sockets: readonly Socket[]) {
    for (const socket of sockets) socket.destroy()
    this.#limits.onClosed(sockets.length)
  }
}

/** Handles the connections of one port in a worker. */
export type TakeConnection = (socket: Socket) => void

/** The worker's side: takes each connection that the supervisor sends and confirms it. */
export function receiveConnections(): Map<number, TakeConnection> {
  const takers = new Map<number, TakeConnection>()
  const reply = (word: Taken | Missed) => void (process.connected && process.send!(word, undefined, undefined, () => {}))
  process.on('message', (message: unknown, socket: Socket | undefined) => {
    if (isAsked(message)) return reply({ missed: message.asked })
    if (!isHandover(message)) return
    reply({ taken: message.connection })
    const take = takers.get(message.port)
    if (!socket || !take) return void socket?.destroy()
    take(socket)
  })
  return takers
}

const isHandover = (message: unknown): message is Handover => typeof Object(message).connection === 'number'
const isTaken = (message: unknown): message is Taken => typeof Object(message).taken === 'number'
const isAsked = (message: unknown): message is Asked => typeof Object(message).asked === 'number'
const isMissed = (message: unknown): message is Missed => typeof Object(message).missed === 'number'
