import { defineService, type CallContext, type HostState } from '@svc/core'

/** A worker of a node, and how busy it is. */
export interface ClusterWorker {
  /** `HostReport.worker`. */
  readonly name: string
  readonly version: string | undefined
  /** Undefined: it has not answered within three seconds. So are the members below. */
  readonly state: HostState | undefined
  readonly requestsActive: number | undefined
  /** The part of the last seconds in which its event loop was busy: 0 to 1. */
  readonly busy: number | undefined
  readonly memoryBytes: number | undefined
}

/** Something that two nodes run differently. A value is undefined where a node does not have it, and for configuration, which can be private. */
export interface NodeDifference {
  /**
   * `schema`: the version of a space of the store that the node has started with. `plugin_set`: the revision of the installed
   * plugins. `service`: the plugin that provides `node_bus` or `counts`, or the Redis server that these use. Nodes that differ in it do
   * not share messages or limits.
   */
  readonly what: 'plugin' | 'configuration' | 'schema' | 'plugin_set' | 'service'
  /** The name of the plugin, space or service, or the key of the configuration. */
  readonly name: string
  /** On this node. */
  readonly here: string | undefined
  /** On the other node. */
  readonly there: string | undefined
}

/** The installed plugins of a node. In a cluster with PostgreSQL, all nodes take over the newest revision. */
export interface NodePluginSet {
  /** 0: its plugins were never those of the cluster. */
  readonly revision: number
  /** The newer revision that it could not take over, and the error. */
  readonly failed?: { readonly revision: number; readonly code: string; readonly message: string }
}

/** Where a node listens. */
export interface NodeAddress {
  /** As it is configured: a loopback address is for clients on its own machine, and `0.0.0.0` for all networks. */
  readonly host: string
  readonly port: number
  /** With the name of the machine if the node listens on all networks. */
  readonly url: string
}

/** A server of the cluster. */
export interface ClusterNode {
  /** `HostReport.nodeId`. */
  readonly id: string
  /** The name of its machine. */
  readonly host: string | undefined
  /** Undefined: it has not answered, does not listen yet, or runs a version of svc that does not report it. */
  readonly address: NodeAddress | undefined
  /** Whether a server of this node has answered. */
  readonly isSelf: boolean
  readonly roles: readonly string[]
  readonly workers: readonly ClusterWorker[]
  /** Undefined: it has not answered, or runs a version of svc without revisions. */
  readonly pluginSet: NodePluginSet | undefined
  /** Whether it runs something else than this node. */
  readonly differs: boolean
  /** What differs; empty also if the node has not answered. */
  readonly differences: readonly NodeDifference[]
}

/** The servers of the cluster of this server. Only workers of `svc serve` have it, so declare it as `optional`. */
export interface Cluster {
  /** All nodes by name, with the state of their workers now; undefined for a server outside of a cluster. A lost node is listed for up to 15 seconds. */
  nodes(ctx: CallContext): Promise<readonly ClusterNode[] | undefined>
  /**
   * Why this node should not serve: spaces of the store that another node has migrated since it started, and services that most
   * other nodes have from elsewhere.
   */
  outdated(ctx: CallContext): Promise<readonly NodeDifference[]>
}
export const Cluster = defineService<Cluster>('cluster', { api: 1, methods: { nodes: 'call', outdated: 'call' } })
