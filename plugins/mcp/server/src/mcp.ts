import type { Log, SlotChange, SlotView, CallContext } from '@svc/core'
import type { McpClients, Mount, PeerAnswer, Peers, Prompt, Resource, Tool } from '@svc/core/contracts'
import type { Calls } from './call.ts'
import { type Catalogue, createCatalogue } from './catalogue.ts'
import { type Changes, createChanges } from './changes.ts'
import { createEndpoint, type Endpoint } from './endpoint.ts'
import { createMcpMount } from './mcp-mount.ts'
import { createModern } from './modern.ts'
import type { Published, ServerInfo } from './published.ts'
import { createSessions, type SessionLimits, type SessionRoom, type Sessions } from './sessions.ts'
import { createStreams } from './streams.ts'
import type { ToolSet } from './tool-sets.ts'
import { createWithheld } from './withheld.ts'
import { createPeerAnswer, createWorkers } from './workers.ts'

export interface McpParts {
  readonly info: ServerInfo
  /** All that is published, then its sets; the first has resources and prompts as well. */
  readonly sets: readonly [ToolSet, ...ToolSet[]]
  readonly tools: SlotView<Tool>
  readonly resources: SlotView<Resource>
  readonly prompts: SlotView<Prompt>
  readonly peers: Peers | undefined
  /** The connected servers, where there is who connects them. */
  readonly clients: McpClients | undefined
  readonly calls: Calls
  readonly limits: SessionLimits
  /** The circumstances of work that no request ends. */
  readonly own: CallContext
  readonly log: Log
}

/** The protocol, at all its addresses. */
export interface Mcp {
  readonly mounts: readonly Mount[]
  /** All that is published. */
  readonly catalogue: () => Catalogue
  /** What one client with a line of its own (stdio) finds. */
  readonly published: Published
  /** For the workers' slot, under `TOPIC`. */
  readonly peerAnswer: PeerAnswer
  /** For taps of the slots' changes. */
  toolsChanged(change: SlotChange): void
  resourcesChanged(): void
  promptsChanged(): void
  /** Another worker serves from now on: streams without an end close, and say when to come back. */
  leave(): void
  close(): Promise<void>
}

/** Subscriptions that a worker has open at one address. */
const SUBSCRIPTIONS = 1_024

interface Address {
  readonly set: ToolSet
  readonly published: Published
  readonly sessions: Sessions
  readonly endpoint: Endpoint
}

export function createMcp(parts: McpParts): Mcp {
  const { sets, peers, info } = parts
  const workers = createWorkers(peers)
  const streams = createStreams(info)
  const room: SessionRoom = new Map()
  const addressOf = (set: ToolSet, published: Published): Address => {
    const { limits, own } = parts
    const sessions = createSessions({ path: set.path, room, published, limits, name: ctx => workers.name(ctx), own })
    const modern = createModern(published, SUBSCRIPTIONS)
    return { set, published, sessions, endpoint: createEndpoint({ path: set.path, modern, sessions, workers }) }
  }
  const addresses = sets.map((set, at) => addressOf(set, publishedBy(parts, set, at === 0)))
  const all = addresses[0]!.published
  const tell = (kind: Parameters<Changes['publish']>[0] & { kind: `${string}_list_changed` }) => {
    for (const { published } of addresses) published.changes.publish(kind)
  }
  return {
    mounts: addresses.map(({ set, endpoint }) => createMcpMount(set.path, endpoint, streams)),
    catalogue: all.catalogue,
    published: all,
    peerAnswer: createPeerAnswer((forwarded, ctx) =>
      addresses.find(({ set }) => set.path === forwarded.path)?.endpoint.answerHere(forwarded.message, ctx)
    ),
    toolsChanged({ added, removed }) {
      for (const { set, published } of addresses)
        if ([...added, ...removed].some(set.isPublished)) published.changes.publish({ kind: 'tools_list_changed' })
    },
    resourcesChanged: () => tell({ kind: 'resources_list_changed' }),
    promptsChanged: () => tell({ kind: 'prompts_list_changed' }),
    leave() {
      streams.end()
      for (const { sessions } of addresses) sessions.retire()
    },
    async close() {
      streams.end()
      await Promise.all(addresses.map(({ sessions }) => sessions.close()))
    },
  }
}

function publishedBy({ info, tools, clients, calls, own, log, ...parts }: McpParts, set: ToolSet, isAll: boolean): Published {
  const resources = isAll ? parts.resources : undefined
  return {
    info,
    catalogue: createCatalogue(tools, set, log),
    withheld: createWithheld(clients, set),
    calls,
    resources,
    prompts: isAll ? parts.prompts : undefined,
    changes: createChanges(resources, own, log),
    log,
  }
}
