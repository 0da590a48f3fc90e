import type { McpHttpHandler } from '@modelcontextprotocol/server'
import { isTree, messageOf, type CallContext } from '@svc/core'
import { answerPlain, modernFrame, plainModern } from './fast.ts'
import { headerMismatch, resourceUnknown } from './faults.ts'
import { type HttpAnswer, type HttpMessage, idOf } from './message.ts'
import { checkParameterHeaders } from './parameter-headers.ts'
import { createProtocolServer } from './protocol-server.ts'
import type { Published } from './published.ts'
import { mayFollow } from './resource-handlers.ts'
import { carry, loadSdk } from './sdk.ts'
import { answerOf, webRequest } from './web.ts'

/** The stateless era: each request says all about itself. */
export interface Modern {
  answer(message: HttpMessage, body: unknown, ctx: CallContext): Promise<HttpAnswer>
}

/** Requests of the plain kind are answered here, all others by the SDK. `subscriptions`: how many of them a worker has open. */
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
      const authInfo = carry({ ctx, begun: fast?.begun })
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
    onerror: err => log.debug({ err }, 'a request of the tool protocol was refused'),
    bus: { publish: () => {}, subscribe: listener => changes.subscribe(listener, true) },
  })
}

/** The SDK looks at headers that repeat arguments only where it has the tools itself. */
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

/** Resources that one subscription may follow: each is read to see whether it may. */
const MOST_FOLLOWED = 100

/** Whether each resource that a subscription is to follow is one that its caller may read. */
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
