import { type CallContext, codeOf } from '@svc/core'
import type { Json, Peers } from '@svc/core/contracts'

/** The topic of the questions to the owner of a server. */
export const TOPIC = 'mcp-client'
export const PING = { do: 'ping' } as const

/** The other workers of this server, as candidates for the ownership of a connection. */
export class PeerWorkers {
  readonly #peers: Peers
  readonly #exited = new Set<string>()

  constructor(peers: Peers) {
    this.#peers = peers
  }

  /** Whether a worker is known to have ended. */
  hasExited(worker: string): boolean {
    return this.#exited.has(worker)
  }

  markExited(worker: string): void {
    this.#exited.add(worker)
  }

  /** Pings a worker, and marks it if it has ended. */
  async ping(worker: string, ctx: CallContext): Promise<void> {
    if (this.#exited.has(worker)) return
    for await (const _ of this.ask(worker, PING, ctx)) return
  }

  async *ask(worker: string, message: Json, ctx: CallContext): AsyncIterable<Json> {
    try {
      yield* this.#peers.ask(worker, TOPIC, message, ctx)
    } catch (error) {
      if (codeOf(error) === 'PEER_GONE') this.#exited.add(worker)
      throw error
    }
  }
}

/** Whether a failed question has reached no owner: a worker that ends answers no topic. */
export const reachedNoOwner = (error: unknown): boolean =>
  ['MCP_MOVED', 'PEER_SILENT'].includes(codeOf(error) ?? '') ||
  (codeOf(error) === 'PEER_GONE' && (error as { details?: Record<string, unknown> }).details?.['reached'] === false)
