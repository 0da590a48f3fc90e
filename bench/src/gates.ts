import { chatLoad } from './chat-load.ts'
import { type Headers, requestFor } from './client.ts'
import { compared, measure } from './compare.ts'
import { type Load, middle } from './load.ts'
import type { Options } from './options.ts'
import { freePort, type Program } from './processes.ts'
import type { Figure } from './report.ts'
import type { Rounds } from './rounds.ts'
import { type Server, start } from './server.ts'
import { scratch, svcServe } from './svc.ts'
import { workers } from './workers.ts'

const CONNECTIONS = 64
const KEY = 'a-key-of-the-benchmark-that-opens-nothing-else'
const NEVER = 1_000_000_000

/** The configuration that enables a gate, and the headers of a caller. */
interface Gate {
  readonly server: object
  headers?(port: number): Headers
}

const SINGLE = {
  authentication: { server: { auth: { enabled: true } }, headers: () => ({ 'X-API-Key': KEY }) },
  limits: { server: { rate_limit: { enabled: true, requests_per_minute: NEVER, requests_per_day: NEVER } } },
  cors: {
    server: { cors: { enabled: true, origins: ['http://bench.example'] } },
    headers: () => ({ Origin: 'http://bench.example' }),
  },
} satisfies Record<string, Gate>

const OFF: Gate = { server: { cors: { enabled: false } } }
const ALL: Gate = {
  server: Object.assign({}, ...Object.values<Gate>(SINGLE).map(item => item.server)),
  headers: port => Object.assign({}, ...Object.values<Gate>(SINGLE).map(item => item.headers?.(port) ?? {})),
}
const GATES = { off: OFF, ...SINGLE, all: ALL }
type Name = keyof typeof GATES

/** A server with these gates and the default store, where limits are counted over all workers. */
async function gated(name: Name, { svc }: Options, folder: string, workers?: number): Promise<Server> {
  const port = await freePort()
  const { server } = GATES[name]
  const config = { server: { ...OFF.server, ...server, ...(workers === undefined ? {} : { workers }) } }
  const program: Program = svcServe(svc, port, folder, config)
  const everywhere = workers !== undefined
  return start({ ...program, env: { ...program.env, SVC_API_KEY: KEY }, everywhere }, port)
}

/** A server with all gates and the default store, for other measurements. */
export const gatesOn = () => ({
  config: { server: ALL.server },
  env: { SVC_API_KEY: KEY },
  headers: (port: number) => headersFor('all', port),
})

const headersFor = (name: Name, port: number): Headers => (GATES[name] as Gate).headers?.(port) ?? {}

/** The cheapest route, which shows the cost of a gate best. */
const smallLoad = (port: number, connections: number, ms: number, headers: Headers): Load => ({
  port,
  connections,
  ms,
  request: requestFor('GET', '/api/v1/modes', undefined, headers),
  problemOf: ({ body }) => (body.includes('"modes":[') ? undefined : 'no modes'),
})

/** The cost of all gates together and of each alone, the cost of a second worker, and how two workers share the load. */
export async function* gates(options: Options): AsyncGenerator<Figure> {
  yield* tracing(options)
  yield* costs(options)
  yield* events(options)
  using folder = scratch()
  using second = scratch()
  await using found = await gated('all', options, folder.path, 1)
  await using two = await gated('all', options, second.path, 2)
  // Each worker has as many: with half of them its commits are half as large, like those of two independent servers.
  const connections = { one: CONNECTIONS, two: 2 * CONNECTIONS }
  const load = ({ port }: Server, name: 'one' | 'two') => chatLoad(port, connections[name], options.ms, headersFor('all', port))
  yield* workers({ one: found, two }, load, options)
}

/** The plugins that read the events of the server. */
const READERS = ['event-feed', 'webhooks', 'logs'].map(name => ({ use: `@svc/plugin-${name}`, enabled: false }))

/** What events cost that no client reads, and no webhook takes. */
async function* events({ svc, rounds, ms }: Options): AsyncGenerator<Figure> {
  using folder = scratch()
  using second = scratch()
  const open = async (where: string, config: object) => {
    const port = await freePort()
    return start(svcServe(svc, port, where, config), port)
  }
  await using on = await open(folder.path, {})
  await using off = await open(second.path, { plugins: READERS })
  const load = ({ port }: Server) => chatLoad(port, CONNECTIONS, ms, {})
  const { rates } = await measure<'on' | 'off'>({ on, off }, load, rounds)
  const what = `durable turns, ${CONNECTIONS} connections, events without a reader`
  const anchor = 'without the plugins that read events'
  yield { bench: 'gates', anchor, ...compared(what, rates, 'on', 'off'), unit: 'req/s', better: 'more', must: 0.99 }
}

