import type { McpHttpHandler } from '@modelcontextprotocol/server'
import { type CallContext, isTree, messageOf } from '@svc/core'
import { decodeHeader, headerText, type ParamHeader } from '@svc/mcp-protocol'
import { parameterMismatch } from './errors.ts'
import { answerPlain, modernFrame, plainModern } from './fast.ts'
import { headerMismatch, type HttpAnswer, type HttpMessage, idOf, resourceUnknown, type MessageHeaders } from './messages.ts'
import { createProtocolServer } from './protocol-server.ts'
import type { Published } from './published.ts'
import { mayFollow } from './resource-handlers.ts'
import { answerOf, attachContext, loadSdk, webRequest } from './sdk.ts'

/** Answers requests of the stateless era. */
export interface Modern {
  answer(message: HttpMessage, body: unknown, ctx: CallContext): Promise<HttpAnswer>
}

/** Answers plain requests itself and passes all others to the SDK. `subscriptions` limits the open subscriptions of a worker. */
export function createModern(published: Published, subscriptions: number): Modern {
  const frame = modernFrame(published.info)
  let handler: Promise<McpHttpHandler> | undefined
  return {
    async answer(message, body, ctx) {
      const mismatch = mismatchOf(message, body, published)
      if (mismatch) return mismatch
      if (!(await mayListen(body, published, ctx))) return resourceUnknown(idOf(body))
      const plain = plainModern(message.headers, body)
      const can = plain?.method === 'tools/call' ? (plain.can ?? []) : []
      const fast = plain && (await answerPlain(plain, frame, published, { ctx, can }))
      if (fast && !('begun' in fast)) return fast
      handler ??= open(published, subscriptions)
      const authInfo = attachContext({ ctx, begun: fast?.begun })
      const response = await (await handler).fetch(webRequest(message, ctx.signal), { parsedBody: body, authInfo })
      return answerOf(response, ctx.signal)
    },
  }
}

async function open(published: Published, maxSubscriptions: number): Promise<McpHttpHandler> {
  const sdk = await loadSdk()
  const { changes, log } = published
  return sdk.createMcpHandler(() => createProtocolServer(sdk, published), {
    legacy: 'reject',
    maxSubscriptions,
    onerror: err => log.debug({ err }, 'rejected an MCP request'),
    bus: { publish: () => {}, subscribe: listener => changes.subscribe(listener, true) },
  })
}

/** The SDK checks `Mcp-Param-*` headers only for tools that are registered with it. */
function mismatchOf({ headers }: HttpMessage, body: unknown, { catalogue }: Published): HttpAnswer | undefined {
  if (!isTree(body) || body.method !== 'tools/call' || !isTree(body.params)) return undefined
  const { name, arguments: args } = body.params
  const tool = typeof name === 'string' ? catalogue().get(name) : undefined
  if (!tool || tool.headers.length === 0) return undefined
  try {
    checkParameterHeaders(tool.headers, args, headers)
    return undefined
  } catch (error) {
    return headerMismatch(messageOf(error), idOf(body))
  }
}

/** Maximum number of resources in a subscription. svc reads each resource to check access. */
const MOST_FOLLOWED = 100

/** Whether the caller can read every resource of a subscription. */
async function mayListen(body: unknown, published: Published, ctx: CallContext): Promise<boolean> {
  if (!isTree(body) || body.method !== 'subscriptions/listen' || !isTree(body.params)) return true
  const { notifications } = body.params
  const uris = isTree(notifications) ? notifications.resourceSubscriptions : undefined
  if (!Array.isArray(uris) || published.resources === undefined) return true
  if (uris.length > MOST_FOLLOWED) return false
  const sdk = await loadSdk()
  for (const uri of uris) if (typeof uri === 'string' && !(await mayFollow(sdk, published, uri, ctx))) return false
  return true
}

/** Throws MCP_HEADER_MISMATCH for a header that is missing or differs from its argument. An absent argument needs no header. */
function checkParameterHeaders(declared: readonly ParamHeader[], args: unknown, headers: MessageHeaders): void {
  for (const { path, name } of declared) {
    const expected = headerText(args, path)
    if (expected === undefined) continue
    const header = `Mcp-Param-${name}`
    const given = headers[header.toLowerCase()]
    if (given === undefined) throw parameterMismatch(header, path, 'it is missing')
    const decoded = decodeHeader(given)
    if (decoded === undefined) throw parameterMismatch(header, path, 'it is not Base64 of UTF-8 text')
    if (decoded !== expected && !isSameNumber(decoded, expected))
      throw parameterMismatch(header, path, 'it has a different value')
  }
}

const NUMBER = /^-?\d+(\.\d+)?$/
const isSameNumber = (a: string, b: string) => NUMBER.test(a) && NUMBER.test(b) && Number(a) === Number(b)
