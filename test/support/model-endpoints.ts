import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ConfigTree, systemContext } from '@svc/core'
import { Http, type ModelEvent, type ModelRequest, type Provider } from '@svc/core/contracts'
import { type Fixture, testHost } from '@svc/testing'
import { CHAT_PLUGINS, pluginFolder } from './plugin-folder.ts'

const PLUGINS = [
  'http',
  'openai-api',
  'anthropic-api',
  'gemini-api',
  ...CHAT_PLUGINS,
  'chat-policy',
  'cache',
  'chat-cache',
  'workflow-nodes',
  'queue-store',
  'workflows',
  'provider-local',
]

/** JSON of any form. */
type Tree = ReturnType<typeof JSON.parse>

/** How a wire asks for an answer. */
export interface Wire {
  readonly name: string
  readonly path: (model: string, stream: boolean) => string
  readonly body: (model: string, text: string, stream: boolean) => object
  /** The part of an error that names its kind. */
  readonly kindOf: (body: Tree) => unknown
}

const messagesOf = (text: string) => [{ role: 'user', content: text }]

export const WIRES: readonly Wire[] = [
  {
    name: 'chat completions',
    path: () => '/v1/chat/completions',
    body: (model, text, stream) => ({ model, stream, messages: messagesOf(text) }),
    kindOf: body => body.error.code,
  },
  {
    name: 'responses',
    path: () => '/v1/responses',
    body: (model, text, stream) => ({ model, stream, input: text }),
    kindOf: body => body.error.code,
  },
  {
    name: 'messages',
    path: () => '/v1/messages',
    body: (model, text, stream) => ({ model, stream, max_tokens: 1_000, messages: messagesOf(text) }),
    kindOf: body => body.error.type,
  },
  {
    name: 'Gemini',
    path: (model, stream) => `/v1beta/models/${model}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    body: (_model, text) => ({ contents: [{ role: 'user', parts: [{ text }] }] }),
    kindOf: body => body.error.status,
  },
]

export interface EndpointsOptions {
  readonly give?: readonly Fixture[]
  readonly config?: ConfigTree
  readonly profiles?: object
  /** In place of the store in memory, in the folder of the server. */
  readonly store?: 'store-sqlite'
}

/** A server with the model endpoints of all wires. */
export async function serveEndpoints({ give = [], config = {}, profiles = {}, store }: EndpointsOptions = {}) {
  const home = await mkdtemp(join(tmpdir(), 'svc-endpoints-'))
  const profiles_file = join(home, 'profiles.yaml')
  // JSON is YAML
  await writeFile(profiles_file, JSON.stringify({ profiles: { default: {}, ...profiles } }))
  const { server = {}, ...rest } = config as { readonly server?: ConfigTree }
  const plugins = PLUGINS.map(name => (name === 'store-memory' ? (store ?? name) : name))
  const host = await testHost(plugins.map(pluginFolder), {
    give,
    config: {
      server: { port: 0, ...server },
      providers: { local: {} },
      selection: { profiles_file },
      ...(store === undefined ? {} : { store: { path: join(home, 'svc.db') } }),
      ...rest,
    },
  })
  const { url } = (await host.service(Http).address(systemContext(new AbortController().signal)))!
  const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
    fetch(url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    })
  const open = (wire: Wire, model: string, text: string, stream: boolean, headers = {}) =>
    post(wire.path(model, stream), wire.body(model, text, stream), headers)
  return {
    home,
    host,
    url,
    /** Posts a body. */
    post: async (path: string, body: unknown) => readReply(await post(path, body)),
    /** Asks for a whole answer. */
    ask: async (wire: Wire, model: string, text: string, headers: Record<string, string> = {}) =>
      readReply(await open(wire, model, text, false, headers)),
    /** Opens a stream. */
    stream: (wire: Wire, model: string, text: string) => open(wire, model, text, true),
    async [Symbol.asyncDispose]() {
      await host.close()
      await rm(home, { recursive: true })
    },
  }
}

async function readReply(response: Response) {
  const text = await response.text()
  return {
    status: response.status,
    headers: response.headers,
    text,
    body: (text.startsWith('{') ? JSON.parse(text) : {}) as Tree,
  }
}

/** A provider that answers every request with these events, and remembers the requests. */
export function answering(
  answer: (signal: AbortSignal) => AsyncIterable<ModelEvent>
): Provider & { readonly requests: ModelRequest[] } {
  const requests: ModelRequest[] = []
  return {
    requests,
    features: { tool_calling: true, streaming: true, vision: false },
    models: async () => ({ models: [{ id: 'm' }], open: false }),
    countTokens: async () => 1,
    async *chat(request, { signal }) {
      requests.push(request)
      yield* answer(signal)
    },
    probe: async () => undefined,
  }
}
