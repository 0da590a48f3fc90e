import type { Host, HostReport, Log, SlotView, CallContext } from '@svc/core'
import type { AuthScheme, Check, Cluster, Http, NodeBus, Recommend, Route, Store, Workflows } from '@svc/core/contracts'
import { createProbes, createReadiness } from './probes.ts'
import { createChatRoutes } from './routes/chat.ts'
import { createConfigRoutes } from './routes/config.ts'
import { createConversationRoutes } from './routes/conversations.ts'
import { createConversationWorkRoutes } from './routes/conversation-work.ts'
import { createDoctorRoutes } from './routes/doctor.ts'
import { createDiscoveryRoutes } from './routes/discovery.ts'
import { createHealthRoutes } from './routes/health.ts'
import { createRecommendRoutes } from './routes/recommend.ts'
import { createRunRoutes } from './routes/runs.ts'
import { createRunWorkRoutes } from './routes/run-work.ts'
import { createStatusRoutes } from './routes/status.ts'
import { createWorkflowRoutes } from './routes/workflows.ts'
import { createRunStreams } from './frames.ts'
import { OBJECT, ok, withClosedQuery } from '@svc/api-types'

/** The services of the routes. Without the service `Workflows` or `Recommend`, its routes are missing. */
type RouteOptions = Parameters<typeof createChatRoutes>[0] &
  Parameters<typeof createConversationRoutes>[0] &
  Parameters<typeof createConfigRoutes>[0] &
  Parameters<typeof createDiscoveryRoutes>[0] &
  Omit<Parameters<typeof createHealthRoutes>[0] & Parameters<typeof createStatusRoutes>[0], 'probes' | 'readReadiness'> &
  Parameters<typeof createOpenApiRoutes>[0] & {
    readonly checks: SlotView<Check>
    readonly log: Log
    readonly store?: Store | undefined
    readonly bus?: NodeBus | undefined
    readonly cluster?: Cluster | undefined
    readonly workflows?: Workflows | undefined
    readonly recommend?: Recommend | undefined
  }

/** Stage of the hook `closing`: run streams end before the server waits for open requests. */
export const LEAVING = -100

/** Creates all routes of the API, by name. `leave` ends the streams of runs. */
export function createRoutes(parts: RouteOptions): { readonly routes: Record<string, Route>; readonly leave: () => void } {
  const { workflows, recommend } = parts
  const probes = createProbes(parts.checks, parts.log)
  const streams = workflows && createRunStreams(workflows)
  const routes = {
    ...createChatRoutes(parts),
    ...createConversationRoutes(parts),
    ...createConversationWorkRoutes(parts),
    ...createConfigRoutes(parts),
    ...createDiscoveryRoutes(parts),
    ...createHealthRoutes({ ...parts, probes, readReadiness: createReadiness(parts) }),
    ...createStatusRoutes({ ...parts, probes }),
    ...createDoctorRoutes(parts),
    ...createOpenApiRoutes(parts),
    ...(recommend ? createRecommendRoutes(recommend) : {}),
    ...(workflows ? createWorkflowRoutes(workflows) : {}),
    ...(workflows && streams ? createRunRoutes({ workflows, streams }) : {}),
    ...(workflows ? createRunWorkRoutes({ workflows, http: parts.http }) : {}),
  }
  return { routes: closed(routes), leave: () => streams?.leave() }
}

const API = '/api/v1/'

/** The routes of the API reject unknown query parameters. Health, metrics and the document ignore them. */
const closed = (routes: Readonly<Record<string, Route>>) =>
  Object.fromEntries(
    Object.entries(routes).map(([name, route]) => [name, route.path.startsWith(API) ? withClosedQuery(route) : route])
  )

interface OpenApiOptions {
  readonly host: Host
  readonly http: Http
  readonly routes: SlotView<Route>
  readonly schemes: SlotView<AuthScheme>
}

/** Creates `GET /openapi.json`. The document is built again when routes or authentication schemes change. */
function createOpenApiRoutes({ host, http, routes, schemes }: OpenApiOptions): Record<string, Route> {
  let made: { readonly version: string; readonly text: string } | undefined
  const versionNow = () => `${routes.version} ${schemes.version}`
  const make = async (ctx: CallContext) => {
    const version = versionNow()
    const { openApiDocument } = await import('./openapi-document.ts')
    const report = await host.report(ctx)
    const document = openApiDocument({
      version: report.version,
      routes: served(routes, report),
      codes: await http.codes(ctx),
      schemes: schemes.entries(),
    })
    return { version, text: JSON.stringify(document, null, 2) }
  }
  return {
    openapi: {
      method: 'GET',
      path: '/openapi.json',
      summary: 'Read the OpenAPI 3.1 document of the API',
      scope: 'read',
      guide: true,
      responses: ok('The document.', OBJECT),
      async handle(_request, ctx) {
        if (made?.version !== versionNow()) made = await make(ctx)
        return { text: made.text, headers: { 'Content-Type': 'application/json; charset=utf-8' } }
      },
    },
  }
}

/** Returns the routes that the server serves. An isolated plugin cannot add methods to a path of a plugin in this process. */
function served(routes: SlotView<Route>, { plugins }: HostReport): [string, Route][] {
  const inProcess = new Set(plugins.filter(plugin => plugin.isolation === 'in-process').map(plugin => plugin.name))
  const isOwn = (name: string) => inProcess.has(routes.owner(name) ?? '')
  const all = routes.entries()
  const paths = new Set(all.filter(([name]) => isOwn(name)).map(([, { path }]) => path))
  return all.filter(([name, { path }]) => isOwn(name) || !paths.has(path))
}
