import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server'
import { APP_TYPE } from '@svc/mcp-protocol'
import { McpServer as McpServer1 } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'

export type Answer = (request: IncomingMessage, response: ServerResponse) => unknown

export interface Listening extends AsyncDisposable {
  /** Without a slash at its end. */
  readonly url: string
}

/** A server on a free port of the loopback. */
export async function listen(answer: Answer): Promise<Listening> {
  const server = createServer((request, response) => void answer(request, response))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
    },
  }
}

const info = { name: 'remote', version: '1.0.0' }
const greeting = (who: string) => ({ content: [{ type: 'text' as const, text: `hello from ${who}` }] })

/** The address of the app that both servers have. */
export const APP = 'ui://remote/page'
const page = () => ({ contents: [{ uri: APP, mimeType: APP_TYPE, text: '<h1>An app</h1>' }] })

/** A server of the tool protocol by its official SDK: 2 speaks 2026-07-28 (and older), 1 what was before. One tool: `greet`. */
const SDKS: Readonly<Record<1 | 2, () => Answer>> = {
  2() {
    const handler = createMcpHandler(() => {
      const server = new McpServer(info)
      server.registerTool('greet', { description: 'Greets.' }, () => greeting('v2'))
      server.registerResource('page', APP, { mimeType: APP_TYPE }, page)
      return server
    })
    return (request, response) => overNode(handler.fetch, request, response)
  },
  1: () => async (request, response) => {
    const server = new McpServer1(info)
    server.registerTool('greet', { description: 'Greets.' }, () => greeting('v1'))
    server.registerResource('page', APP, { mimeType: APP_TYPE }, page)
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined })
    await server.connect(transport as Parameters<typeof server.connect>[0])
    response.on('close', () => void server.close())
    await transport.handleRequest(request, response)
  },
}

/** A handler of the web on a server of Node. */
async function overNode(handle: (request: Request) => Promise<Response>, request: IncomingMessage, response: ServerResponse) {
  const { method = 'GET', url = '/', headers } = request
  const body = method === 'POST' ? { body: await buffer(request) } : {}
  const answer = await handle(
    new Request(`http://${headers.host}${url}`, { method, headers: headers as Record<string, string>, ...body })
  )
  response.writeHead(answer.status, Object.fromEntries(answer.headers))
  if (answer.body) Readable.fromWeb(answer.body as Parameters<typeof Readable.fromWeb>[0]).pipe(response)
  else response.end()
}

export interface Remote extends Listening {
  /** Of all requests so far. */
  readonly headers: readonly IncomingHttpHeaders[]
}

/** The same behind a door: `refuse` answers who may not come in. */
export async function openRemote(
  sdk: 1 | 2,
  refuse: (request: IncomingMessage, response: ServerResponse) => boolean = () => false
): Promise<Remote> {
  const headers: IncomingHttpHeaders[] = []
  const answer = SDKS[sdk]()
  const listening = await listen((request, response) => {
    headers.push(request.headers)
    return refuse(request, response) || answer(request, response)
  })
  return { ...listening, url: `${listening.url}/mcp`, headers }
}

/** A server without sessions whose tool can change between two requests. */
export interface Changing extends AsyncDisposable {
  readonly url: string
  /** The description of the tool at each call. */
  readonly calls: readonly string[]
  /** Changes the description of the tool. */
  change(description: string): void
  end(): Promise<void>
  /** Another server takes the port. */
  begin(): Promise<void>
}

export async function openChanging(): Promise<Changing> {
  const calls: string[] = []
  let description = 'Greets.'
  const answer: Answer = async (request, response) => {
    const server = new McpServer1(info)
    server.registerTool('greet', { description }, () => {
      calls.push(description)
      return { content: [{ type: 'text', text: description }] }
    })
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined })
    await server.connect(transport as Parameters<typeof server.connect>[0])
    response.on('close', () => void server.close())
    await transport.handleRequest(request, response)
  }
  let server = createServer((request, response) => void answer(request, response))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  const end = async () => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  }
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    calls,
    change(words) {
      description = words
    },
    end,
    async begin() {
      server = createServer((request, response) => void answer(request, response))
      await once(server.listen(port, '127.0.0.1'), 'listening')
    },
    [Symbol.asyncDispose]: end,
  }
}