/** A part of the traces of a busy server, as is usual, and all of them. */
const TRACES = {
  off: {},
  on: { traces: { enabled: true } },
  every: { traces: { enabled: true }, host: { traces_per_second: 100_000 } },
}

/** The cost of traces: of durable turns, and of the cheapest route. */
async function* tracing(options: Options): AsyncGenerator<Figure> {
  await using stack = new AsyncDisposableStack()
  const servers = {} as Record<keyof typeof TRACES, Server>
  for (const name of Object.keys(TRACES) as (keyof typeof TRACES)[]) {
    const folder = stack.use(scratch())
    const port = await freePort()
    servers[name] = stack.use(
      await start(svcServe(options.svc, port, folder.path, { ...TRACES[name], server: OFF.server }), port)
    )
  }
  const { rounds, ms } = options
  const loads = [
    ['durable turns', chatLoad],
    ['GET /api/v1/modes', (port: number, connections: number, length: number) => smallLoad(port, connections, length, {})],
  ] as const
  for (const [what, load] of loads) {
    const { rates, costs: processor } = await measure(servers, server => load(server.port, CONNECTIONS, ms), rounds)
    for (const name of ['on', 'every'] as const) {
      const words = `${what}, ${CONNECTIONS} connections, ${name === 'on' ? 'traces on' : 'every trace recorded'}`
      const about = { bench: 'gates', anchor: 'traces off' } as const
      yield {
        ...about,
        ...compared(words, rates, name, 'off'),
        unit: 'req/s',
        better: 'more',
        ...(name === 'on' ? { must: 0.95 } : {}),
      }
      yield { ...about, ...compared(`${words}, processor time`, processor, name, 'off'), unit: 'µs a request', better: 'less' }
    }
  }
}

async function* costs(options: Options): AsyncGenerator<Figure> {
  await using stack = new AsyncDisposableStack()
  const servers = {} as Record<Name, Server>
  for (const name of Object.keys(GATES) as Name[]) {
    const folder = stack.use(scratch())
    servers[name] = stack.use(await gated(name, options, folder.path))
  }
  const { off, all } = servers
  const { rounds, ms } = options
  const loadOf = (load: typeof smallLoad, connections: number) => (server: Server, name: Name) =>
    load(server.port, connections, ms, headersFor(name, server.port))
  const chats = await measure<'off' | 'all'>({ off, all }, loadOf(chatLoad, CONNECTIONS), rounds)
  yield { ...throughput(`durable turns, ${CONNECTIONS} connections`, chats.rates), must: 0.8 }
  yield processorTime(`durable turns, ${CONNECTIONS} connections`, chats.costs)
  const small = await measure<'off' | 'all'>({ off, all }, loadOf(smallLoad, CONNECTIONS), rounds)
  yield throughput(`GET /api/v1/modes, ${CONNECTIONS} connections`, small.rates)
  yield processorTime(`GET /api/v1/modes, ${CONNECTIONS} connections`, small.costs)
  const single = await measure(servers, loadOf(smallLoad, 1), rounds, 2_000)
  for (const name of Object.keys(GATES) as Name[]) if (name !== 'off') yield added(name, single.p50)
}

const BENCH = { bench: 'gates', anchor: 'all gates off' } as const

const throughput = (what: string, rates: Rounds<'off' | 'all'>): Figure => ({
  ...BENCH,
  ...compared(`${what}, all gates on`, rates, 'all', 'off'),
  unit: 'req/s',
  better: 'more',
})

const processorTime = (what: string, costs: Rounds<'off' | 'all'>): Figure => ({
  ...BENCH,
  ...compared(`${what}, all gates on, processor time`, costs, 'all', 'off'),
  unit: 'µs a request',
  better: 'less',
})

/** The cost of a gate in the median response of a single connection. */
function added(name: Name, p50: Rounds<Name>): Figure {
  const { what, ratio, ...ms } = compared(`GET /api/v1/modes, one connection, p50 with ${WORDS[name]}`, p50, name, 'off')
  const [value, anchorValue] = [ms.value * 1000, ms.anchorValue * 1000]
  const more = middle(p50[name].map((item, round) => item - p50.off[round]!)) * 1000
  const note = `adds ${more.toFixed(0)} µs`
  return { ...BENCH, what, value, anchorValue, ratio, unit: 'µs', better: 'less', note }
}

const WORDS: Readonly<Record<Name, string>> = {
  off: 'no gate',
  authentication: 'an API key',
  limits: 'limits that are never reached',
  cors: 'CORS and an Origin',
  all: 'all of them',
}
