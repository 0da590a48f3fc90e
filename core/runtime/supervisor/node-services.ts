import { type CallContext, type HostReport, schema } from '@svc/core'
import type { Json, NodeDifference, Space, Store } from '@svc/core/contracts'

// What provides the messages and the counts of a node. All nodes of a cluster must share them, and cannot find out by messages whether
// they do. So each worker records it in the store, which they do share.

export const NODE_RECORDS = 'cluster_nodes'
export const NODE_SPACE: Space = { name: NODE_RECORDS, version: 1, collections: { [NODE_RECORDS]: {} } }

/** A worker that has not renewed its record for this time is lost. */
const LOST_MS = 35_000
/** More nodes are not compared. */
const MOST_RECORDS = 1_000

/** The services that all nodes of a cluster must share. */
export interface SharedServices {
  /** The plugin that provides `NodeBus`. */
  readonly bus: string
  /** The plugin that provides `Counts`. */
  readonly counts: string
  /** The name of the Redis server that one of them uses. '' without one, and as long as it was not reached. */
  readonly redis: string
}

/** A worker, as it has recorded itself. Times are Unix milliseconds by the clock of the store. */
export interface NodeRecord extends SharedServices {
  readonly worker: string
  readonly node: string
  readonly host: string
  readonly startedAt: number
  /** Since when its node has these services. */
  readonly since: number
  readonly seenAt: number
}

const [text, time] = [{ type: 'string', maxLength: 500 } as const, { type: 'number' } as const]
const recordSchema = schema<NodeRecord>({
  type: 'object',
  properties: {
    bus: text,
    counts: text,
    redis: text,
    worker: text,
    node: text,
    host: text,
    startedAt: time,
    since: time,
    seenAt: time,
  },
  required: ['bus', 'counts', 'redis', 'worker', 'node', 'host', 'startedAt', 'since', 'seenAt'],
})

export const recordKey = (cluster: string, worker: string): string => `${encodeURIComponent(cluster)}/${worker}`

/** The workers of a cluster that were seen last before `LOST_MS`, and those that are lost. */
export async function readRecords(store: Store, cluster: string, now: number, ctx: CallContext) {
  const name = encodeURIComponent(cluster)
  // `0` comes after `/`
  const { records } = await store.range(NODE_RECORDS, { from: `${name}/`, to: `${name}0`, limit: MOST_RECORDS }, ctx)
  const all = records.flatMap(({ value }) => (isRecord(value) ? [value] : []))
  return { live: all.filter(({ seenAt }) => seenAt > now - LOST_MS), lost: all.filter(({ seenAt }) => seenAt <= now - LOST_MS) }
}

const isRecord = (value: unknown): value is NodeRecord => recordSchema.check(value as Json).length === 0

/** The plugins of a host that provide these services; `usesRedis` if one of them needs Redis. */
export function servicesIn({ plugins }: Pick<HostReport, 'plugins'>) {
  const running = plugins.filter(({ state }) => state !== 'failed')
  // a plugin whose only service it is takes the place of the store
  const providerOf = (service: string) =>
    running.find(({ provides }) => provides === service) ?? running.find(({ alsoProvides }) => alsoProvides?.includes(service))
  const [bus, counts] = [providerOf('node_bus'), providerOf('counts')]
  const usesRedis = [bus, counts].some(plugin => plugin?.requires.includes('redis'))
  return { bus: bus?.name ?? '', counts: counts?.name ?? '', usesRedis }
}

/** The newest worker of each node. */
export const nodesOf = (records: readonly NodeRecord[]): readonly NodeRecord[] =>
  [...Map.groupBy(records, ({ node }) => node).values()].map(([first, ...workers]) =>
    workers.reduce((a, b) => (b.startedAt > a.startedAt ? b : a), first!)
  )

/** Which service the other node has from elsewhere. */
export function serviceDifferences(own: SharedServices, other: SharedServices): NodeDifference[] {
  const compared = [
    ['node_bus', own.bus, other.bus],
    ['counts', own.counts, other.counts],
    ['redis', own.redis, other.redis],
  ] as const
  return compared
    .filter(([name, here, there]) => here !== there && (name !== 'redis' || (here !== '' && there !== '')))
    .map(([name, here, there]) => ({ what: 'service', name, here, there }))
}

const isSame = (a: SharedServices, b: SharedServices) => serviceDifferences(a, b).length === 0

/**
 * Whether this node has the services of most nodes. Of two groups with the same number of nodes, that with the oldest node counts: so a
 * node that is changed alone waits for the others.
 */
export function isOutvoted(own: NodeRecord, others: readonly NodeRecord[]): boolean {
  const groups: NodeRecord[][] = []
  for (const record of [own, ...others]) {
    const group = groups.find(([first]) => isSame(first!, record))
    if (group) group.push(record)
    else groups.push([record])
  }
  const oldest = (group: readonly NodeRecord[]) => Math.min(...group.map(({ since }) => since))
  const [largest] = groups.toSorted((a, b) => b.length - a.length || oldest(a) - oldest(b) || (a[0]!.node < b[0]!.node ? -1 : 1))
  return largest !== groups[0]
}

/** Another node with other services than this one. */
export interface SplitNode {
  readonly record: NodeRecord
  readonly differences: readonly NodeDifference[]
}

/** The nodes that do not share all services with this one. */
export const splitFrom = (own: SharedServices, others: readonly NodeRecord[]): readonly SplitNode[] =>
  others
    .map(record => ({ record, differences: serviceDifferences(own, record) }))
    .filter(({ differences }) => differences.length > 0)

/** The running nodes of a cluster that would not share all services with a server of this host, as `svc doctor` starts it. */
export async function splitFromHost(
  host: Pick<HostReport, 'plugins' | 'nodeId'>,
  store: Store,
  cluster: string,
  ctx: CallContext
): Promise<readonly SplitNode[]> {
  await store.open(NODE_SPACE, ctx)
  const now = Date.now() + (await store.probe(ctx)).clockOffsetMs
  const { live } = await readRecords(store, cluster, now, ctx)
  const others = live.filter(({ node }) => node !== host.nodeId)
  // only a running server knows the name of its Redis
  const redis = live.find(({ node }) => node === host.nodeId)?.redis ?? ''
  return splitFrom({ ...servicesIn(host), redis }, nodesOf(others))
}
