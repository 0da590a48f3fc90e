import type { Host, HostReport, SlotView } from '@svc/core'
import type { HealthFact, Route, RouteReply } from '@svc/core/contracts'
import { factsOf, type Probes, worst } from '../probes.ts'
import { INTEGER, object, ok, STRING, words } from '../schemas.ts'

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
    tools: { type: 'integer', description: 'How many tools the tool server (MCP) publishes, where it is switched on.' },
    protocol_versions: { type: 'array', items: STRING, description: 'The versions of the tool protocol that it speaks.' },
    plugins: { ...names, description: 'Optional plugins that failed, and why.' },
  },
  ['status', 'version', 'uptime_seconds', 'checks']
)
const ready = object({ status: words('ready', 'starting', 'closing') })

/** How the server is. Open to everybody, so it tells words and no details. */
export function createHealthRoutes({
  host,
  probes,
  facts,
}: {
  host: Host
  probes: Probes
  facts: SlotView<HealthFact>
}): Record<string, Route> {
  return {
    health: {
      ...open('/health', 'How the server is; 503 when it is unhealthy'),
      responses: {
        ...ok('It works, perhaps not all of it.', health),
        '503': { description: 'It does not work.', schema: health },
      },
      async handle(_request, ctx) {
        const [report, probed, more] = await Promise.all([host.report(ctx), probes.all(ctx), factsOf(facts, ctx)])
        const plugins = failedPlugins(report)
        const status = worst([...[...probed.values()].map(one => one.status), ...(plugins ? (['degraded'] as const) : [])])
        const statuses = Object.fromEntries([...probed].map(([name, one]) => [name, one.status]))
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
      ...open('/health/live', 'Whether the process answers'),
      responses: ok('It does.', object({ status: words('alive') })),
      handle: async () => ({ body: { status: 'alive' } }),
    },
    health_ready: {
      ...open('/health/ready', 'Whether new requests may be sent here'),
      responses: {
        ...ok('They may.', ready),
        '503': { description: 'They may not: the server is starting or closing.', schema: ready },
      },
      handle: async (_request, ctx) => readiness(await host.report(ctx)),
    },
  }
}

const open = (path: string, summary: string) => ({ method: 'GET', path, summary, uncounted: true }) as const

/** Whole seconds since the host began. */
export const uptime = ({ startedAt }: HostReport) => Math.floor((Date.now() - startedAt) / 1000)

/** The code says why; the message, which may name files and addresses, is for the log. */
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

/** While its successor takes the new connections, the server is as ready as before: only this worker ends. */
function readiness({ state, successor }: HostReport): RouteReply {
  const isReady = state === 'running' || successor
  return { status: isReady ? 200 : 503, body: { status: isReady ? 'ready' : state } }
}
