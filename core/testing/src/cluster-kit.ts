import assert from 'node:assert/strict'
import type { Cluster, ClusterNode } from '@svc/core/contracts'
import { abortable, assertPlain, atOnce, becomes, caseMaker, type KitCase } from './kit-case.ts'

/** A server of the cluster with one worker, which has joined. */
export interface ClusterNodeUnderTest {
  readonly cluster: Cluster
  /** `HostReport.nodeId` and `HostReport.worker` of its host. */
  readonly node: string
  readonly worker: string
  /** Stops it, as `svc serve` stops. */
  stop(): Promise<unknown>
}

/** Three nodes of one cluster. The first two have the same configuration, and the third one the value of `KIT_KEY` that differs. */
export interface ClusterSubject {
  readonly nodes: readonly [ClusterNodeUnderTest, ClusterNodeUnderTest, ClusterNodeUnderTest]
  close?(): unknown
}

/** The key of the configuration of the nodes, and its values on the first two and on the third. */
export const KIT_KEY = 'kit.address'
export const KIT_ADDRESSES = ['same.kit.example', 'other.kit.example'] as const

/** Cases for every implementation of `Cluster`: `for (const one of clusterKit(open)) it(one.title, one.run)`. */
export function clusterKit(open: () => Promise<ClusterSubject>): KitCase[] {
  const opened = caseMaker(open)
  return [...listing(opened), ...differing(opened), ...leaving(opened)]
}

type Opened = ReturnType<typeof caseMaker<ClusterSubject>>
const { ctx } = abortable('cluster kit')

async function nodesSeenBy({ cluster }: Pick<ClusterNodeUnderTest, 'cluster'>): Promise<readonly ClusterNode[]> {
  const nodes = await atOnce(cluster.nodes(ctx), 'the list of the nodes')
  assert(nodes, 'a node of a cluster lists its nodes')
  return nodes
}

/** The list of each node, once it has all of them. */
async function listsOf({ nodes }: ClusterSubject): Promise<(readonly ClusterNode[])[]> {
  for (const one of nodes) await becomes('the list of all nodes', async () => (await nodesSeenBy(one)).length === nodes.length)
  return Promise.all(nodes.map(nodesSeenBy))
}

const listing = (opened: Opened): KitCase[] => [
  opened('lists all nodes by name with their workers, the same on each', async subject => {
    const names = subject.nodes.map(({ node, worker }) => ({ node, worker })).toSorted((a, b) => (a.node < b.node ? -1 : 1))
    for (const list of await listsOf(subject)) {
      assertPlain(list, 'nodes')
      const found = list.flatMap(({ id, workers }) => workers.map(({ name }) => ({ node: id, worker: name })))
      assert.deepEqual(found, names)
    }
  }),
  opened('marks the node that answers, and no other', async subject => {
    for (const [at, list] of (await listsOf(subject)).entries())
      assert.deepEqual(
        list.filter(({ isSelf }) => isSelf).map(({ id }) => id),
        [subject.nodes[at]!.node]
      )
  }),
  opened('reports the state and the load of each worker', async subject => {
    for (const { host, workers, roles } of (await listsOf(subject)).flat()) {
      assert(host, 'the host of a node that has joined')
      assert.deepEqual(roles, ['http', 'runs'])
      for (const { state, requestsActive, busy, memoryBytes } of workers) {
        assert.equal(state, 'running')
        assert.equal(requestsActive, 0)
        assert(busy !== undefined && busy >= 0 && busy <= 1, 'busy is from 0 to 1')
        assert(memoryBytes !== undefined && memoryBytes > 1_000_000, 'the memory of a process')
      }
    }
  }),
]

const differing = (opened: Opened): KitCase[] => [
  opened('names what another node runs differently, without a value of the configuration', async subject => {
    const [first, second, third] = subject.nodes
    for (const [at, list] of (await listsOf(subject)).entries()) {
      const own = subject.nodes[at]!
      const others = own === third ? [first.node, second.node] : [third.node]
      const found = list.filter(({ differs }) => differs)
      assert.deepEqual(found.map(({ id }) => id).toSorted(), others.toSorted())
      for (const { differences } of found)
        assert.deepEqual(differences, [{ what: 'configuration', name: KIT_KEY, here: undefined, there: undefined }])
      for (const value of KIT_ADDRESSES) assert(!JSON.stringify(list).includes(value), 'no value leaves its node')
    }
  }),
  opened('reports no outdated data while no node has migrated any', async subject => {
    await listsOf(subject)
    for (const { cluster } of subject.nodes) assert.deepEqual(await atOnce(cluster.outdated(ctx), 'the outdated data'), [])
  }),
]

const leaving = (opened: Opened): KitCase[] => [
  opened('does not list a node that has stopped', async subject => {
    await listsOf(subject)
    const [first, second, third] = subject.nodes
    await second.stop()
    for (const one of [first, third])
      await becomes('the list without the stopped node', async () =>
        (await nodesSeenBy(one)).every(({ id }) => id !== second.node)
      )
  }),
]
