import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { requestFor } from './client.ts'
import { compared, measure } from './compare.ts'
import type { Load } from './load.ts'
import type { Options } from './options.ts'
import { cpuOf, freePort, type Program } from './processes.ts'
import type { Figure } from './report.ts'
import { type Server, start } from './server.ts'
import { peer, scratch, svcServe } from './svc.ts'

const CONNECTIONS = 16
const VERSION = '2025-11-25'
const SERVER = fileURLToPath(new URL('../peers/mcp-stdio.js', import.meta.url))
const product = (path: string) => fileURLToPath(new URL(`../node_modules/${path}`, import.meta.url))
const ACCEPT = { Accept: 'application/json, text/event-stream' }

type Name = 'ours' | 'hand' | 'mcp-proxy' | 'supergateway'

/** Calls over HTTP, in a session, to a tool server that is a program: what stands between costs, without that program itself. */
export async function* bridge({ svc, rounds, ms }: Options): AsyncGenerator<Figure> {
  using folder = scratch()
  const port = { ours: await freePort(), hand: await freePort(), proxy: await freePort(), super: await freePort() }
  const clients = [{ name: 'far', command: process.execPath, args: [SERVER] }]
  const config = { mcp: { server: { enabled: true, tools: ['far__*'] }, clients } }
  await using ours = await between(svcServe(svc, port.ours, folder.path, config), port.ours)
  await using hand = await between(peer('mcp-by-hand', port.hand, SERVER), port.hand)
  await using proxy = await between(proxyOn(port.proxy), port.proxy, '/ping')
  await using gateway = await between(gatewayOn(port.super), port.super)
  const servers: Record<Name, Server> = { ours, hand, 'mcp-proxy': proxy, supergateway: gateway }
  const requests = {} as Record<Name, (connection: number) => Buffer>
  for (const name of Object.keys(servers) as Name[]) requests[name] = await callOf(name, servers[name].port)
  const loadOf = (server: Server, name: Name): Load => ({
    port: server.port,
    connections: CONNECTIONS,
    ms,
    request: requests[name],
    problemOf: ({ body }) => (body.includes('"text":"hello"') ? undefined : 'not what was asked for'),
  })
  const { costs } = await measure<Name>(servers, loadOf, rounds, 5_000)
  const rest = { bench: 'mcp', unit: 'µs a call', better: 'less' } as const
  const what = `bridge from HTTP to a program, ${CONNECTIONS} connections, processor time`
  for (const name of ['mcp-proxy', 'supergateway'] as const)
    yield { ...rest, ...compared(what, costs, 'ours', name), anchor: name, must: 0.5, note: 'the better of the two counts' }
  yield { ...rest, ...compared(what, costs, 'ours', 'hand'), anchor: 'by hand', aim: 2.5 }
}

const proxyOn = (port: number): Program => {
  const options = ['--host', '127.0.0.1', '--port', String(port), '--server', 'stream']
  return { args: [product('mcp-proxy/dist/bin/mcp-proxy.mjs'), ...options, '--', process.execPath, SERVER] }
}

const gatewayOn = (port: number): Program => {
  const options = ['--outputTransport', 'streamableHttp', '--stateful', '--healthEndpoint', '/health']
  const command = `${process.execPath} ${SERVER}`
  return { args: [product('supergateway/dist/index.js'), '--stdio', command, '--port', String(port), ...options] }
}

/** A server measured without its child program and the shell that started it. */
async function between(program: Program, port: number, path?: string): Promise<Server> {
  const server = await start(program, port, path)
  return {
    port,
    get pids() {
      return server.pids
    },
    startMs: server.startMs,
    cpu: () => cpuOf(server.pids.filter(pid => !isBehind(pid))),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

function isBehind(pid: number): boolean {
  try {
    const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
    return words[1] === SERVER || (words.at(-2)?.endsWith(SERVER) === true && words.length < 5)
  } catch {
    return true
  }
}

/**
 * Opens a session and returns requests that call the tool in it. Each connection has its own, because concurrent requests of a
 * session must have different ids.
 */
async function callOf(name: Name, port: number): Promise<(connection: number) => Buffer> {
  const url = `http://127.0.0.1:${port}/mcp`
  const headers = { ...ACCEPT, 'Content-Type': 'application/json' }
  const hello = { protocolVersion: VERSION, capabilities: {}, clientInfo: { name: 'bench', version: '1.0.0' } }
  const initialize = { jsonrpc: '2.0', id: 0, method: 'initialize', params: hello }
  const opened = await fetch(url, { method: 'POST', headers, body: JSON.stringify(initialize) })
  const session = opened.headers.get('mcp-session-id')
  if (opened.status !== 200 || session === null) throw new Error(`${name} opened no session: ${await opened.text()}`)
  await opened.text()
  const within = { ...ACCEPT, 'Mcp-Session-Id': session, 'MCP-Protocol-Version': VERSION }
  const ready = { jsonrpc: '2.0', method: 'notifications/initialized' }
  await fetch(url, { method: 'POST', headers: { ...headers, ...within }, body: JSON.stringify(ready) }).then(item => item.text())
  const tool = name === 'ours' ? 'far__echo' : 'echo'
  const params = { name: tool, arguments: { text: 'hello' } }
  return connection => requestFor('POST', '/mcp', { jsonrpc: '2.0', id: connection + 1, method: 'tools/call', params }, within)
}
