import { messageOf, type RunningHost, systemContext } from '@svc/core'
import { Store } from '@svc/core/contracts'
import { splitFromHost } from '@svc/runtime'
import { type DoctorFinding, fail, ok, warn } from './finding.ts'

const NAME = 'cluster'
const HINT = 'Set the same redis section on all nodes, and reload them: see "Add or remove Redis" in the guide Use Redis'

/** Whether the running nodes of the cluster share messages and limits with a server of this configuration. */
export async function clusterFindings(host: RunningHost, cluster: unknown, signal: AbortSignal): Promise<DoctorFinding[]> {
  const report = host.report()
  const hasStore = report.plugins.some(({ provides, state }) => provides === Store.name && state === 'running')
  if (typeof cluster !== 'string' || !hasStore) return []
  try {
    const split = await splitFromHost(report, host.service(Store), cluster, systemContext(signal, 'doctor'))
    if (split.length === 0) return [ok(NAME, 'all running nodes share messages and limits')]
    const differences = split.flatMap(found => found.differences)
    const texts = differences.map(({ name, here, there }) => `${name}: ${there}, on this node ${here}`)
    const nodes = split.map(({ record }) => record.node).join(', ')
    return [
      fail(
        NAME,
        `nodes do not share messages or limits with this one (NODE_DIFFERS ${nodes}): ${[...new Set(texts)].join('; ')}`,
        HINT
      ),
    ]
  } catch (error) {
    return [warn(NAME, `svc cannot compare the nodes: ${messageOf(error)}`, 'Fix the store')]
  }
}
