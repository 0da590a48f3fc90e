import { counted, oneLine, table } from '@svc/cli/command'
import { svcError } from '@svc/core'
import { type ServerAddress, askServer, jsonOf, unavailable } from './server-status.ts'

/** A part of the answer of `GET /api/v1/nodes`. */
interface ClusterAnswer {
  readonly cluster: string | null
  readonly nodes: readonly {
    readonly id: string
    readonly host: string | null
    readonly is_self: boolean
    readonly roles: readonly string[]
    readonly workers: readonly ShownWorker[]
    readonly plugin_set?: { readonly revision: number } | null
    readonly differs: boolean
    readonly differences: readonly { readonly what: string; readonly name: string }[]
  }[]
}
interface ShownWorker {
  readonly name: string
  readonly version: string | null
  readonly state: string | null
  readonly requests_active: number | null
  readonly busy: number | null
  readonly memory_bytes: number | null
}

/** `svc status --cluster`; resolves with the exit code: 1 if a worker has not answered. */
export async function clusterStatus({ json, ...address }: ServerAddress & { readonly json: boolean }): Promise<number> {
  const answer = await askServer(address, '/api/v1/nodes')
  const { cluster, nodes } = jsonOf(answer.text) as unknown as ClusterAnswer
  const hasNodes: boolean = Array.isArray(nodes)
  if (answer.status !== 200 || !hasNodes) {
    const { code, message } = unavailable(answer)
    throw svcError(code, message, { where: '/api/v1/nodes', hint: 'The server must load @svc/plugin-admin-api' })
  }
  const silent = nodes.flatMap(({ workers }) => workers.filter(({ state }) => state === null).map(({ name }) => name))
  process.stdout.write(`${json ? JSON.stringify({ cluster, nodes, silent }, null, 2) : textOf({ cluster, nodes }, silent)}\n`)
  return silent.length === 0 ? 0 : 1
}

const MEGABYTE = 1_000_000

function textOf({ cluster, nodes }: ClusterAnswer, silent: readonly string[]): string {
  if (cluster === null) return 'this server belongs to no cluster'
  const heads = ['NODE', 'HOST', 'ROLES', 'WORKER', 'VERSION', 'PLUGINS', 'STATE', 'REQUESTS', 'BUSY', 'MEMORY']
  const rows = nodes.flatMap(node => node.workers.map(worker => rowOf(node, worker)))
  const sides = heads.map(head => (['REQUESTS', 'BUSY', 'MEMORY'].includes(head) ? ('right' as const) : ('left' as const)))
  const differing = nodes.flatMap(({ id, differs, differences }) =>
    differs ? [`NODE_DIFFERS ${id}: ${differences.map(({ what, name }) => `${what} ${name}`).join(', ') || 'unknown'}`] : []
  )
  const count = `cluster ${cluster}: ${nodes.length} node${nodes.length === 1 ? '' : 's'}`
  const missing = silent.length === 0 ? [] : [`no answer from ${silent.join(', ')}`]
  // another machine has written all of these texts
  const cleaned = rows.map(row => row.map(oneLine))
  return [oneLine(count), '', table([heads, ...cleaned], sides), ...[...differing, ...missing].map(oneLine)].join('\n')
}

function rowOf(
  { id, host, roles, is_self: isSelf, plugin_set: plugins }: ClusterAnswer['nodes'][number],
  { name, version, state, requests_active: requests, busy, memory_bytes: memory }: ShownWorker
): string[] {
  return [
    isSelf ? `${id} *` : id,
    host ?? '',
    roles.join(','),
    // the name begins with that of its node
    name.startsWith(`${id}.`) ? name.slice(id.length + 1) : name,
    version ?? '',
    plugins?.revision ? `r${plugins.revision}` : '',
    state ?? 'silent',
    requests === null ? '' : counted(requests),
    busy === null ? '' : `${Math.round(busy * 100)} %`,
    memory === null ? '' : `${counted(Math.round(memory / MEGABYTE))} MB`,
  ]
}
