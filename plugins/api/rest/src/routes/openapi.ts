import type { Host, HostReport, SlotView, Use } from '@svc/core'
import type { AuthScheme, Http, Route } from '@svc/core/contracts'
import { OBJECT, ok } from '../schemas.ts'

interface OpenApiParts {
  readonly host: Host
  readonly http: Http
  readonly routes: SlotView<Route>
  readonly schemes: SlotView<AuthScheme>
}

/** `GET /openapi.json`; made again when routes or credentials came or went. */
export function createOpenApiRoutes({ host, http, routes, schemes }: OpenApiParts): Record<string, Route> {
  let made: { readonly version: string; readonly text: string } | undefined
  const versionNow = () => `${routes.version} ${schemes.version}`
  const make = async (use: Use) => {
    const version = versionNow()
    const { openApiDocument } = await import('../openapi-document.ts')
    const report = await host.report(use)
    const document = openApiDocument({
      version: report.version,
      routes: served(routes, report),
      codes: await http.codes(use),
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
      async handle(_request, use) {
        if (made?.version !== versionNow()) made = await make(use)
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
