import type { Host, CallContext } from '@svc/core'
import type { CheckReport, Http, Json, Route } from '@svc/core/contracts'
import { type Probes, withMetrics } from '../probes.ts'
import { BOOLEAN, INTEGER, NUMBER, object, ok, STRING, text, words } from '@svc/api-types'
import { uptime } from './health.ts'

const provider = object({ healthy: BOOLEAN, requests: INTEGER, error: STRING }, ['healthy'])
const check = object({ status: words('healthy', 'degraded', 'unhealthy'), reason: text('Why the check is not healthy.') }, [
  'status',
])
const metrics = {
  version: STRING,
  uptime_seconds: INTEGER,
  requests_total: INTEGER,
  requests_active: INTEGER,
  providers: { type: 'object', additionalProperties: provider },
  cache: object({ enabled: BOOLEAN, size: INTEGER, hit_rate: NUMBER }),
} as const
const checks = {
  type: 'object',
  additionalProperties: check,
  description: 'The checks of /health that are not healthy, with reasons. Requires the scope admin.',
}
const status = object({ ...metrics, checks }, Object.keys(metrics))

const NO_CACHE = { enabled: false, size: 0, hit_rate: 0 }

interface StatusDependencies {
  readonly host: Host
  readonly http: Http
  readonly probes: Probes
}

const me = object({
  principal: text('The id of the caller; `anonymous` while authentication is off.'),
  scopes: { type: 'array', items: STRING, description: '`*` stands for all.' },
  scheme: { type: ['string', 'null'], description: 'The scheme that recognized the credential.' },
  expires: { type: ['string', 'null'], format: 'date-time', description: 'When the credential expires, if known.' },
})

/** The routes with the metrics of the server, and about the caller. */
export function createStatusRoutes({ host, http, probes }: StatusDependencies): Record<string, Route> {
  return {
    me: {
      method: 'GET',
      path: '/api/v1/me',
      summary: 'Read the principal and the scopes of the caller',
      scope: 'read',
      responses: ok('The caller.', me),
      async handle(_request, { principal: { id, scopes, scheme, expires } }) {
        const until = expires === undefined ? null : new Date(expires).toISOString()
        return { body: { principal: id, scopes, scheme: scheme ?? null, expires: until } }
      },
    },
    status: {
      method: 'GET',
      path: '/api/v1/status',
      summary: 'Read metrics of requests, providers and cache',
      scope: 'read',
      responses: ok('The metrics.', status),
      async handle(_request, ctx) {
        const probing = probes.all(ctx, withMetrics)
        const [report, metrics, probed] = await Promise.all([host.report(ctx), http.metrics(ctx), probing])
        return {
          body: {
            version: report.version,
            uptime_seconds: uptime(report),
            requests_total: metrics.requestsTotal,
            requests_active: metrics.requestsActive,
            providers: detailOf(probed.get('providers')) ?? {},
            cache: { ...NO_CACHE, ...detailOf(probed.get('cache')) },
            ...(isAdmin(ctx) ? unhealthyChecks(probed) : {}),
          },
        }
      },
    },
  }
}

const detailOf = (report: CheckReport | undefined): { readonly [key: string]: Json | undefined } | undefined => report?.detail

const isAdmin = ({ principal: { scopes } }: CallContext) => scopes.includes('admin') || scopes.includes('*')

function unhealthyChecks(probed: ReadonlyMap<string, CheckReport>) {
  const unhealthy = [...probed].filter(([, { status }]) => status !== 'healthy')
  if (unhealthy.length === 0) return {}
  const statusOf = ({ status, reason }: CheckReport) => (reason === undefined ? { status } : { status, reason })
  return { checks: Object.fromEntries(unhealthy.map(([name, report]) => [name, statusOf(report)])) }
}
