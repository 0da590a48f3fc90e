import { EventEmitter, once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { createFraming } from './postgres-messages.ts'
import { type CutRule, type Direction, Lane, type LaneRules } from './tcp-lane.ts'

export interface TcpProxyOptions {
  /**
   * Splits the bytes into messages of this protocol, so that `cutAt` sees each one alone. Without it, a message is what arrives at
   * once. Bytes behind TLS are never split.
   */
  readonly protocol?: 'postgres'
}

/** Where the proxy forwards connections to: an engine, or any server of this machine. */
export interface ProxyTarget {
  readonly port: number
  readonly url?: string
}

/** A proxy that breaks connections as a network does. */
export interface TcpProxy extends AsyncDisposable {
  /** On 127.0.0.1. */
  readonly port: number
  /** The `url` of the target with the port of the proxy; empty for a target without one. */
  readonly url: string
  /** The number of open connections of clients. */
  readonly connections: number
  /** The number of connections that rules of `cutAt` have cut. */
  readonly cuts: number
  /** Delivers all bytes of a direction (both unless set) this many milliseconds later. */
  delay(ms: number, direction?: Direction): void
  /**
   * Delivers nothing in a direction (both unless set), as a network that loses all packets: connections stay open and silent, the
   * end of a connection does not arrive either. `heal` delivers what was sent meanwhile, as TCP does.
   */
  drop(direction?: Direction): void
  /**
   * Makes the open connections half open, as a firewall that forgets them: they stay open and silent until the proxy ends. New ones
   * work.
   */
  freeze(): void
  /** Resets the open connections. New ones work. */
  cut(): void
  /** Resets the open connections, and new ones until `heal`. */
  refuse(): void
  /** Cuts a connection at a chosen message. */
  cutAt(rule: CutRule): void
  /** Ends delays, drops, refusal and the rules of `cutAt`. */
  heal(): void
}

const DIRECTIONS = ['to-client', 'to-server'] as const

/** Starts a proxy on a free port in front of a server. */
export async function startTcpProxy(target: ProxyTarget, options: TcpProxyOptions = {}): Promise<TcpProxy> {
  const proxy = new ProxyServer(target, options)
  await proxy.listen()
  return proxy
}

class ProxyServer implements TcpProxy {
  cuts = 0
  readonly #target: ProxyTarget
  readonly #options: TcpProxyOptions
  readonly #server: Server
  readonly #open = new Set<AbortController>()
  readonly #rules: Record<Direction, LaneRules> = { 'to-client': openLane(), 'to-server': openLane() }
  #refuses = false

  constructor(target: ProxyTarget, options: TcpProxyOptions) {
    this.#target = target
    this.#options = options
    const accept = (client: Socket) => void this.#accept(client)
    this.#server = createServer({ allowHalfOpen: true, noDelay: true, pauseOnConnect: true }, accept)
  }

  async listen(): Promise<void> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  get url(): string {
    const { port, url = '' } = this.#target
    return url.replace(`:${port}`, `:${this.port}`)
  }

  get connections(): number {
    return this.#open.size
  }

  delay(ms: number, direction?: Direction): void {
    this.#change(direction, { delayMs: ms })
  }

  drop(direction?: Direction): void {
    this.#change(direction, { drops: true })
  }

  freeze(): void {
    this.drop()
    // new connections have rules of their own
    for (const direction of DIRECTIONS) this.#rules[direction] = openLane()
  }

  cut(): void {
    for (const connection of this.#open) connection.abort()
  }

  refuse(): void {
    this.#refuses = true
    this.cut()
  }

  cutAt(rule: CutRule): void {
    let left = rule.times ?? 1
    const cuts = this.#rules[rule.direction].cuts
    const entry = {
      deliver: rule.deliver ?? false,
      matches: (message: Buffer) => {
        if (!rule.matches(message)) return false
        this.cuts++
        if (--left === 0) cuts.delete(entry)
        return true
      },
    }
    cuts.add(entry)
  }

  heal(): void {
    this.#refuses = false
    for (const direction of DIRECTIONS) this.#rules[direction].cuts.clear()
    this.#change(undefined, { delayMs: 0, drops: false })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.refuse()
    const closed = once(this.#server, 'close')
    this.#server.close()
    await closed
  }

  #change(direction: Direction | undefined, change: Partial<LaneRules>): void {
    for (const one of direction === undefined ? DIRECTIONS : [direction]) {
      Object.assign(this.#rules[one], change)
      this.#rules[one].changed.emit('change')
    }
  }

  /** A connection that is cut while it waits for the network or for the server ends without an error. */
  async #accept(client: Socket): Promise<void> {
    client.on('error', () => {})
    if (this.#refuses) return void client.resetAndDestroy()
    const abort = new AbortController()
    const rules = { ...this.#rules } // `freeze` replaces them
    this.#open.add(abort)
    abort.signal.addEventListener('abort', () => endNow(client), { once: true })
    try {
      while (rules['to-server'].drops) await once(rules['to-server'].changed, 'change', { signal: abort.signal })
      await this.#forward(client, rules, abort)
    } catch {
      abort.abort()
    } finally {
      this.#open.delete(abort)
    }
  }

  async #forward(client: Socket, rules: Record<Direction, LaneRules>, abort: AbortController): Promise<void> {
    const { signal } = abort
    const server = connect({ port: this.#target.port, host: '127.0.0.1', allowHalfOpen: true, noDelay: true })
    server.on('error', () => {})
    signal.addEventListener('abort', () => endNow(server), { once: true })
    const framing = (direction: Direction) =>
      this.#options.protocol === 'postgres' ? createFraming(direction) : (bytes: Buffer) => [bytes]
    const lane = (direction: Direction, source: Socket, sink: Socket) =>
      new Lane({ source, sink, rules: rules[direction], abort, framing: framing(direction) }).run()
    await once(server, 'connect', { signal })
    await Promise.all([lane('to-server', client, server), lane('to-client', server, client)])
  }
}

/** A reset could overtake bytes whose end is written. */
function endNow(socket: Socket): void {
  if (socket.writableEnded) socket.destroySoon()
  else socket.resetAndDestroy()
}

function openLane(): LaneRules {
  return { delayMs: 0, drops: false, cuts: new Set(), changed: new EventEmitter().setMaxListeners(0) }
}
