import { readFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'

const APP_TYPE = 'text/html;profile=mcp-app'

/** The app that a test attacks from. It starts, keeps what it gets, and does nothing else. */
const HOSTILE = `<!doctype html>
<html lang="en"><head><title>App</title></head><body><h1>An app</h1>
<script>
  window.inline = true
  window.got = []
  const send = message => parent.postMessage({ jsonrpc: '2.0', ...message }, '*')
  addEventListener('message', ({ data }) => {
    got.push(data)
    if (data.method === 'ping') send({ id: data.id, result: {} })
    if (data.id === 'begin') send({ method: 'ui/notifications/initialized', params: {} })
    if (data.id === 'begin') window.started = data.result
  })
  send({ id: 'begin', method: 'ui/initialize', params: { protocolVersion: '2026-01-26', appInfo: { name: 'x', version: '1' }, appCapabilities: {} } })
</script></body></html>`

/** An app by the official SDK: it shows what it gets, and calls a tool. */
async function official(): Promise<string> {
  const file = new URL(import.meta.resolve('@modelcontextprotocol/ext-apps/app-with-deps'))
  const code = await readFile(file, 'utf8')
  const name = / as App[,}]/.test(code) ? /([\w$]+) as App[,}]/.exec(code)![1] : 'App'
  return `<!doctype html>
<html lang="en"><head><title>Weather</title></head><body>
<p id="input"></p><p id="result"></p><p id="theme"></p><p id="called"></p>
<button id="refresh">Refresh</button><button id="link">Link</button><button id="say">Say</button>
<script type="module">${code.replaceAll('</script', '<\\/script')}
const app = new ${name}({ name: 'weather', version: '1.0.0' }, {})
const show = (id, value) => { document.getElementById(id).textContent = JSON.stringify(value) }
app.ontoolinput = params => show('input', params.arguments)
app.ontoolresult = result => show('result', result.structuredContent)
app.onhostcontextchanged = context => show('theme', context.theme)
const on = (id, run) => document.getElementById(id).addEventListener('click', () => run().then(value => show('called', value), error => show('called', error.message)))
on('refresh', () => app.callServerTool({ name: 'refresh', arguments: { city: 'Bonn' } }))
on('link', () => app.openLink({ url: 'https://weather.example/bonn' }))
on('say', () => app.sendMessage({ role: 'user', content: [{ type: 'text', text: 'Compare it with Cologne' }] }))
await app.connect()
show('theme', app.getHostContext().theme)
</script></body></html>`
}

export interface AppServers extends AsyncDisposable {
  /** The text of mcp.yaml. */
  readonly yaml: string
  /** The calls that have reached a server: `apps refresh`. */
  readonly calls: string[]
  /** The resources that were read. */
  readonly reads: string[]
  /** Changes the app of the tool `show`. */
  readonly change: (uri: string) => void
}

/** Two MCP servers over HTTP, by the official SDK: one with apps, and another. */
export async function openAppServers(): Promise<AppServers> {
  const calls: string[] = []
  const reads: string[] = []
  let shown = 'ui://apps/hostile'
  const weather = await official()
  const servers = await Promise.all([
    listenMcp(() => appServer({ calls, reads, shown, weather })),
    listenMcp(() => {
      const server = new McpServer({ name: 'other', version: '1.0.0' })
      addTool(server, calls, 'steal', undefined)
      return server
    }),
  ])
  const entries = servers.map(({ url }, at) => `  - { name: ${['apps', 'other'][at]}, url: "${url}", effects: [read] }\n`)
  return {
    yaml: `clients:\n${entries.join('')}`,
    calls,
    reads,
    change: uri => void (shown = uri),
    async [Symbol.asyncDispose]() {
      await Promise.all(servers.map(one => one.close()))
    },
  }
}

interface AppServerOptions {
  readonly calls: string[]
  readonly reads: string[]
  readonly shown: string
  readonly weather: string
}

/** The tools with apps, and what the server says for their addresses. */
function appServer({ calls, reads, shown, weather }: AppServerOptions): McpServer {
  const server = new McpServer({ name: 'apps', version: '1.0.0' })
  const tools: Record<string, object | undefined> = {
    show: { resourceUri: shown },
    weather: { resourceUri: 'ui://apps/weather' },
    refresh: { visibility: ['app'] },
    careful: undefined,
    private: { visibility: ['model'] },
    huge: { resourceUri: 'ui://apps/huge' },
    large: { resourceUri: 'ui://apps/large' },
    plain: { resourceUri: 'ui://apps/plain' },
    file: { resourceUri: 'ui://apps/file' },
    away: { resourceUri: 'ui://apps/away' },
    missing: { resourceUri: 'ui://apps/missing' },
    scheme: { resourceUri: 'file:///etc/passwd' },
    web: { resourceUri: 'https://outside.example/app' },
    script: { resourceUri: 'javascript:alert(1)' },
  }
  for (const [name, ui] of Object.entries(tools)) addTool(server, calls, name, ui)
  const page = (text: string, other: object = {}) => ({ mimeType: APP_TYPE, text, ...other })
  const resources: Record<string, object> = {
    hostile: page(HOSTILE, { _meta: { ui: { csp: { connectDomains: ['*'], resourceDomains: ['*'], frameDomains: ['*'] } } } }),
    second: page(HOSTILE),
    weather: page(weather),
    huge: page('x'.repeat(10 * 1_048_576)),
    large: page('x'.repeat(3 * 1_048_576)),
    plain: page(HOSTILE, { mimeType: 'text/html' }),
    file: page(HOSTILE, { uri: 'file:///etc/passwd' }),
    away: page(HOSTILE, { uri: 'https://outside.example/app' }),
    undeclared: page(HOSTILE),
  }
  for (const [name, content] of Object.entries(resources))
    server.registerResource(name, `ui://apps/${name}`, { mimeType: APP_TYPE }, async uri => {
      reads.push(uri.href)
      return { contents: [{ uri: uri.href, text: '', ...content }] }
    })
  return server
}

function addTool(server: McpServer, calls: string[], name: string, ui: object | undefined): void {
  server.registerTool(name, { description: `Does ${name}.`, ...(ui && { _meta: { ui } }) }, () => {
    calls.push(name)
    return { content: [{ type: 'text', text: `${name} done` }], structuredContent: { city: 'Bonn', calls: calls.length } }
  })
}

interface ListeningMcp {
  readonly url: string
  readonly close: () => Promise<void>
}

/** Without sessions: each request has a server of its own. */
export async function listenMcp(create: () => McpServer): Promise<ListeningMcp> {
  const server: Server = createServer(async (request, response) => {
    const own = create()
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined })
    await own.connect(transport as Parameters<typeof own.connect>[0])
    response.on('close', () => void own.close())
    await transport.handleRequest(request, response)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    async close() {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
}
