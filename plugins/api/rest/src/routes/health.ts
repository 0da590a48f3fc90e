import type { Host, HostReport, SlotView } from '@svc/core'
import type { HealthFact, Route } from '@svc/core/contracts'
import { factsOf, type Probes, type ReadReadiness, worst } from '../probes.ts'
import { INTEGER, object, ok, STRING, words } from '@svc/api-types'

const word = words('healthy', 'degraded', 'unhealthy')
const names = { type: 'object', additionalProperties: STRING }
const health = object(
  {
    status: word,
    version: STRING,
    uptime_seconds: INTEGER,
    checks: {
      type: 'object',
      properties: { database: word, providers: word, cache: word },
      required: ['database', 'providers', 'cache'],
      additionalProperties: word,
    },
    tools: { type: 'integer', description: 'Number of tools that the tool server (MCP) publishes, if it is enabled.' },
    protocol_versions: {
      type: 'array',
      items: STRING,
      description: 'Versions of the tool protocol that the tool server supports.',
    },
    plugins: { ...names, description: 'Optional plugins that failed, with their error codes.' },
  },
  ['status', 'version', 'uptime_seconds', 'checks']
)
const ready = object({
  status: words('ready', 'starting', 'leaving', 'closing', 'store_unavailable', 'bus_unavailable', 'node_differs'),
})

/** Health routes. They need no credential, so they return statuses without details. */
export function createHealthRoutes({
  host,
  probes,
  facts,
  readReadiness,
}: {
  host: Host
  probes: Probes
  facts: SlotView<HealthFact>
  readReadiness: ReadReadiness
}): Record<string, Route> {
  return {
    health: {
      ...open('/health', 'Read the health of the server; 503 if it is unhealthy'),
      responses: {
        ...ok('The server is healthy or degraded.', health),
        '503': { description: 'The server is unhealthy.', schema: health },
      },
      async handle(_request, ctx) {
        const [report, probed, more] = await Promise.all([host.report(ctx), probes.all(ctx), factsOf(facts, ctx)])
        const plugins = failedPlugins(report)
        const status = worst([...[...probed.values()].map(item => item.status), ...(plugins ? (['degraded'] as const) : [])])
        const statuses = Object.fromEntries([...probed].map(([name, item]) => [name, item.status]))
        const record = {
          status,
          version: report.version,
          uptime_seconds: uptime(report),
          checks: statuses,
          ...(plugins ? { plugins } : {}),
        }
        return { status: status === 'unhealthy' ? 503 : 200, body: { ...record, ...more, ...record } }
      },
    },
    health_live: {
      ...open('/health/live', 'Check that the process answers'),
      responses: ok('The process answers.', object({ status: words('alive') })),
      handle: async () => ({ body: { status: 'alive' } }),
    },
    health_ready: {
      ...open('/health/ready', 'Check that the server accepts new requests'),
      responses: {
        ...ok('The server accepts new requests.', ready),
        '503': {
          description:
            'The server is starting, leaving or closing, its store accepts no writes, it is cut off from its cluster, or it is older than the data of its cluster.',
          schema: ready,
        },
      },
      async handle(_request, ctx) {
        const { state, successor } = await host.report(ctx)
        // a worker with a successor counts as ready, because the successor accepts new connections
        if (state !== 'running' && !successor) return { status: 503, body: { status: state } }
        const status = await readReadiness()
        return { ...(status === 'ready' ? {} : { status: 503 }), body: { status } }
      },
    },
  }
}

const open = (path: string, summary: string) => ({ method: 'GET', path, summary, uncounted: true }) as const

/** Returns the whole seconds since the host started. */
export const uptime = ({ startedAt }: HostReport) => Math.floor((Date.now() - startedAt) / 1000)

/** Returns the failed plugins with their error codes. Messages are for the log only, because they can contain files and addresses. */
function failedPlugins({ plugins }: HostReport): Record<string, string> | undefined {
  const failed = plugins.filter(plugin => plugin.state === 'failed')
  if (failed.length === 0) return undefined
  return Object.fromEntries(
    failed.map(plugin => [
      plugin.instance === undefined ? plugin.name : `${plugin.name} ${plugin.instance}`,
      plugin.error?.code ?? 'failed',
    ])
  )
}
