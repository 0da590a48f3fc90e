import type { Host, SlotView } from '@svc/core'
import type { Check, CheckReport, Http, Json, Route } from '@svc/core/contracts'
import { probeAll, withFigures } from '../probes.ts'
import { BOOLEAN, INTEGER, NUMBER, object, ok, STRING } from '../schemas.ts'
import { uptime } from './health.ts'

const provider = object({ healthy: BOOLEAN, requests: INTEGER, error: STRING }, ['healthy'])
const status = object({
  version: STRING,
  uptime_seconds: INTEGER,
  requests_total: INTEGER,
  requests_active: INTEGER,
  providers: { type: 'object', additionalProperties: provider },
  cache: object({ enabled: BOOLEAN, size: INTEGER, hit_rate: NUMBER }),
})

const NO_CACHE = { enabled: false, size: 0, hit_rate: 0 }

interface StatusParts {
  readonly host: Host
  readonly http: Http
  readonly checks: SlotView<Check>
}

/** The figures of the server. */
export function createStatusRoutes({ host, http, checks }: StatusParts): Record<string, Route> {
  return {
    status: {
      method: 'GET',
      path: '/api/v1/status',
      summary: 'Requests, providers and cache in figures',
      scope: 'read',
      responses: ok('The figures.', status),
      async handle(_request, use) {
        const probing = probeAll(checks, use, withFigures)
        const [report, figures, probed] = await Promise.all([host.report(use), http.figures(use), probing])
        return {
          body: {
            version: report.version,
            uptime_seconds: uptime(report),
            requests_total: figures.requestsTotal,
            requests_active: figures.requestsActive,
            providers: detailOf(probed.get('providers')) ?? {},
            cache: { ...NO_CACHE, ...detailOf(probed.get('cache')) },
          },
        }
      },
    },
  }
}

const detailOf = (report: CheckReport | undefined): { readonly [key: string]: Json | undefined } | undefined => report?.detail
