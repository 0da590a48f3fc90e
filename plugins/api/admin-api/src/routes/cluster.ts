import { BOOLEAN, list, nullable, object, ok, STRING, words } from '@svc/api-types'
import type { Host, JsonSchema } from '@svc/core'
import type { Cluster, ClusterNode, Json, Route } from '@svc/core/contracts'

const described = (schema: JsonSchema, description: string): JsonSchema => ({ ...(schema as object), description })

const WORKER = object({
  name: STRING,
  version: nullable('string'),
  state: described(
    { type: ['string', 'null'], enum: ['starting', 'running', 'leaving', 'closing', 'closed', null] },
    'null: the worker has not answered within three seconds.'
  ),
  requests_active: nullable('integer'),
  busy: described(nullable('number'), 'The part of the last seconds in which its event loop was busy: 0 to 1.'),
  memory_bytes: nullable('integer'),
})

const DIFFERENCE = object({
  what: described(
    words('plugin', 'configuration', 'schema', 'plugin_set', 'service'),
    'schema: a space of the store; plugin_set: the revision of the installed plugins; service: what provides messages or counts.'
  ),
  name: described(STRING, 'The plugin, the key of the configuration, the space, or the service.'),
  here: described(nullable('string'), 'The version on the node that answers; null for configuration.'),
  there: described(nullable('string'), 'The version on the other node.'),
})

const PLUGIN_SET: JsonSchema = {
  description: 'The installed plugins. null: the node has not answered.',
  anyOf: [
    object({
      revision: described({ type: 'integer' }, '0: its plugins were never those of the cluster.'),
      failed: {
        description: 'The newer revision that the node could not take over.',
        anyOf: [object({ revision: { type: 'integer' }, code: STRING, message: STRING }), { type: 'null' }],
      },
    }),
    { type: 'null' },
  ],
}

const ADDRESS: JsonSchema = {
  description: 'Where it listens. null: it has not answered, or does not listen yet.',
  anyOf: [
    object({
      host: described(
        STRING,
        'As it is configured: a loopback address is for clients on its own machine, 0.0.0.0 for all networks.'
      ),
      port: { type: 'integer' },
      url: described(STRING, 'With the name of the machine if the node listens on all networks.'),
    }),
    { type: 'null' },
  ],
}

const NODE: JsonSchema = {
  ...(object({
    id: STRING,
    host: described(nullable('string'), 'The name of its machine.'),
    address: ADDRESS,
    is_self: described(BOOLEAN, 'Whether a server of this node has answered.'),
    roles: list(STRING),
    workers: list(WORKER),
    plugin_set: PLUGIN_SET,
    differs: described(BOOLEAN, 'Whether it runs something else than the node that answers.'),
    differences: list(DIFFERENCE),
  }) as object),
  title: 'Node',
}

interface ClusterServices {
  readonly host: Host
  /** Absent in a host that is no worker of `svc serve`. */
  readonly cluster?: Cluster | undefined
}

/** The nodes of the cluster. */
export const createClusterRoutes = (services: ClusterServices): Record<string, Route> => ({ nodes: nodesRoute(services) })

const nodesRoute = ({ host, cluster }: ClusterServices): Route => ({
  method: 'GET',
  path: '/api/v1/nodes',
  summary: 'List the nodes of the cluster with their workers',
  description: 'A node that is lost stays in the list for up to 15 seconds.',
  scope: 'read',
  responses: ok(
    'The nodes by name.',
    object({
      cluster: described(nullable('string'), 'null: this server acts alone.'),
      nodes: list(NODE),
    })
  ),
  async handle(_request, ctx) {
    const [{ clusterId }, nodes] = await Promise.all([host.report(ctx), cluster?.nodes(ctx)])
    return { body: { cluster: nodes ? clusterId : null, nodes: (nodes ?? []).map(nodeRecord) } }
  },
})

const nodeRecord = ({ id, host, address, isSelf, roles, workers, pluginSet, differs, differences }: ClusterNode): Json => ({
  id,
  host: host ?? null,
  address: address ? { ...address } : null,
  is_self: isSelf,
  roles: [...roles],
  workers: workers.map(({ name, version, state, requestsActive, busy, memoryBytes }) => ({
    name,
    version: version ?? null,
    state: state ?? null,
    requests_active: requestsActive ?? null,
    busy: busy ?? null,
    memory_bytes: memoryBytes ?? null,
  })),
  plugin_set: pluginSet ? { revision: pluginSet.revision, failed: pluginSet.failed ? { ...pluginSet.failed } : null } : null,
  differs,
  differences: differences.map(({ what, name, here, there }) => ({ what, name, here: here ?? null, there: there ?? null })),
})
