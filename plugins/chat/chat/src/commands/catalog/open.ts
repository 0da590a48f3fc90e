import { type ChatEvent, type ToolRecord, toolRecord } from '@svc/api-types'
import { errorFromRecord } from '@svc/cli/command'
import { codeOf, type JsonSchema, messageOf, svcError, systemContext, withTimeout } from '@svc/core'
import {
  type CommandContext,
  type Effect,
  type Effective,
  type Provider,
  type ProviderFeatures,
  Providers,
  Selection,
  type ServerChoice,
  type ServerClient,
  type Tool,
  Tools,
  type Usage,
} from '@svc/core/contracts'
import { answeredByAnother, providerUnknown, streamBroken } from '../errors.ts'

/** A tool. The list of a server leaves out the optional fields. */
export interface CatalogTool extends ToolRecord {
  readonly effects?: readonly Effect[]
  /** A person is asked before each call in a chat. */
  readonly asks?: boolean
  readonly timeoutMs?: number
  readonly schema?: JsonSchema
  readonly result?: JsonSchema
}

/** A provider in the form of `GET /api/v1/providers`. */
export interface ProviderRecord {
  readonly name: string
  readonly models: readonly string[]
  readonly features: ProviderFeatures
}

export interface Health {
  readonly healthy: boolean
  readonly error?: string
  /** Duration of the probe; a server does not report it. */
  readonly ms?: number
}

/** The outcome of a test message. Times are in milliseconds. */
export interface Hello {
  readonly model: string
  /** Time to the first text; absent if the model sent no text. */
  readonly firstMs?: number
  readonly ms: number
  readonly output: number
}

/** The tools, providers and selection of a server, or of a host in this process. */
export interface CommandCatalog {
  /** Describes the server or host in texts for the user. */
  readonly of: string
  /** True for a server: a switch affects its other clients. */
  readonly shared: boolean
  tools(signal: AbortSignal): Promise<readonly CatalogTool[]>
  /** A tool of `tools` with its optional fields. */
  whole(tool: CatalogTool, signal: AbortSignal): Promise<CatalogTool>
  providers(signal: AbortSignal): Promise<readonly ProviderRecord[]>
  /** Health of all providers, or of the named providers. Never a billed call. */
  health(signal: AbortSignal, limitMs: number, names?: readonly string[]): Promise<Readonly<Record<string, Health>>>
  /** Sends a test message to a provider, a billed call. Throws the error of the call. */
  hello(provider: string, model: string | undefined, signal: AbortSignal): Promise<Hello>
  effective(signal: AbortSignal): Promise<Effective>
  /** Throws INVALID_VALUE, and FORBIDDEN for a credential without the scope `admin`. */
  switch(what: Switched, name: string, signal: AbortSignal): Promise<Effective>
}

/** A setting that a switch changes for the whole server. */
export type Switched = 'profile' | 'mode'

/** Opens the catalog of the named or running server, or else of a host in this process. Throws START_FAILED, SERVER_AMBIGUOUS, URL_INVALID. */
export async function openCatalog(command: CommandContext, choice: ServerChoice): Promise<CommandCatalog> {
  const server = await command.server(choice)
  return server ? remoteCatalog(server) : localCatalog(await command.host())
}

/** The catalog of a server, read over its HTTP API. */
export function remoteCatalog(server: ServerClient): CommandCatalog {
  return {
    of: `the server at ${server.url}`,
    shared: true,
    tools: async signal => (await server.request<{ tools: ToolRecord[] }>('GET', '/api/v1/tools', { signal })).tools,
    whole: (tool, signal) => wholeTool(server, tool, signal),
    providers: async signal =>
      (await server.request<{ providers: ProviderRecord[] }>('GET', '/api/v1/providers', { signal })).providers,
    health: async signal => {
      const { providers } = await server.request<{ providers: Record<string, Health> }>('GET', '/api/v1/status', { signal })
      const healthOf = ({ healthy, error }: Health) => ({ healthy, ...(error === undefined ? {} : { error }) })
      return Object.fromEntries(Object.entries(providers).map(([name, provider]) => [name, healthOf(provider)]))
    },
    hello: (provider, model, signal) => helloThrough(server, provider, model, signal),
    effective: signal => server.request<Effective>('GET', '/api/v1/config/effective', { signal }),
    switch: async (what, name, signal) =>
      (await server.request<{ effective: Effective }>('POST', `/api/v1/${what}/switch`, { signal, body: { [what]: name } }))
        .effective,
  }
}

/** The part of `GET /api/v1/tools/{name}` that its list does not have. */
interface ToolDetail {
  readonly effects: readonly Effect[]
  readonly asks: boolean
  readonly timeout_ms: number | null
  readonly input_schema: JsonSchema
  readonly output_schema: JsonSchema | null
}

/** A server without the management API has no such route: then the tool is as it was listed. */
async function wholeTool(server: ServerClient, tool: CatalogTool, signal: AbortSignal): Promise<CatalogTool> {
  try {
    const path = `/api/v1/tools/${encodeURIComponent(tool.name)}`
    const { effects, asks, timeout_ms, input_schema, output_schema } = await server.request<ToolDetail>('GET', path, { signal })
    return {
      ...tool,
      effects,
      asks,
      schema: input_schema,
      ...(output_schema === null ? {} : { result: output_schema }),
      ...(timeout_ms === null ? {} : { timeoutMs: timeout_ms }),
    }
  } catch (error) {
    if (/^(TOOL_)?NOT_FOUND$/.test(codeOf(error) ?? '')) return tool
    throw error
  }
}

const LIST_MS = 5_000

