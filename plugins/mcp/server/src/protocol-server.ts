import type { CompleteResult, GetPromptResult, ListPromptsResult } from '@modelcontextprotocol/server'
import { type CallContext, codeOf, type SlotView } from '@svc/core'
import type { Completions, Prompt, PromptAnswer, Resource } from '@svc/core/contracts'
import type { Published } from './published.ts'
import { mayFollow, handleResources } from './resource-handlers.ts'
import { errorTextOf } from './result.ts'
import { dialogOf, handlerContextOf, type Sdk, type Server } from './sdk.ts'
import { handleTools, inputRequired } from './tool-handlers.ts'

/** Creates the SDK's server with handlers for the published tools, resources and prompts. `own` is the call context for transports that carry none. */
export function createProtocolServer(sdk: Sdk, published: Published, own?: CallContext): Server {
  const { info, resources, prompts } = published
  // the SDK deprecates Server in favor of McpServer, but McpServer validates and serializes each tool again for each request
  const server = new sdk.Server(info, {
    capabilities: {
      tools: { listChanged: true },
      logging: {},
      ...(resources && { resources: { listChanged: true, subscribe: true } }),
      ...(prompts && { prompts: { listChanged: true } }),
      ...(resources && prompts && { completions: {} }),
    },
  })
  server.onerror = error => published.log.debug({ err: error }, 'an MCP client sent an invalid message or disconnected')
  handleTools(server, sdk, published, own)
  if (resources) handleResources(server, sdk, resources, published, own)
  if (prompts) handlePrompts(server, sdk, prompts, published, own)
  if (resources && prompts) handleCompletion(server, sdk, { resources, prompts }, own)
  return server
}

/** The maximum that the protocol allows. */
const MAX_COMPLETIONS = 100

interface Completable {
  readonly resources: SlotView<Resource>
  readonly prompts: SlotView<Prompt>
}

/** Handles `completion/complete` for prompts by name and for resources by template. Without suggestions the result is empty. */
function handleCompletion(server: Server, sdk: Sdk, { resources, prompts }: Completable, own: CallContext | undefined): void {
  const { ProtocolError, ProtocolErrorCode } = sdk
  const found = (ref: { readonly type: string; readonly name?: string; readonly uri?: string }): Resource | Prompt => {
    const current = ref.type === 'ref/prompt' ? prompts.get(ref.name ?? '') : templateOf(resources, ref.uri)
    if (current) return current
    throw new ProtocolError(
      ProtocolErrorCode.InvalidParams,
      `nothing to complete for ${(ref.name ?? ref.uri ?? '').slice(0, 200)}`
    )
  }
  server.setRequestHandler('completion/complete', async ({ params }, context) => {
    const current = found(params.ref)
    const ctx = { ...handlerContextOf(context, own).ctx, signal: context.mcpReq.signal }
    const { name, value } = params.argument
    try {
      return completeResult((await current.complete?.(name, value, params.context?.arguments ?? {}, ctx)) ?? { values: [] })
    } catch (error) {
      ctx.signal.throwIfAborted()
      throw new ProtocolError(ProtocolErrorCode.InternalError, errorTextOf(error, 'The completion failed.'))
    }
  })
}

const templateOf = (resources: SlotView<Resource>, uri: string | undefined) =>
  resources.entries().find(([, resource]) => resource.uriTemplate !== undefined && resource.uriTemplate === uri)?.[1]

function completeResult({ values, total = values.length }: Completions): CompleteResult {
  return {
    completion: { values: values.slice(0, MAX_COMPLETIONS), total, hasMore: total > Math.min(values.length, MAX_COMPLETIONS) },
  }
}

