import { codeOf, type Use } from '@svc/core'
import type { Json, Peers } from '@svc/core/contracts'

/** The topic under which workers ask each other for what only one of them owns. */
export const TOPIC = 'mcp-client'

/** The workers of this server, as far as owning a connection goes. */
export interface Crew {
  /** Whether a worker has surely ended. */
  isGone(worker: string): boolean
  noteGone(worker: string): void
  /** Asks it, if it may still live. */
  look(worker: string, use: Use): Promise<void>
  ask(worker: string, message: Json, use: Use): AsyncIterable<Json>
}

export const PING = { do: 'ping' } as const

export function createCrew(peers: Peers): Crew {
  const gone = new Set<string>()
  const crew: Crew = {
    isGone: worker => gone.has(worker),
    noteGone: worker => void gone.add(worker),
    async look(worker, use) {
      if (gone.has(worker)) return
      for await (const _ of crew.ask(worker, PING, use)) return
    },
    async *ask(worker, message, use) {
      try {
        yield* peers.ask(worker, TOPIC, message, use)
      } catch (error) {
        if (codeOf(error) === 'PEER_GONE') gone.add(worker)
        throw error
      }
    },
  }
  return crew
}

/** Whether a question that failed so has surely reached no owner: a worker that is just ending answers to no topic. */
export const reachedNobody = (error: unknown): boolean =>
  ['MCP_MOVED', 'PEER_SILENT'].includes(codeOf(error) ?? '') ||
  (codeOf(error) === 'PEER_GONE' && detailsOf(error)['reached'] === false)

const detailsOf = (error: unknown) => (error as { details?: Record<string, unknown> }).details ?? {}