/** The host of a command. */
type Host = Awaited<ReturnType<CommandContext['host']>>

/** The catalog of a host in this process. */
export function localCatalog(host: Host): CommandCatalog {
  const providers = host.slot(Providers)
  const ctx = (signal: AbortSignal) => systemContext(signal, 'svc')
  return {
    of: 'the host of this process',
    shared: false,
    tools: async () => host.slot(Tools).entries().sort(byName).map(listed),
    whole: async tool => tool,
    providers: signal => Promise.all(providers.entries().map(([name, provider]) => providerRecord(name, provider, signal))),
    async health(signal, limitMs, names = providers.names()) {
      const all = names.map(async name => [name, await probed(providers.get(name), limitMs, signal)] as const)
      return Object.fromEntries(await Promise.all(all))
    },
    async hello(name, model, signal) {
      const provider = providers.get(name)
      if (!provider) throw providerUnknown(name, providers.names())
      return await helloTo(provider, model, signal)
    },
    effective: signal => host.service(Selection).effective(ctx(signal)),
    switch(what, name, signal) {
      const selection = host.service(Selection)
      return what === 'mode' ? selection.switchMode(name, ctx(signal)) : selection.switchProfile(name, ctx(signal))
    },
  }
}

const byName = ([a]: [string, Tool], [b]: [string, Tool]) => (a < b ? -1 : 1)

const listed = ([name, tool]: [string, Tool]): CatalogTool => ({
  ...toolRecord(name, tool),
  effects: tool.effects,
  asks: tool.asks === true,
  schema: tool.parameters,
  ...(tool.result === undefined ? {} : { result: tool.result }),
  ...(tool.timeoutMs === undefined ? {} : { timeoutMs: tool.timeoutMs }),
})

/** A provider that fails to list its models appears without models. */
async function providerRecord(name: string, provider: Provider, signal: AbortSignal): Promise<ProviderRecord> {
  const { tool_calling, streaming, vision } = provider.features
  const list = withTimeout(LIST_MS, ending => provider.models(systemContext(ending, 'svc')), { signal })
  const { models } = await list.catch(() => ({ models: [] }))
  return { name, models: models.map(({ id }) => id), features: { tool_calling, streaming, vision } }
}

async function probed(provider: Provider | undefined, limitMs: number, signal: AbortSignal): Promise<Health> {
  const began = performance.now()
  const late = () => new Error(`no answer within ${limitMs} ms`)
  try {
    await withTimeout(limitMs, ending => provider?.probe(systemContext(ending, 'svc')), { signal, late })
    return { healthy: true, ms: performance.now() - began }
  } catch (error) {
    signal.throwIfAborted()
    return { healthy: false, error: messageOf(error), ms: performance.now() - began }
  }
}

const MESSAGE = 'Say OK.'
const MOST_TOKENS = 16

/** Sends the test message to a provider of this process, without a conversation. */
async function helloTo(provider: Provider, asked: string | undefined, signal: AbortSignal): Promise<Hello> {
  const ctx = systemContext(signal, 'svc providers test')
  const model = asked ?? (await provider.models(ctx)).models[0]?.id
  if (model === undefined)
    throw svcError('MODEL_NOT_FOUND', 'the provider lists no model', { hint: 'Name a model with --model <name>' })
  const began = performance.now()
  let firstMs: number | undefined
  let usage: Usage | undefined
  const messages = [{ role: 'user', parts: [{ type: 'text', text: MESSAGE }] }] as const
  for await (const event of provider.chat({ model, messages, maxTokens: MOST_TOKENS }, ctx)) {
    if (event.type === 'text') firstMs ??= performance.now() - began
    if (event.type === 'usage') usage = event.usage
  }
  return helloOf(model, began, firstMs, usage?.output ?? 0)
}

const helloOf = (model: string, began: number, firstMs: number | undefined, output: number): Hello => ({
  model,
  ...(firstMs === undefined ? {} : { firstMs }),
  ms: performance.now() - began,
  output,
})

/** Sends the test message through a server and deletes the conversation afterwards. */
async function helloThrough(
  server: ServerClient,
  provider: string,
  model: string | undefined,
  signal: AbortSignal
): Promise<Hello> {
  const body = { message: MESSAGE, provider, ...(model === undefined ? {} : { model }), tools: [], max_tokens: MOST_TOKENS }
  const began = performance.now()
  let firstMs: number | undefined
  let conversation: string | undefined
  try {
    for await (const { data } of server.stream('POST', '/api/v1/chat/stream', { signal, body })) {
      const event = JSON.parse(data) as ChatEvent
      if (event.type === 'start') conversation = event.conversation_id
      if (event.type === 'token' && event.content !== '') firstMs ??= performance.now() - began
      if (event.type === 'error') throw errorFromRecord(event)
      if (event.type === 'end' && event.provider !== provider) throw answeredByAnother(event.provider, event.model)
      if (event.type === 'end') return helloOf(event.model, began, firstMs, event.tokens_used.output)
    }
    throw streamBroken(server.url)
  } finally {
    if (conversation !== undefined) await forget(server, conversation)
  }
}

/** A failed deletion does not fail the test: it leaves a conversation of two messages. */
const forget = (server: ServerClient, conversation: string) =>
  server
    .request('DELETE', `/api/v1/conversations/${encodeURIComponent(conversation)}`, { signal: new AbortController().signal })
    .catch(() => {})

/** The message of a failure, with its code if it says more. */
export const failureText = (error: unknown): string => {
  const code = codeOf(error)
  return code === undefined || code === 'MODEL_FAILED' ? messageOf(error) : `${code}: ${messageOf(error)}`
}
