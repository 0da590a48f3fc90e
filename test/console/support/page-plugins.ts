import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { startHost } from '@svc/core'
import { Http, Tokens } from '@svc/core/contracts'
import { testContext } from '@svc/testing'
import { DEFAULTS } from '../../../cli/src/curated.ts'

/** The page that a test attacks from: the test runs the attacks in it, with all that scripts of a page have. */
const INDEX = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Page</title><script src="bridge.js"></script><script src="page.js"></script></head>
<body><h1>A page</h1><script>window.inline = true</script><img src="x" onerror="window.handler = true" alt=""></body>
</html>`
const STATIC = '<!doctype html><html lang="en"><title>Without the bridge</title><h1>Nothing</h1></html>'

/** A plugin with routes and a page. Each route says who asked, and counts. */
const code = (name: string) => `import { definePlugin } from '@svc/core'
import { ConsolePages, Routes } from '@svc/core/contracts'
let count = 0
const route = (method, path, scope) => ({ method, path, summary: 'Counts', scope,
  handle: async (request, ctx) => ({ body: { count: ++count, who: ctx.principal.id, headers: Object.keys(request.headers), got: request.body ?? null } }) })
export default definePlugin({
  setup(scope) {
    scope.add(ConsolePages, '${name}', { title: '${titleOf(name)}', scope: 'read' })
    scope.add(ConsolePages, '${name}-admin', { title: '${titleOf(name)} settings', scope: 'admin', file: 'admin.html' })
    scope.add(ConsolePages, '${name}-static', { title: '${titleOf(name)} static', scope: 'read', file: 'static.html' })
    scope.add(Routes, '${name}_read', route('GET', '/${name}/things', 'read'))
    scope.add(Routes, '${name}_write', { ...route('POST', '/${name}/things', 'tools'), body: { type: 'object' } })
    scope.add(Routes, '${name}_secret', route('GET', '/${name}/secret', 'read'))
  },
})
`

const titleOf = (name: string) => `${name[0]!.toUpperCase()}${name.slice(1)}`

/** Writes the package of such a plugin. `rights`: what its page may ask for. */
export async function writePagePlugin(folder: string, name: string, rights: readonly string[]): Promise<string> {
  const place = join(folder, name)
  await mkdir(join(place, 'console'), { recursive: true })
  const page = { title: titleOf(name), scope: 'read' }
  const route = (method: string, scope: string, path: string) => ({ method, path: `/${name}/${path}`, scope })
  const manifest = {
    name: `svc-plugin-${name}`,
    version: '1.0.0',
    type: 'module',
    exports: { '.': './index.js', './package.json': './package.json' },
    svc: {
      api: 1,
      kind: 'page',
      contributes: {
        console_pages: {
          [name]: page,
          [`${name}-admin`]: { title: `${page.title} settings`, scope: 'admin', file: 'admin.html' },
          [`${name}-static`]: { title: `${page.title} static`, scope: 'read', file: 'static.html' },
        },
        routes: {
          [`${name}_read`]: route('GET', 'read', 'things'),
          [`${name}_write`]: route('POST', 'tools', 'things'),
          [`${name}_secret`]: route('GET', 'read', 'secret'),
        },
      },
      permissions: { console: rights },
    },
  }
  const files = {
    'package.json': JSON.stringify(manifest),
    'index.js': code(name),
    'secret.html': '<!doctype html><title>Outside of the folder</title>',
    'console/index.html': INDEX,
    'console/admin.html': INDEX,
    'console/static.html': STATIC,
    'console/page.js': 'window.own = true\n',
    'console/.hidden.js': 'window.hidden = true\n',
  }
  for (const [path, text] of Object.entries(files)) await writeFile(join(place, path), text)
  return place
}

/** A server outside, which counts what reaches it. */
export interface Outside extends AsyncDisposable {
  readonly url: string
  readonly requests: string[]
  readonly connections: () => number
}

export async function openOutside(): Promise<Outside> {
  const requests: string[] = []
  let connections = 0
  const sockets = new Set<Socket>()
  const server: Server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url}`)
    response.writeHead(200, { 'access-control-allow-origin': '*', 'content-type': 'text/html' }).end('<h1>outside</h1>')
  })
  server.on('connection', socket => {
    connections++
    sockets.add(socket)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    connections: () => connections,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise(resolve => server.close(resolve))
    },
  }
}

/** A request that has reached the server, and what became of it. */
interface Reached {
  readonly request: string
  readonly status: number
  readonly origin: string | undefined
  readonly hasCredential: boolean
}

interface Person {
  readonly token: string
  readonly revoke: () => Promise<void>
}

/** The curated build with more plugins, and with authentication, in this process. */
export interface CuratedHost extends AsyncDisposable {
  readonly url: string
  /** Makes a token with these scopes. */
  readonly person: (scopes: readonly string[]) => Promise<Person>
  /** What has reached the server. Browsers also report requests that their policies have stopped. */
  readonly reached: Reached[]
}

export async function startCurated(
  pluginsIn: (home: string) => Promise<readonly string[]>,
  config: object = {}
): Promise<CuratedHost> {
  const home = await mkdtemp(join(tmpdir(), 'svc-pages-'))
  const before = process.env.SVC_HOME
  process.env.SVC_HOME = home // plugins write their first-start files
  const folders = await pluginsIn(home)
  const host = await startHost({
    plugins: [
      ...(DEFAULTS.plugins as string[])
        .filter(name => name !== '@svc/plugin-auth-api-key')
        .map(name => name.replace('store-sqlite', 'store-memory')),
      ...folders.map(folder => pathToFileURL(folder)),
    ],
    config: { ...config, server: { port: 0, auth: { enabled: true } } },
    from: [new URL('../../../cli/', import.meta.url).href],
    log: { destination: { write() {} } },
  })
  const ctx = testContext()
  let people = 0
  const { url } = (await host.service(Http).address(ctx))!
  const reached: Reached[] = []
  const onFinish = (message: unknown) => {
    const { request, response } = message as { request: IncomingMessage; response: ServerResponse }
    const { host: asked, origin, cookie, authorization } = request.headers
    if (!url.endsWith(`//${asked}`)) return
    const hasCredential = (cookie ?? authorization) !== undefined
    reached.push({ request: `${request.method} ${request.url}`, status: response.statusCode, origin, hasCredential })
  }
  subscribe('http.server.response.finish', onFinish)
  return {
    url,
    reached,
    async person(scopes) {
      const tokens = host.service(Tokens)
      const { token, info } = await tokens.create({ name: `person-${++people}`, scopes: [...scopes], ttlMs: 3_600_000 }, ctx)
      return { token, revoke: async () => void (await tokens.revoke(info.id, ctx)) }
    },
    async [Symbol.asyncDispose]() {
      unsubscribe('http.server.response.finish', onFinish)
      await host.close()
      if (before === undefined) delete process.env.SVC_HOME
      else process.env.SVC_HOME = before
      await rm(home, { recursive: true, force: true })
    },
  }
}
