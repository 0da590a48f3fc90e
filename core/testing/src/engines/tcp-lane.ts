import { type EventEmitter, once } from 'node:events'
import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

/** Which way bytes go through a proxy. */
export type Direction = 'to-client' | 'to-server'

/** Cuts a connection at a message. */
export interface CutRule {
  readonly direction: Direction
  /** Asked once for each message; true cuts the connection. */
  readonly matches: (message: Buffer) => boolean
  /** Whether the message still arrives before the cut; no unless set. */
  readonly deliver?: boolean
  /** The number of connections to cut before the rule ends; 1 unless set. */
  readonly times?: number
}

/** Takes bytes as they arrive; returns the messages that are complete. */
export type Framing = (bytes: Buffer) => Buffer[]

/** What the network does to one direction now. */
export interface LaneRules {
  delayMs: number
  drops: boolean
  readonly cuts: Set<{ readonly deliver: boolean; readonly matches: (message: Buffer) => boolean }>
  /** Emits `change`. */
  readonly changed: EventEmitter
}

interface LaneOptions {
  readonly source: Socket
  readonly sink: Socket
  readonly rules: LaneRules
  /** Cuts the connection, both directions. */
  readonly abort: AbortController
  readonly framing: Framing
}

/** Bytes, or the end of the source. */
interface Item {
  readonly due: number
  readonly event: Buffer | 'end' | 'reset'
}

/** What a direction holds back before the source feels it, about what the kernel would hold. */
const HELD_BYTES = 256 * 1024

/** One direction of one connection. */
export class Lane {
  readonly #options: LaneOptions
  readonly #items: Item[] = []
  #held = 0
  #arrived = Promise.withResolvers<void>()

  constructor(options: LaneOptions) {
    this.#options = options
  }

  /** Forwards until the source ends. Rejects when the connection is cut. */
  async run(): Promise<void> {
    const { source, sink, abort, framing } = this.#options
    abort.signal.addEventListener('abort', () => this.#arrived.resolve(), { once: true })
    source.on('data', bytes => this.#arrive(bytes))
    source.once('end', () => this.#arrive('end'))
    source.once('close', () => source.readableEnded || this.#arrive('reset'))
    source.resume()
    for (;;) {
      const event = await this.#next()
      if (event === 'end') return void sink.end()
      if (event === 'reset') return abort.abort()
      for (const message of framing(event)) await this.#deliver(message)
    }
  }

  #arrive(event: Buffer | 'end' | 'reset'): void {
    const { source, rules } = this.#options
    this.#items.push({ due: performance.now() + rules.delayMs, event })
    if (typeof event !== 'string') this.#held += event.length
    if (this.#held > HELD_BYTES) source.pause()
    this.#arrived.resolve()
  }

  /** The next item, when the network lets it through. */
  async #next(): Promise<Buffer | 'end' | 'reset'> {
    const { source, rules, abort } = this.#options
    const { signal } = abort
    while (this.#items.length === 0) {
      signal.throwIfAborted()
      await this.#arrived.promise
      this.#arrived = Promise.withResolvers()
    }
    signal.throwIfAborted()
    const { due, event } = this.#items[0]!
    const wait = due - performance.now()
    if (wait > 0) await sleep(wait, undefined, { signal })
    while (rules.drops) await once(rules.changed, 'change', { signal })
    this.#items.shift()
    if (typeof event !== 'string') this.#held -= event.length
    if (this.#held <= HELD_BYTES && source.isPaused()) source.resume()
    return event
  }

  async #deliver(message: Buffer): Promise<void> {
    const { sink, rules, abort } = this.#options
    const cut = [...rules.cuts].find(rule => rule.matches(message))
    if (cut === undefined || cut.deliver) await written(sink, message, abort.signal)
    if (cut === undefined) return
    if (cut.deliver) sink.end()
    abort.abort()
    abort.signal.throwIfAborted()
  }
}

/** Resolves when the kernel has the bytes; that holds the source back when the sink does not read. */
function written(sink: Socket, bytes: Buffer, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const aborted = () => reject(signal.reason as Error)
    signal.addEventListener('abort', aborted, { once: true })
    sink.write(bytes, error => {
      signal.removeEventListener('abort', aborted)
      if (error) reject(error)
      else resolve()
    })
  })
}
