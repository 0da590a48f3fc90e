import { fileURLToPath } from 'node:url'
import { requestFor } from './client.ts'
import { compared, measure } from './compare.ts'
import type { Load } from './load.ts'
import type { Options } from './options.ts'
import { freePort } from './processes.ts'
import type { Figure } from './report.ts'
import { type Server, start } from './server.ts'
import { peer, scratch, svcServe } from './svc.ts'

const CONNECTIONS = 16
const TOOLS = fileURLToPath(new URL('../peers/mcp-tools.js', import.meta.url))
const VERSION = '2026-07-28'

/** A request of the stateless era, as its clients write it. */
function stateless(method: string, params: object, name?: string): Buffer {
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': VERSION,
    'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1.0.0' },
    'io.modelcontextprotocol/clientCapabilities': {},
  }
  const headers = { Accept: 'application/json, text/event-stream', 'MCP-Protocol-Version': VERSION, 'Mcp-Method': method }
  const body = { jsonrpc: '2.0', id: 1, method, params: { ...params, _meta } }
  return requestFor('POST', '/mcp', body, { ...headers, ...(name === undefined ? {} : { 'Mcp-Name': name }) })
}

const CALL = stateless('tools/call', { name: 'echo', arguments: { text: 'hello' } }, 'echo')
const LIST = stateless('tools/list', {})

/** Direct tool calls and lists of 200 tools: the cost of the protocol. */
export async function* mcp({ svc, rounds, ms }: Options): AsyncGenerator<Figure> {
  using folder = scratch()
  const [first, two, three] = [await freePort(), await freePort(), await freePort()]
  const config = { plugins: [TOOLS], mcp: { server: { enabled: true, tools: ['echo', 'tool_*'] } } }
  await using ours = await start(svcServe(svc, first, folder.path, config), first)
  await using sdk = await start(peer('mcp-sdk', two), two)
  await using raw = await start(peer('mcp-raw', three), three)
  const loadOf =
    (request: Buffer, shows: string) =>
    ({ port }: Server): Load => ({
      port,
      connections: CONNECTIONS,
      ms,
      request,
      problemOf: ({ body }) => (body.includes(shows) ? undefined : 'not what was asked for'),
    })
  const calls = await measure({ ours, sdk, raw }, loadOf(CALL, '"text":"hello"'), rounds)
  yield cost('tools/call', calls.costs, 'sdk', { must: 1, aim: 0.25 })
  yield cost('tools/call', calls.costs, 'raw')
  const lists = await measure({ ours, sdk, raw }, loadOf(LIST, '"name":"tool_199"'), rounds, 3_000)
  yield cost('tools/list of 200', lists.costs, 'sdk', { must: 0.5 })
  yield cost('tools/list of 200', lists.costs, 'raw', { aim: 1 })
}

const WORDS = { sdk: "the SDK's low-level server", raw: 'JSON over bare node:http' } as const

function cost(
  what: string,
  costs: Parameters<typeof compared<'ours' | 'sdk' | 'raw'>>[1],
  anchor: keyof typeof WORDS,
  targets: Pick<Figure, 'must' | 'aim'> = {}
): Figure {
  const figures = compared(`${what}, ${CONNECTIONS} connections, processor time`, costs, 'ours', anchor)
  return { bench: 'mcp', ...figures, unit: 'µs a request', anchor: WORDS[anchor], better: 'less', ...targets }
}
