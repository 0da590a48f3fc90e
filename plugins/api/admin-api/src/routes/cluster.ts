import { BOOLEAN, list, nullable, object, ok, STRING } from '@svc/api-types'
import { type CallContext, codeOf, type Host, isTree, type JsonSchema } from '@svc/core'
import type { BusMember, NodeBus, Route } from '@svc/core/contracts'

const NODE: JsonSchema = {
  ...(object({
    id: STRING,
    is_self: { ...(BOOLEAN as object), description: 'Whether a server of this node has answered.' },
    workers: list(object({ name: STRING, version: nullable('string') })),
  }) as object),
  title: 'Node',
}

interface ClusterServices {
  readonly host?: Host | undefined
  readonly bus?: NodeBus | undefined
}

/** The nodes of the cluster. */
export const createClusterRoutes = ({ host, bus }: ClusterServices): Record<string, Route> =>
  host && bus ? { nodes: nodesRoute(host, bus) } : {}

const nodesRoute = (host: Host, bus: NodeBus): Route => ({
  method: 'GET',
  path: '/api/v1/nodes',
  summary: 'List the nodes of the cluster with their workers',
  description: 'A node that is lost stays in the list for up to 15 seconds.',
  scope: 'read',
  responses: ok(
    'The nodes by name.',
    object({
      cluster: { ...(nullable('string') as object), description: 'null: this server acts alone.' },
      nodes: list(NODE),
    })
  ),
  async handle(_request, ctx) {
    const { clusterId, nodeId } = await host.report(ctx)
    const members = await membersOf(bus, ctx)
    if (!members) return { body: { cluster: null, nodes: [] } }
    const nodes = [...Map.groupBy(members, ({ node }) => node)].map(([id, workers]) => ({
      id,
      is_self: id === nodeId,
      workers: workers.map(({ worker, facts }) => ({ name: worker, version: versionIn(facts) })),
    }))
    return { body: { cluster: clusterId, nodes: nodes.toSorted((a, b) => (a.id < b.id ? -1 : 1)) } }
  },
})

/** Undefined outside of a cluster. */
async function membersOf(bus: NodeBus, ctx: CallContext): Promise<readonly BusMember[] | undefined> {
  try {
    return await bus.members(ctx)
  } catch (error) {
    if (codeOf(error) === 'BUS_NOT_JOINED') return undefined
    throw error
  }
}

const versionIn = (facts: unknown) => (isTree(facts) && typeof facts.version === 'string' ? facts.version : null)