/** Handles `prompts/list` and `prompts/get`. */
function handlePrompts(
  server: Server,
  sdk: Sdk,
  prompts: SlotView<Prompt>,
  { log }: Published,
  own: CallContext | undefined
): void {
  const { ProtocolError, ProtocolErrorCode } = sdk
  const invalid = (message: string) => new ProtocolError(ProtocolErrorCode.InvalidParams, message)
  server.setRequestHandler(
    'prompts/list',
    (): ListPromptsResult => ({
      prompts: prompts
        .entries()
        .toSorted(([a], [b]) => (a < b ? -1 : 1))
        .map(record),
    })
  )
  server.setRequestHandler('prompts/get', async ({ params }, context) => {
    const { name, arguments: args = {} } = params
    const prompt = prompts.get(name)
    if (!prompt) throw invalid(`Unknown prompt: ${name.slice(0, 100)}`)
    const missing = (prompt.arguments ?? []).filter(argument => argument.required && args[argument.name] === undefined)
    if (missing.length > 0) throw invalid(`Missing arguments: ${missing.map(argument => argument.name).join(', ')}`)
    const ctx = { ...handlerContextOf(context, own).ctx, signal: context.mcpReq.signal }
    try {
      const answer = await prompt.get(args, dialogOf(server, context), ctx)
      return isAsking(answer) ? inputRequired(answer) : (answer as GetPromptResult)
    } catch (error) {
      ctx.signal.throwIfAborted()
      const text = errorTextOf(error, 'The prompt failed.')
      if (codeOf(error) === 'INPUT_STATE_INVALID') throw invalid(text)
      log.debug({ err: error, prompt: name, request_id: ctx.requestId }, 'a prompt failed')
      throw new ProtocolError(ProtocolErrorCode.InternalError, text)
    }
  })
}

type Asking = Extract<PromptAnswer, { readonly requests: unknown }>
const isAsking = (answer: PromptAnswer): answer is Asking => 'requests' in answer

function record([name, { title, description, arguments: args }]: [string, Prompt]): ListPromptsResult['prompts'][number] {
  return {
    name,
    ...(title === undefined ? {} : { title }),
    ...(description === undefined ? {} : { description }),
    ...(args === undefined ? {} : { arguments: args.map(arg => ({ ...arg })) }),
  }
}

/** Maximum number of resources that a client can follow. */
const MAX_FOLLOWED = 1_000

/** Notifies the only client of a server of changes, and handles `resources/subscribe`. Returns a function that stops this. */
export function follow(server: Server, sdk: Sdk, published: Published, own?: CallContext): () => void {
  const { changes } = published
  const wanted = new Set<string>()
  const send = createListNotifier(server)
  let stopWatching: (() => void) | undefined
  const stopListening = changes.subscribe(change => {
    if (change.kind !== 'resource_updated') send(change.kind)
  }, false)
  const listen = () =>
    changes.subscribe(change => {
      if (change.kind === 'resource_updated' && wanted.has(change.uri))
        void server.sendResourceUpdated({ uri: change.uri }).catch(ignore)
    }, true)
  const ignore = (error: Error) => server.onerror?.(error)
  if (server.getCapabilities().resources) {
    server.setRequestHandler('resources/subscribe', async ({ params }, context) => {
      const ctx = { ...handlerContextOf(context, own).ctx, signal: context.mcpReq.signal }
      if (!(await mayFollow(sdk, published, params.uri, ctx)))
        throw new sdk.ProtocolError(sdk.ProtocolErrorCode.InvalidParams, 'Resource not found', { uri: params.uri })
      if (wanted.size >= MAX_FOLLOWED && !wanted.has(params.uri))
        throw new RangeError(`a client can follow at most ${MAX_FOLLOWED} resources`)
      wanted.add(params.uri)
      stopWatching ??= listen()
      return {}
    })
    server.setRequestHandler('resources/unsubscribe', ({ params }) => {
      wanted.delete(params.uri)
      return {}
    })
  }
  return () => {
    stopListening()
    stopWatching?.()
  }
}

function createListNotifier(server: Server) {
  const sends = {
    tools_list_changed: () => server.sendToolListChanged(),
    prompts_list_changed: () => server.sendPromptListChanged(),
    resources_list_changed: () => server.sendResourceListChanged(),
  }
  return (kind: keyof typeof sends) => void sends[kind]().catch(error => server.onerror?.(error as Error))
}
