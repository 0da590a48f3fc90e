import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Client, createClient } from './client.ts'
import { newHome, type Service, startService } from './service.ts'
import { configureFew } from './tides.ts'

export interface NodeOptions {
  /** The configuration; `store` and `cluster` are the same for all nodes of a cluster. */
  readonly config: object
  readonly env?: Readonly<Record<string, string>>
  readonly args?: readonly string[]
  /** Only the plugins that a chat needs, and these: it starts faster. */
  readonly few?: readonly string[]
  /** Default: a free one. */
  readonly port?: number
  /** The home of a node that has ended, to use it again; without it, the node has one of its own, gone with it. */
  readonly home?: string
}

/** A node of a cluster: a server with a home of its own, which goes with it. */
export async function startNode({ config, env = {}, args = [], few, port, home: kept }: NodeOptions): Promise<Service> {
  const home = kept ?? (await newHome())
  if (few) await configureFew(home, { ...config }, few)
  else await writeFile(join(home, 'svc.config.json'), JSON.stringify(config))
  const whole = port === undefined ? env : { ...env, SVC_SERVER__PORT: String(port) }
  const service = await startService({ home, args, env: whole, ownPort: port !== undefined })
  return {
    ...service,
    async [Symbol.asyncDispose]() {
      await service[Symbol.asyncDispose]()
      if (kept === undefined) await rm(home, { recursive: true, force: true })
    },
  }
}

/** A client of each, with a connection for each request. */
export const clientsOf = (nodes: readonly Pick<Service, 'url'>[]): Client[] =>
  nodes.map(({ url }) => createClient(url, { keepAlive: false }))

/** A conversation with an MCP server of the older era, through any node. */
export async function beginMcpSession(client: Client) {
  const accept = { accept: 'application/json, text/event-stream' }
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1.0.0' } }
  const body = { jsonrpc: '2.0', id: 0, method: 'initialize', params }
  const begun = await client.send({ method: 'POST', path: '/mcp', headers: accept, body })
  const id = begun.headers['mcp-session-id']
  if (typeof id !== 'string') throw new Error(`there is no session: ${begun.status} ${begun.text}`)
  const headers = { ...accept, 'mcp-session-id': id, 'mcp-protocol-version': '2025-11-25' }
  return {
    list: (by: Client) =>
      by.send({ method: 'POST', path: '/mcp', headers, body: { jsonrpc: '2.0', id: 1, method: 'tools/list' } }),
    end: (by: Client) => by.send({ method: 'DELETE', path: '/mcp', headers }),
  }
}

/** The section `server` of nodes behind it: its health check names this host. */
export const BEHIND_BALANCER = { allowed_hosts: ['svc'] } as const
const HAPROXY = new URL('../../deploy/haproxy.cfg', import.meta.url)
const NODE_LINES = /(?: {2}server node-\d+ node-\d+:8080\n)+/

export interface Balancer extends AsyncDisposable {
  readonly url: string
}

/** HAProxy with the file of the deployment, for nodes on these ports. */
export async function startBalancer(port: number, nodes: readonly number[]): Promise<Balancer> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-balancer-'))
  const lines = nodes.map((node, at) => `  server node-${at + 1} 127.0.0.1:${node}\n`).join('')
  const text = await readFile(HAPROXY, 'utf8')
  if (!NODE_LINES.test(text)) throw new Error('deploy/haproxy.cfg names no nodes')
  const file = join(folder, 'haproxy.cfg')
  await writeFile(file, text.replace('bind :8080', `bind 127.0.0.1:${port}`).replace(NODE_LINES, lines))
  const child: ChildProcess = spawn('haproxy', ['-db', '-f', file], { stdio: ['ignore', 'ignore', 'inherit'] })
  const exit = once(child, 'exit')
  return {
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await exit
      await rm(folder, { recursive: true, force: true })
    },
  }
}

export const isReady = async (url: string): Promise<boolean> =>
  (await fetch(`${url}/health/ready`).catch(() => undefined))?.status === 200

/** Clients that post turns one after the other until they are stopped. What is not 200 is in `failed`. */
export function startTurns(url: string, clients: number, headers: Readonly<Record<string, string>> = {}) {
  const failed: string[] = []
  let isOver = false
  let answers = 0
  const request = {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ message: 'on and on' }),
  }
  const ask = async () => {
    const answer = await fetch(`${url}/api/v1/chat`, request)
    const text = await answer.text()
    if (answer.status === 200) answers++
    else failed.push(`${answer.status} ${text}`)
  }
  const running = Array.from({ length: clients }, async () => {
    while (!isOver) await ask().catch((error: unknown) => failed.push(String(error)))
  })
  return {
    failed,
    answers: () => answers,
    /** Resolves after so many more answers, or the first failure. */
    async more(count: number) {
      for (const goal = answers + count; answers < goal && failed.length === 0; ) await sleep(15)
    },
    async stop() {
      isOver = true
      await Promise.all(running)
    },
  }
}
