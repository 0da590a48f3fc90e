import { type ConfigTree, type LogOptions, systemContext } from '@svc/core'
import { Http, type Json, type Tool, Tools } from '@svc/core/contracts'
import { type Fixture, item, testHost } from '@svc/testing'
import { pluginFolder } from '../../../../../test/support/plugin-folder.ts'

const ctx = systemContext(new AbortController().signal)

/** What a test adds to the host. */
export interface HostSetup {
  readonly tools?: Readonly<Record<string, Tool>>
  readonly give?: readonly Fixture[]
  /** The section `mcp.server`, which is switched on. */
  readonly mcp?: ConfigTree
  readonly server?: ConfigTree
  /** The section `mcp.clients`. */
  readonly clients?: readonly ConfigTree[]
  /** More of our plugins, by pluginFolder. */
  readonly plugins?: readonly string[]
  readonly log?: LogOptions
  /** More sections. */
  readonly config?: ConfigTree
}

/** Answers what it is given. */
export const echo: Tool = {
  description: 'Says it back',
  category: 'text',
  effects: [],
  parameters: {
    type: 'object',
    properties: { text: { type: 'string' }, deep: { type: 'object', properties: { n: { type: 'integer', default: 1 } } } },
    required: ['text'],
    additionalProperties: false,
  },
  call: async args => ({ content: [{ type: 'text', text: args.text as string }], structured: args as Json }),
}

/** A tool that does nothing but this. */
export const toolOf = (call: Tool['call'], more: Partial<Tool> = {}): Tool => ({
  description: 'Does one thing',
  category: 'text',
  effects: [],
  parameters: { type: 'object' },
  call,
  ...more,
})

/** A host with an HTTP server and the tool server. */
export async function startMcpHost({
  tools = { echo },
  give = [],
  mcp = {},
  clients,
  server = {},
  plugins = [],
  log,
  config = {},
}: HostSetup = {}) {
  const host = await testHost([pluginFolder('mcp-server'), pluginFolder('http'), ...plugins.map(pluginFolder)], {
    give: [...Object.entries(tools).map(([name, tool]) => item(Tools, name, tool)), ...give],
    config: {
      ...config,
      server: { port: 0, ...server },
      mcp: { server: { enabled: true, ...mcp }, ...(clients ? { clients } : {}) },
    },
    version: '1.2.3',
    ...(log ? { log } : {}),
  })
  const { url } = (await host.service(Http).address(ctx))!
  return { host, url, ask: asker(url), [Symbol.asyncDispose]: () => host.close() }
}

export type McpHost = Awaited<ReturnType<typeof startMcpHost>>

/** What came back: status, headers and the body, as JSON where it is. */
export interface Said {
  readonly status: number
  readonly headers: Headers
  readonly body: { readonly [name: string]: Json | undefined }
}

type Headed = Readonly<Record<string, string>>

function asker(url: string) {
  const ask = async (path: string, init: RequestInit = {}): Promise<Said> => {
    const answer = await fetch(`${url}${path}`, init)
    const text = await answer.text()
    return { status: answer.status, headers: answer.headers, body: text.startsWith('{') ? JSON.parse(text) : {} }
  }
  return {
    get: (path: string, headers: Headed = {}) => ask(path, { headers }),
    post: (path: string, body: unknown, headers: Headed = {}) =>
      ask(path, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: typeof body === 'string' ? body : JSON.stringify(body),
      }),
    raw: ask,
  }
}

/** Status, code and details of a refusal. */
export const refusal = ({ status, body }: Said) => [status, body.error_code, body.details]
