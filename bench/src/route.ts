import { fileURLToPath } from 'node:url'
import { MESSAGE } from './chat-load.ts'
import { requestFor } from './client.ts'
import { compared, measure } from './compare.ts'
import type { Load } from './load.ts'
import type { Options } from './options.ts'
import { freePort } from './processes.ts'
import type { Figure } from './report.ts'
import { type Server, start } from './server.ts'
import { peer, scratch, svcServe } from './svc.ts'

const CONNECTIONS = 64
const PLUGIN = fileURLToPath(new URL('../peers/plugin-route', import.meta.url))

/** The default configuration, and the plugin that adds the route. */
const DEFAULT = { plugins: [PLUGIN] }
/** Without the log line and CORS, which users can disable. */
const STRIPPED = { ...DEFAULT, log: { level: 'warn' }, server: { cors: { enabled: false } } }

/** A trivial route: same schema and response as the koa application with router, body parser and ajv. */
export async function* route({ svc, rounds, ms }: Options): AsyncGenerator<Figure> {
  await using stack = new AsyncDisposableStack()
  const serve = async (config: object): Promise<Server> => {
    const folder = stack.use(scratch())
    const port = await freePort()
    return stack.use(await start(svcServe(svc, port, folder.path, config), port))
  }
  const servePeer = async (name: string): Promise<Server> => {
    const port = await freePort()
    return stack.use(await start(peer(name, port), port))
  }
  const ours = await serve(DEFAULT)
  const stripped = await serve(STRIPPED)
  const koa = await servePeer('koa-chat')
  const bare = await servePeer('bare-chat')
  const servers = { ours, stripped, koa, bare }
  const paths = { ours: '/bench/route', stripped: '/bench/route', koa: '/api/v1/chat', bare: '/' }
  const { rates, costs } = await measure(servers, ({ port }, name) => loadOf(port, paths[name], ms), rounds)

  const what = `a trivial route, ${CONNECTIONS} connections`
  const cpu = { bench: 'route', unit: 'µs a request', better: 'less' } as const
  yield { ...cpu, ...compared(`${what}, processor time`, costs, 'ours', 'koa'), anchor: 'plain koa', must: 1.4, aim: 1 }
  yield { ...cpu, ...compared(`${what}, processor time`, costs, 'ours', 'bare'), anchor: 'bare node:http' }
  yield {
    ...cpu,
    ...compared(`${what}, stripped (no log line, no CORS), processor time`, costs, 'stripped', 'koa'),
    anchor: 'plain koa',
  }
  yield { bench: 'route', ...compared(what, rates, 'ours', 'koa'), unit: 'req/s', anchor: 'plain koa', better: 'more' }
}

const loadOf = (port: number, path: string, ms: number): Load => ({
  port,
  connections: CONNECTIONS,
  ms,
  request: requestFor('POST', path, { message: MESSAGE }),
  problemOf: ({ body }) => (body.includes(`"response":"You said: ${MESSAGE}"`) ? undefined : 'not the reply'),
})
