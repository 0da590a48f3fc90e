import type { Host, HostReport, Log, SlotView, CallContext } from '@svc/core'
import type { AuthScheme, Check, Http, Recommend, Route, Workflows } from '@svc/core/contracts'
import { createProbes } from './probes.ts'
import { createChatRoutes } from './routes/chat.ts'
import { createConfigRoutes } from './routes/config.ts'
import { createConversationRoutes } from './routes/conversations.ts'
import { createDiscoveryRoutes } from './routes/discovery.ts'
import { createHealthRoutes } from './routes/health.ts'
import { createRecommendRoutes } from './routes/recommend.ts'
import { createRunRoutes } from './routes/runs.ts'
import { createStatusRoutes } from './routes/status.ts'
import { createWorkflowRoutes } from './routes/workflows.ts'
import { createRunStreams } from './frames.ts'
import { OBJECT, ok } from './schemas.ts'

/** What the routes stand on. Without workflows or recommendations there are no routes for them. */
type RouteParts = Parameters<typeof createChatRoutes>[0] &
  Parameters<typeof createConversationRoutes>[0] &
  Parameters<typeof createConfigRoutes>[0] &
  Parameters<typeof createDiscoveryRoutes>[0] &
  Omit<Parameters<typeof createHealthRoutes>[0] & Parameters<typeof createStatusRoutes>[0], 'probes'> &
  Parameters<typeof createOpenApiRoutes>[0] & {
    readonly checks: SlotView<Check>
    readonly log: Log
    readonly workflows?: Workflows | undefined
    readonly recommend?: Recommend | undefined
  }

/** Streams of runs end before the server waits for what is open. */
export const LEAVING = -100

/** All routes of the API by name; `leave` ends what would stay open for as long as a run does. */
export function createRoutes(parts: RouteParts): { readonly routes: Record<string, Route>; readonly leave: () => void } {
  const { workflows, recommend } = parts
  const probes = createProbes(parts.checks, parts.log)
  const streams = workflows && createRunStreams(workflows)
  const routes = {
    ...createChatRoutes(parts),
    ...createConversationRoutes(parts),
    ...createConfigRoutes(parts),
    ...createDiscoveryRoutes(parts),
    ...createHealthRoutes({ ...parts, probes }),
    ...createStatusRoutes({ ...parts, probes }),
    ...createOpenApiRoutes(parts),
    ...(recommend ? createRecommendRoutes(recommend) : {}),
    ...(workflows ? createWorkflowRoutes(workflows) : {}),
    ...(workflows && streams ? createRunRoutes({ workflows, streams }) : {}),
  }
  return { routes, leave: () => streams?.leave() }
}

interface OpenApiParts {
  readonly host: Host
  readonly http: Http
  readonly routes: SlotView<Route>
  readonly schemes: SlotView<AuthScheme>
}

/** `GET /openapi.json`; made again when routes or credentials came or went. */
function createOpenApiRoutes({ host, http, routes, schemes }: OpenApiParts): Record<string, Route> {
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
      summary: 'This description of the API, as OpenAPI 3.1',
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

/** Paths of the server are described by the server: what an isolated plugin adds there is not served. */
function served(routes: SlotView<Route>, { plugins }: HostReport): [string, Route][] {
  const inProcess = new Set(plugins.filter(one => one.isolation === 'in-process').map(one => one.name))
  const isOwn = (name: string) => inProcess.has(routes.owner(name) ?? '')
  const all = routes.entries()
  const paths = new Set(all.filter(([name]) => isOwn(name)).map(([, { path }]) => path))
  return all.filter(([name, { path }]) => isOwn(name) || !paths.has(path))
}
