import type { CallToolResult, InputRequiredResult, ListToolsResult, LoggingLevel } from '@modelcontextprotocol/server'
import { type CallContext, codeOf, isTree, messageOf } from '@svc/core'
import type { InputRequest } from '@svc/core/contracts'
import { isModern } from '@svc/mcp-protocol'
import { type CallArguments, type CallEnd, callForResult, type ToolNotification } from './call.ts'
import type { Era } from './catalogue.ts'
import { forbiddenMessage, withheldMessage } from './errors.ts'
import type { Published } from './published.ts'
import { wireResult } from './result.ts'
import { dialogOf, handlerContextOf, type Sdk, type Server, type ServerContext } from './sdk.ts'

/** Handles `tools/list` and `tools/call`. */
export function handleTools(
  server: Server,
  sdk: Sdk,
  { catalogue, withheld, forbidden, calls, log }: Published,
  own: CallContext | undefined
): void {
  const { ProtocolError, ProtocolErrorCode } = sdk
  server.setRequestHandler('tools/list', ({ params }): ListToolsResult => {
    const page = catalogue().page(eraOf(server), params?.cursor)
    if (!page) throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'the cursor is invalid')
    const tools = JSON.parse(page.json) as ListToolsResult['tools']
    return page.next === undefined ? { tools } : { tools, nextCursor: page.next }
  })
  server.setRequestHandler('tools/call', async ({ params }, context) => {
    const handlerContext = handlerContextOf(context, own)
    const { name } = params
    const tool = catalogue().get(name)
    if (!tool) {
      const mode = forbidden(name)
      const server = mode === undefined ? await withheld(name, handlerContext.ctx) : undefined
      const reason = mode === undefined ? server && withheldMessage(name, server) : forbiddenMessage(mode)
      const why = reason === undefined ? '' : `: ${reason}`
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, `Unknown tool: ${name.slice(0, 100)}${why}`)
    }
    const { begun } = handlerContext
    handlerContext.begun = undefined // the later rounds of this request are new calls
    const notify = createNotifier(context, error =>
      log.debug({ err: error, tool: tool.name }, 'failed to send a notification of a tool to its client')
    )
    const ctx = { ...handlerContext.ctx, signal: context.mcpReq.signal }
    const args = (params.arguments ?? {}) as CallArguments
    const end = begun ?? (await callForResult(calls, tool, args, ctx, { dialog: dialogOf(server, context), notify }))
    if (isStateError(end)) throw new ProtocolError(ProtocolErrorCode.InvalidParams, messageOf(end.thrown))
    return wireEnd(end, eraOf(server))
  })
}

/** Whether the caller changed the `requestState` that it must return unchanged. This is an error of the request. */
export const isStateError = (end: CallEnd): end is CallEnd & { readonly thrown: unknown } =>
  end.type === 'result' && codeOf(end.thrown) === 'INPUT_STATE_INVALID'

const eraOf = (server: Server): Era => (isModern(server.getNegotiatedProtocolVersion() ?? '') ? 'modern' : 'legacy')

function wireEnd(end: CallEnd, era: Era): CallToolResult | InputRequiredResult {
  if (end.type === 'input') return inputRequired(end)
  return wireResult(forEra(end.result, era)) as CallToolResult
}

/** Before 2026-07-28, structured content must be an object. */
export const forEra = <T extends { readonly structured?: unknown }>(result: T, era: Era): T =>
  era === 'modern' || result.structured === undefined || isTree(result.structured) ? result : { ...result, structured: undefined }

interface Asked {
  readonly requests: { readonly [key: string]: InputRequest }
  readonly state?: string
}

/** Converts questions to the `input_required` result of the protocol. */
export const inputRequired = ({ requests, state }: Asked): InputRequiredResult => ({
  resultType: 'input_required',
  inputRequests: requests as NonNullable<InputRequiredResult['inputRequests']>,
  ...(state === undefined ? {} : { requestState: state }),
})

/** Limit for the notifications of a call, in bytes. svc buffers them for a client that does not read. */
const NOTIFICATION_BYTES = 10 * 1_048_576

/** Sends progress and log messages of a tool to its caller; progress only if the caller sent a token. */
function createNotifier({ mcpReq }: ServerContext, onError: (error: unknown) => void): (notification: ToolNotification) => void {
  const progressToken = mcpReq._meta?.progressToken
  let left = NOTIFICATION_BYTES
  const send = (notification: ToolNotification) => {
    if (notification.type === 'log') return mcpReq.log(notification.level as LoggingLevel, notification.data, notification.logger)
    const { type: _type, ...progress } = notification
    if (progressToken === undefined) return undefined
    return mcpReq.notify({ method: 'notifications/progress', params: { progressToken, ...progress } })
  }
  return notification => {
    left -= JSON.stringify(notification).length
    if (left >= 0) send(notification)?.catch(onError)
  }
}
