import type { CallContext, Log, SlotChange, SlotView } from '@svc/core'
import type { McpClients, Mount, PeerAnswer, Peers, Prompt, Resource, Tool } from '@svc/core/contracts'
import type { ToolCaller } from './call.ts'
import { type Catalogue, createCatalogue, createFindForbidden, type ModeGate, type ToolSet } from './catalogue.ts'
import { createEndpoint, createMcpMount, createOpenStreams, type Endpoint } from './http-endpoint.ts'
import { createModern } from './modern.ts'
import { type ChangePublisher, createChanges, createFindWithheld, type Published, type PublishedServer } from './published.ts'
import {
  createPeerAnswer,
  createSessions,
  createWorkers,
  type SessionLimits,
  type Sessions,
  type WorkerSessions,
} from './sessions.ts'

interface McpOptions {
  readonly info: PublishedServer
  /** The set of all published tools, which also has resources and prompts, followed by the configured sets. */
  readonly sets: readonly [ToolSet, ...ToolSet[]]
  readonly tools: SlotView<Tool>
  readonly gate: ModeGate
  readonly resources: SlotView<Resource>
  readonly prompts: SlotView<Prompt>
  readonly peers: Peers | undefined
  /** The connected servers. Absent without the MCP client. */
  readonly clients: McpClients | undefined
  readonly calls: ToolCaller
  readonly limits: SessionLimits
  /** Call context of work that outlives its request. */
  readonly own: CallContext
  readonly log: Log
}

/** The MCP server at all its paths. */
export interface Mcp {
  readonly mounts: readonly Mount[]
  /** All published tools. */
  readonly catalogue: () => Catalogue
  /** Everything that a stdio client finds. */
  readonly published: Published
  /** Answers requests that other workers forward. */
  readonly peerAnswer: PeerAnswer
  // reports changes of the slots and the mode
  modeChanged(): void
  toolsChanged(change: SlotChange): void
  resourcesChanged(): void
  promptsChanged(): void
  /** Closes streams without an end, so that clients reconnect to the next worker. */
  drain(): void
  close(): Promise<void>
}

/** Maximum number of open subscriptions per worker and path. */
const SUBSCRIPTIONS = 1_024

interface ServedSet {
  readonly set: ToolSet
  readonly published: Published
  readonly sessions: Sessions
  readonly endpoint: Endpoint
}

export function createMcp(options: McpOptions): Mcp {
  const { sets, peers, info } = options
  const workers = createWorkers(peers)
  const streams = createOpenStreams(info)
  const allSessions: WorkerSessions = new Map()
  const serve = (set: ToolSet, published: Published): ServedSet => {
    const { limits, own } = options
    const sessions = createSessions({
      path: set.path,
      all: allSessions,
      published,
      limits,
      newId: ctx => workers.newSessionId(ctx),
      own,
    })
    const modern = createModern(published, SUBSCRIPTIONS)
    return { set, published, sessions, endpoint: createEndpoint({ path: set.path, modern, sessions, workers }) }
  }
  const served = sets.map((set, at) => serve(set, publishedBy(options, set, at === 0)))
  const all = served[0]!.published
  const publish = (kind: Parameters<ChangePublisher['publish']>[0] & { kind: `${string}_list_changed` }) => {
    for (const { published } of served) published.changes.publish(kind)
  }
  return {
    mounts: served.map(({ set, endpoint }) => createMcpMount(set.path, endpoint, streams)),
    catalogue: all.catalogue,
    published: all,
    peerAnswer: createPeerAnswer((forwarded, ctx) =>
      served.find(({ set }) => set.path === forwarded.path)?.endpoint.answerHere(forwarded.message, ctx)
    ),
    modeChanged: () => publish({ kind: 'tools_list_changed' }),
    toolsChanged({ added, removed }) {
      for (const { set, published } of served)
        if ([...added, ...removed].some(set.isPublished)) published.changes.publish({ kind: 'tools_list_changed' })
    },
    resourcesChanged: () => publish({ kind: 'resources_list_changed' }),
    promptsChanged: () => publish({ kind: 'prompts_list_changed' }),
    drain() {
      streams.end()
      for (const { sessions } of served) sessions.drain()
    },
    async close() {
      streams.end()
      await Promise.all(served.map(({ sessions }) => sessions.close()))
    },
  }
}

function publishedBy(
  { info, tools, gate, clients, calls, own, log, ...slots }: McpOptions,
  set: ToolSet,
  isAll: boolean
): Published {
  const resources = isAll ? slots.resources : undefined
  return {
    info,
    catalogue: createCatalogue({ tools, gate }, set, log),
    withheld: createFindWithheld(clients, set),
    forbidden: createFindForbidden({ tools, gate }, set),
    calls,
    resources,
    prompts: isAll ? slots.prompts : undefined,
    changes: createChanges(resources, own, log),
    log,
  }
}
