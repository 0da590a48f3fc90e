import { type CallContext, codeOf, type Events, type Log, type StartSpan } from '@svc/core'
import type { Json, Peers, ProcessSandbox, Store } from '@svc/core/contracts'
import type { McpServerSettings } from '../registry/configured-servers.ts'
import type { ServerRegistry } from '../registry/server-registry.ts'
import type { McpServerMetrics } from '../registry/server-status.ts'

/** What the connections to MCP servers share in one worker. */
export interface McpContext {
  readonly servers: readonly McpServerSettings[]
  readonly store: Store
  readonly events: Events
  readonly sandbox: ProcessSandbox | undefined
  readonly serverId: string
  /** Whether this host serves: then servers are connected before the first call. */
  readonly isEager: boolean
  /** Milliseconds after which the tools of a remote server are listed again; 0 for never. */
  readonly recheckMs: number
  readonly env: Readonly<Record<string, string | undefined>>
  readonly log: Log
  readonly span: StartSpan
  /** The context of work without a request. */
  readonly lasting: CallContext
  /** The other workers, `undefined` if this process is alone: then it owns all servers. */
  readonly workers: PeerWorkers | undefined
  /** The name of this worker, and the prefix of its leases. */
  readonly self: string
  readonly holder: string
  readonly registry: ServerRegistry
  readonly metrics: McpServerMetrics
}

/** The topic of the questions between workers. */
export const TOPIC = 'mcp-client'
export const PING = { do: 'ping' } as const

type PeerWorkers = ReturnType<typeof createPeerWorkers>

/** The other workers of this server, as candidates for the ownership of a connection. */
export function createPeerWorkers(peers: Pick<Peers, 'ask'>) {
  /** The workers that are known to have ended. */
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
    /** Marks the worker if it has ended. */
    async ping(worker: string, ctx: CallContext): Promise<void> {
      if (!exited.has(worker)) for await (const _ of ask(worker, PING, ctx)) return
    },
  }
}
