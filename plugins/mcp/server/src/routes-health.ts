import type { Host, HostReport, JsonSchema, SlotView, Use } from '@svc/core'
import type { HealthFact, Route } from '@svc/core/contracts'

const STRING: JsonSchema = { type: 'string' }
const health: JsonSchema = {
  type: 'object',
  properties: {
    status: { type: 'string', enum: ['healthy', 'degraded', 'unhealthy'] },
    version: STRING,
    uptime_seconds: { type: 'integer' },
    tools: { type: 'integer' },
    protocol_versions: { type: 'array', items: STRING },
  },
  required: ['status', 'version', 'uptime_seconds', 'tools', 'protocol_versions'],
}

const PATH = '/health'

/** Whether nobody answers there yet: a server that has more than tools has a record of its own, with these facts in it. */
export const needsHealth = (routes: SlotView<Route>): boolean => !routes.entries().some(([, { path }]) => path === PATH)

/** How a server is that serves nothing but tools. */
export const createHealthRoute = (host: Host, fact: HealthFact): Route => ({
  method: 'GET',
  path: PATH,
  summary: 'How the tool server is; 503 when it does not serve',
  uncounted: true,
  responses: {
    '200': { description: 'It serves.', schema: health },
    '503': { description: 'It is starting or closing.', schema: health },
  },
  async handle(_request, use: Use) {
    const [report, more] = await Promise.all([host.report(use), fact.facts(use)])
    const status = statusOf(report)
    const { version, startedAt } = report
    const uptime = Math.floor((Date.now() - startedAt) / 1000)
    return { status: status === 'unhealthy' ? 503 : 200, body: { status, version, uptime_seconds: uptime, ...more } }
  },
})

/** While its successor takes the new connections, the server is as well as before: only this worker ends. */
function statusOf({ state, successor, plugins }: HostReport) {
  if (state !== 'running' && !successor) return 'unhealthy'
  return plugins.some(plugin => plugin.state === 'failed') ? 'degraded' : 'healthy'
}
