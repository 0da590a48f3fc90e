import type { ServerResponse } from 'node:http'
import type { Mount } from '@svc/core/contracts'
import { checkedReply, put, requestOf, sendReply } from './answer.ts'
import type { Exchange, Gate } from './exchange.ts'
import type { Refusal } from './refusal.ts'
import type { RouteReplies } from './route-replies.ts'
import type { Bound } from './routing.ts'
import { type StreamLimits, sendStream } from './stream.ts'

interface WalkParts {
  readonly gates: readonly Gate[]
  readonly refuse: Refusal
  readonly limits: StreamLimits
  readonly replies: RouteReplies
}

/** The way of a request: through the gates to its route or mount, and the answer. Never fails. */
export function createWalk({ gates, refuse, limits, replies }: WalkParts): (x: Exchange) => Promise<void> {
  const answer = async (x: Exchange, bound: Bound) => {
    const { route } = bound
    if (!route.stream) return sendReply(x, replies.fit(bound, checkedReply(await route.handle!(requestOf(x), x.use))))
    if (x.method === 'HEAD') return sendReply(x, { status: 200, text: '' })
    const { type, headers } = replies.forStream(bound, route.streams ?? 'text/plain; charset=utf-8')
    for (const [name, value] of Object.entries(headers)) put(x.headers, x.life.headers.length, name, value)
    await sendStream(x, route.stream(requestOf(x), x.use), type, limits)
  }
  return async x => {
    try {
      for (const gate of gates) {
        const passed = gate(x)
        const reply = passed instanceof Promise ? await passed : passed
        if (reply) return sendReply(x, reply)
      }
      if (x.mount) return await handOver(x, x.mount, replies)
      await answer(x, x.route!)
    } catch (error) {
      refuse(x, error)
    }
  }
}

/** Gives the raw request away: the body is the mount's, and the answer as far as it writes it. */
async function handOver(x: Exchange, mount: Mount, replies: RouteReplies): Promise<void> {
  if (!mount.answer) return mount.handle!(x.req, prepared(x), x.use)
  const answer = await mount.answer(x.req, x.use)
  const from = { name: mount.path, plugin: undefined, isIsolated: false }
  if (typeof answer !== 'function') return sendReply(x, replies.fit(from, checkedReply(answer)))
  await answer(prepared(x))
}

/** A response that has what every answer carries. */
function prepared({ res, headers, life }: Exchange): ServerResponse {
  for (let at = 0; at < headers.length; at += 2) res.setHeader(headers[at]!, headers[at + 1]!)
  res.statusCode = 200 // koa begins with 404
  if (life.draining) res.setHeader('Connection', 'close')
  return res
}
