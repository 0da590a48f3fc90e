import type { CompleteResult, GetPromptResult, ListPromptsResult } from '@modelcontextprotocol/server'
import { codeOf, type SlotView, type CallContext } from '@svc/core'
import type { Completions, Prompt, PromptAnswer, Resource } from '@svc/core/contracts'
import { dialogOf } from './dialog.ts'
import type { Published } from './published.ts'
import { reading } from './resource-handlers.ts'
import { exchangeOf, type Sdk, type Server } from './sdk.ts'
import { calling, inputRequired } from './tool-handlers.ts'
import { wordsOf } from './words.ts'

/** The SDK's server over what is published, with handlers of ours; nothing in it is made a tool. `own` is whose requests they are, where the transport carries none. */
export function createProtocolServer(sdk: Sdk, published: Published, own?: CallContext): Server {
  const { info, resources, prompts } = published
  // McpServer, which it is deprecated for, checks and writes each tool anew for each request
  const server = new sdk.Server(info, {
    capabilities: {
      tools: { listChanged: true },
      logging: {},
      ...(resources && { resources: { listChanged: true, subscribe: true } }),
      ...(prompts && { prompts: { listChanged: true } }),
      ...(resources && prompts && { completions: {} }),
    },
  })
  server.onerror = error => published.log.debug({ err: error }, 'a client of the tool protocol did something wrong, or left')
  calling(server, sdk, published, own)
  if (resources) reading(server, sdk, resources, published, own)
  if (prompts) prompting(server, sdk, prompts, published, own)
  if (resources && prompts) completing(server, sdk, { resources, prompts }, own)
  return server
}

/** The protocol allows no more. */
const MOST = 100

interface Completable {
  readonly resources: SlotView<Resource>
  readonly prompts: SlotView<Prompt>
}

/** `completion/complete`: of prompts by name, of resources by template. Who has nothing to say completes to nothing. */
function completing(server: Server, sdk: Sdk, { resources, prompts }: Completable, own: CallContext | undefined): void {
  const { ProtocolError, ProtocolErrorCode } = sdk
  const found = (ref: { readonly type: string; readonly name?: string; readonly uri?: string }): Resource | Prompt => {
    const one = ref.type === 'ref/prompt' ? prompts.get(ref.name ?? '') : templateOf(resources, ref.uri)
    if (one) return one
    throw new ProtocolError(
      ProtocolErrorCode.InvalidParams,
      `there is nothing to complete for ${(ref.name ?? ref.uri ?? '').slice(0, 200)}`
    )
  }
  server.setRequestHandler('completion/complete', async ({ params }, context) => {
    const one = found(params.ref)
    const ctx = { ...exchangeOf(context, own).ctx, signal: context.mcpReq.signal }
    const { name, value } = params.argument
    try {
      return told((await one.complete?.(name, value, params.context?.arguments ?? {}, ctx)) ?? { values: [] })
    } catch (error) {
      ctx.signal.throwIfAborted()
      throw new ProtocolError(ProtocolErrorCode.InternalError, wordsOf(error, 'It could not be completed.'))
    }
  })
}

const templateOf = (resources: SlotView<Resource>, uri: string | undefined) =>
  resources.entries().find(([, one]) => one.uriTemplate !== undefined && one.uriTemplate === uri)?.[1]

function told({ values, total = values.length }: Completions): CompleteResult {
  return { completion: { values: values.slice(0, MOST), total, hasMore: total > Math.min(values.length, MOST) } }
}

/** `prompts/list` and `prompts/get`. */
function prompting(server: Server, sdk: Sdk, prompts: SlotView<Prompt>, { log }: Published, own: CallContext | undefined): void {
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
    const missing = (prompt.arguments ?? []).filter(one => one.required && args[one.name] === undefined)
    if (missing.length > 0) throw invalid(`Missing arguments: ${missing.map(one => one.name).join(', ')}`)
    const ctx = { ...exchangeOf(context, own).ctx, signal: context.mcpReq.signal }
    try {
      const answer = await prompt.get(args, dialogOf(server, context), ctx)
      return isAsking(answer) ? inputRequired(answer) : (answer as GetPromptResult)
    } catch (error) {
      ctx.signal.throwIfAborted()
      const words = wordsOf(error, 'The prompt could not be made.')
      if (codeOf(error) === 'INPUT_STATE_INVALID') throw invalid(words)
      log.debug({ err: error, prompt: name, request_id: ctx.requestId }, 'a prompt failed')
      throw new ProtocolError(ProtocolErrorCode.InternalError, words)
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
    ...(args === undefined ? {} : { arguments: args.map(one => ({ ...one })) }),
  }
}
