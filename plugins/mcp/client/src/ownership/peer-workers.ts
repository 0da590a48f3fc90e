import { type CallContext, codeOf } from '@svc/core'
import type { Json, Peers } from '@svc/core/contracts'

/** The topic of the questions to the owner of a server. */
export const TOPIC = 'mcp-client'
export const PING = { do: 'ping' } as const

/** The other workers of this server, as candidates for the ownership of a connection. */
export interface PeerWorkers {
  /** The workers that are known to have ended. */
  readonly exited: Set<string>
  ask(worker: string, message: Json, ctx: CallContext): AsyncIterable<Json>
  /** Pings a worker, and marks it if it has ended. */
  ping(worker: string, ctx: CallContext): Promise<void>
}

export function createPeerWorkers(peers: Peers): PeerWorkers {
  const exited = new Set<string>()
  async function* ask(worker: string, message: Json, ctx: CallContext): AsyncIterable<Json> {
    try {
      yield* peers.ask(worker, TOPIC, message, ctx)
    } catch (error) {
      if (codeOf(error) === 'PEER_GONE') exited.add(worker)
      throw error
    }
  }
  return {
    exited,
    ask,
    async ping(worker, ctx) {
      if (!exited.has(worker)) for await (const _ of ask(worker, PING, ctx)) return
    },
  }
}

/** Whether a failed question has reached no owner: a worker that ends answers no topic. */
export const reachedNoOwner = (error: unknown): boolean =>
  ['MCP_MOVED', 'PEER_SILENT'].includes(codeOf(error) ?? '') ||
  (codeOf(error) === 'PEER_GONE' && (error as { details?: Record<string, unknown> }).details?.['reached'] === false)
