import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ConfigTree } from '@svc/core'
import { Http, type ModelEvent, type ModelRequest, type Provider, type ProviderFeatures } from '@svc/core/contracts'
import { readEvents } from '@svc/provider-http/sse'
import { type Answerer, type Fixture, openUpstream, type Received, testContext, testHost } from '@svc/testing'
import { pluginFolder } from '../../../../../test/support/plugin-folder.ts'

const PLUGINS = [
  'http',
  'gemini-api',
  'store-memory',
  'conversations',
  'selection',
  'modes',
  'models',
  'model-calls',
  'chat-policy',
  'chat',
  'named-models',
  'provider-local',
  'tools-time',
]

export type Body = { readonly [field: string]: unknown }

/** What a test configures. */
export interface ApiOptions {
  readonly plugins?: readonly string[]
  readonly config?: ConfigTree
  readonly give?: readonly Fixture[]
  readonly profiles?: object
}

// oxlint-disable-next-line typescript/no-explicit-any -- tests read any part of an answer
export type Any = any

export const LOCAL = 'local/local-1'

/** A server with the Gemini API, the local provider, and more. */
export async function serveApi({ plugins = [], config = {}, give = [], profiles = {} }: ApiOptions = {}) {
  const home = await mkdtemp(join(tmpdir(), 'svc-gemini-'))
  const profiles_file = join(home, 'profiles.yaml')
  // JSON is YAML
  await writeFile(profiles_file, JSON.stringify({ profiles: { default: {}, ...profiles } }))
  const { providers, server, ...rest } = config as { providers?: object; server?: object }
  const host = await testHost([...PLUGINS, ...plugins].map(pluginFolder), {
    give,
    config: {
      ...rest,
      server: { port: 0, ...server },
      providers: { local: {}, ...providers },
      selection: { profiles_file },
    },
  })
  const { url } = (await host.service(Http).address(testContext()))!
  const post = (path: string, body: unknown, headers: Record<string, string> = {}, signal?: AbortSignal) =>
    fetch(`${url}/v1beta/models/${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
      ...(signal ? { signal } : {}),
    })
  const read = async (response: Response) => {
    const text = await response.text()
    return { status: response.status, headers: response.headers, text, body: parsed(text) }
  }
  return {
    url,
    host,
    post,
    get: async (path: string, headers: Record<string, string> = {}) => read(await fetch(`${url}${path}`, { headers })),
    call: async (path: string, body: unknown, headers: Record<string, string> = {}) => read(await post(path, body, headers)),
    /** Asks for a whole response. */
    ask: async (body: Body, name = LOCAL) => read(await post(`${name}:generateContent`, body)),
    /** Asks for a stream of events, and reads it to its end. */
    async stream(body: Body, name = LOCAL) {
      const response = await post(`${name}:streamGenerateContent?alt=sse`, body)
      const { status, headers } = response
      if (!headers.get('content-type')?.startsWith('text/event-stream'))
        return { status, headers, chunks: [] as Any[], body: parsed(await response.text()) }
      const chunks: Any[] = []
      for await (const event of readEvents(response.body as AsyncIterable<Uint8Array>)) chunks.push(parsed(event.data))
      return { status, headers, chunks, body: undefined as Any }
    },
    async [Symbol.asyncDispose]() {
      await host.close()
      await rm(home, { recursive: true })
    },
  }
}

const parsed = (text: string): Any => {
  try {
    return JSON.parse(text) as Any
  } catch {
    return undefined
  }
}

export const user = (...parts: unknown[]) => ({
  role: 'user',
  parts: parts.map(part => (typeof part === 'string' ? { text: part } : part)),
})
export const model = (...parts: unknown[]) => ({ ...user(...parts), role: 'model' })

/** The parts of all chunks. */
export const partsOf = (chunks: readonly Any[]): Any[] => chunks.flatMap(chunk => chunk.candidates?.[0]?.content?.parts ?? [])
/** The text of parts, without thoughts. */
export const textOf = (parts: readonly Any[]): string => parts.map(({ text = '', thought }) => (thought ? '' : text)).join('')

const KEY_ENV = 'SVC_TEST_GEMINI_KEY'
export const KEY = 'sk-canary-gemini-4711'
process.env[KEY_ENV] = KEY

/** The API before a scripted server, whose provider is called `up`. */
export async function serveBefore(type: 'google' | 'openai' | 'anthropic', by: Answerer, options: ApiOptions = {}) {
  const upstream = await openUpstream(by)
  const base_url = type === 'google' ? upstream.url : `${upstream.url}/v1`
  const entry: ConfigTree = { type, base_url, api_key_env: KEY_ENV, models: ['m', 'm2'] }
  const { providers, ...config } = (options.config ?? {}) as { providers?: object }
  const api = await serveApi({
    ...options,
    plugins: [`provider-${type}`, ...(options.plugins ?? [])],
    config: { ...config, providers: { up: entry, ...providers } },
  })
  return {
    ...api,
    upstream,
    async [Symbol.asyncDispose]() {
      await api[Symbol.asyncDispose]()
      await upstream.close()
    },
  }
}

/** The bodies of the requests for answers. */
export const asked = (received: readonly Received[]): Any[] =>
  received.filter(({ method, path }) => method === 'POST' && path.includes('enerateContent')).map(({ body }) => body)

/** Calls fail at once. */
export const NO_RETRY: ConfigTree = { chat: { policy: { attempts: 1, breaker_failures: 0 } } }

/** A provider that returns these events, and remembers its requests. */
export function scripted(
  answers: readonly (readonly (ModelEvent | Error)[])[],
  features: Partial<ProviderFeatures> = {}
): Provider & { readonly requests: ModelRequest[] } {
  const requests: ModelRequest[] = []
  return {
    requests,
    features: { tool_calling: true, streaming: true, vision: true, ...features },
    models: async () => ({ models: [{ id: 'm', output: 10_000 }], open: false }),
    countTokens: async () => 42,
    async *chat(request) {
      requests.push(request)
      for (const event of answers[Math.min(requests.length, answers.length) - 1]!) {
        if (event instanceof Error) throw event
        yield event
      }
    },
    probe: async () => undefined,
  }
}

export const USAGE: ModelEvent = { type: 'usage', usage: { input: 9, output: 4, cached: 2, reasoning: 1 } }
export const STOP: ModelEvent = { type: 'finish', reason: 'stop' }
export const CALLS: ModelEvent = { type: 'finish', reason: 'tool_calls' }
