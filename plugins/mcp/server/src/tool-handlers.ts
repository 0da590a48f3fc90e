import type { CallToolResult, InputRequiredResult, ListToolsResult, LoggingLevel } from '@modelcontextprotocol/server'
import { codeOf, isTree, messageOf, type CallContext } from '@svc/core'
import type { InputRequest } from '@svc/core/contracts'
import { isModern } from '@svc/mcp-protocol'
import { type Arguments, type CallEnd, callOrTell, type Told } from './call.ts'
import type { Era } from './catalogue.ts'
import { dialogOf } from './dialog.ts'
import type { Published } from './published.ts'
import { wireResult } from './result.ts'
import { withheldWords } from './errors.ts'
import { exchangeOf, type Sdk, type Server, type ServerContext } from './sdk.ts'

/** `tools/list` and `tools/call`. */
export function calling(
  server: Server,
  sdk: Sdk,
  { catalogue, withheld, calls, log }: Published,
  own: CallContext | undefined
): void {
  const { ProtocolError, ProtocolErrorCode } = sdk
  server.setRequestHandler('tools/list', ({ params }): ListToolsResult => {
    const page = catalogue().page(eraOf(server), params?.cursor)
    if (!page) throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'the cursor leads nowhere')
    const tools = JSON.parse(page.json) as ListToolsResult['tools']
    return page.next === undefined ? { tools } : { tools, nextCursor: page.next }
  })
  server.setRequestHandler('tools/call', async ({ params }, context) => {
    const exchange = exchangeOf(context, own)
    const { name } = params
    const tool = catalogue().get(name)
    if (!tool) {
      const server = await withheld(name, exchange.ctx)
      const why = server === undefined ? '' : `: ${withheldWords(name, server)}`
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, `Unknown tool: ${name.slice(0, 100)}${why}`)
    }
    const { begun } = exchange
    exchange.begun = undefined // its later rounds are calls of their own
    const tell = teller(context, error => log.debug({ err: error, tool: tool.name }, 'what a tool told did not reach its client'))
    const ctx = { ...exchange.ctx, signal: context.mcpReq.signal }
    const args = (params.arguments ?? {}) as Arguments
    const end = begun ?? (await callOrTell(calls, tool, args, ctx, { dialog: dialogOf(server, context), tell }))
    if (isStateFault(end)) throw new ProtocolError(ProtocolErrorCode.InvalidParams, messageOf(end.thrown))
    return wireEnd(end, eraOf(server))
  })
}

/** Whether the caller has changed what it was given to bring back: that is a fault of the request. */
export const isStateFault = (end: CallEnd): end is CallEnd & { readonly thrown: unknown } =>
  end.type === 'result' && codeOf(end.thrown) === 'INPUT_STATE_INVALID'

const eraOf = (server: Server): Era => (isModern(server.getNegotiatedProtocolVersion() ?? '') ? 'modern' : 'legacy')

function wireEnd(end: CallEnd, era: Era): CallToolResult | InputRequiredResult {
  if (end.type === 'input') return inputRequired(end)
  return wireResult(forEra(end.result, era)) as CallToolResult
}

/** Before 2026-07-28, structured content is an object. */
export const forEra = <T extends { readonly structured?: unknown }>(result: T, era: Era): T =>
  era === 'modern' || result.structured === undefined || isTree(result.structured) ? result : { ...result, structured: undefined }

interface Asked {
  readonly requests: { readonly [key: string]: InputRequest }
  readonly state?: string
}

/** What must be known before, in the protocol's words. */
export const inputRequired = ({ requests, state }: Asked): InputRequiredResult => ({
  resultType: 'input_required',
  inputRequests: requests as NonNullable<InputRequiredResult['inputRequests']>,
  ...(state === undefined ? {} : { requestState: state }),
})

/** Bytes that a call may tell on its way: a client that does not read would have them all kept. */
const TOLD_BYTES = 10 * 1_048_576

/** Sends what a tool tells to its caller, progress only where the caller has named a token for it. */
function teller({ mcpReq }: ServerContext, lost: (error: unknown) => void): (told: Told) => void {
  const progressToken = mcpReq._meta?.progressToken
  let left = TOLD_BYTES
  const send = (told: Told) => {
    if (told.type === 'log') return mcpReq.log(told.level as LoggingLevel, told.data, told.logger)
    const { type: _type, ...progress } = told
    if (progressToken === undefined) return undefined
    return mcpReq.notify({ method: 'notifications/progress', params: { progressToken, ...progress } })
  }
  return told => {
    left -= JSON.stringify(told).length
    if (left >= 0) send(told)?.catch(lost)
  }
}
