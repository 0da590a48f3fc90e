import type { Host, Use } from '@svc/core'
import type { CheckReport, Http, Json, Route } from '@svc/core/contracts'
import { type Probes, withFigures } from '../probes.ts'
import { BOOLEAN, INTEGER, NUMBER, object, ok, STRING, text, words } from '../schemas.ts'
import { uptime } from './health.ts'

const provider = object({ healthy: BOOLEAN, requests: INTEGER, error: STRING }, ['healthy'])
const check = object({ status: words('healthy', 'degraded', 'unhealthy'), reason: text('Why it is not well.') }, ['status'])
const figures = {
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
  description: 'The checks of /health that are not healthy, and why: for whoever has the scope admin.',
}
const status = object({ ...figures, checks }, Object.keys(figures))

const NO_CACHE = { enabled: false, size: 0, hit_rate: 0 }

interface StatusParts {
  readonly host: Host
  readonly http: Http
  readonly probes: Probes
}

/** The figures of the server. */
export function createStatusRoutes({ host, http, probes }: StatusParts): Record<string, Route> {
  return {
    status: {
      method: 'GET',
      path: '/api/v1/status',
      summary: 'Requests, providers and cache in figures',
      scope: 'read',
      responses: ok('The figures.', status),
      async handle(_request, use) {
        const probing = probes.all(use, withFigures)
        const [report, figures, probed] = await Promise.all([host.report(use), http.figures(use), probing])
        return {
          body: {
            version: report.version,
            uptime_seconds: uptime(report),
            requests_total: figures.requestsTotal,
            requests_active: figures.requestsActive,
            providers: detailOf(probed.get('providers')) ?? {},
            cache: { ...NO_CACHE, ...detailOf(probed.get('cache')) },
            ...(isAdmin(use) ? troubleOf(probed) : {}),
          },
        }
      },
    },
  }
}

const detailOf = (report: CheckReport | undefined): { readonly [key: string]: Json | undefined } | undefined => report?.detail

const isAdmin = ({ principal: { scopes } }: Use) => scopes.includes('admin') || scopes.includes('*')

function troubleOf(probed: ReadonlyMap<string, CheckReport>) {
  const sick = [...probed].filter(([, { status }]) => status !== 'healthy')
  if (sick.length === 0) return {}
  const told = ({ status, reason }: CheckReport) => (reason === undefined ? { status } : { status, reason })
  return { checks: Object.fromEntries(sick.map(([name, report]) => [name, told(report)])) }
}
