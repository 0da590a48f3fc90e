import { AsyncLocalStorage } from 'node:async_hooks'
import { within } from '@svc/core'
import { createAuth, sharedRefresh } from '../oauth/authorization.ts'
import type { HttpOptions, NamedServers } from '../options.ts'
import type { Clock } from '../timing.ts'
import { asMessage, type Link, type LinkEvents, tapped } from './link.ts'
import { createUpstreamFetch } from './upstream-fetch.ts'

/** The SDK does not say to which request an answer's stream belongs: what comes on it is handled in the context of who sent it. */
const senders = new AsyncLocalStorage<string>()
/** Milliseconds for telling a server that its session is over. */
const GOODBYE_MS = 1_000

/** A server says when to come back to a stream that has ended; at once, without end, it would have all of this process. */
const AGAIN_MS = 250

/** Streamable HTTP, through the SDK's transport over our guarded fetch. */
export async function openHttp(
  options: HttpOptions,
  servers: NamedServers,
  resultBytes: number,
  clock: Clock,
  events: LinkEvents
): Promise<Link> {
  const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client')
  const upstream = createUpstreamFetch(options, servers, resultBytes, () => {
    const sender = senders.getStore()
    return () => events.tooLong(sender)
  })
  const fetch = sharedRefresh((url, init) => upstream.fetch(url, init))
  const auth = await createAuth(options, fetch, upstream.refused, clock)
  const inner = new StreamableHTTPClientTransport(new URL(options.url), {
    fetch,
    reconnectionScheduler: (again, ms) => clock.after(Math.max(AGAIN_MS, ms), again),
    ...(auth !== undefined && { authProvider: auth.provider }),
  })
  const reason = Promise.withResolvers<string>()
  const closed = (why: string) => {
    reason.resolve(why)
    return (ending ??= end())
  }
  let ending: Promise<void> | undefined
  async function end(): Promise<void> {
    // a server that does not answer keeps its session until it is idle
    if (inner.sessionId !== undefined) await within(GOODBYE_MS, () => inner.terminateSession()).catch(() => {})
    await inner.close()
    await upstream.close()
  }
  return {
    transport: tapped(inner, events.take),
    perRequest: true,
    send(message, sender, failed, sendOptions) {
      senders.run(sender, () => inner.send(asMessage(message), sendOptions)).catch(failed)
    },
    sender: () => senders.getStore(),
    ended: reason.promise,
    giveUp: why => void closed(why),
    close: () => closed('it was closed'),
    stderr: () => undefined,
    async authorize() {
      const answer = await auth?.answer?.()
      if (answer === undefined) return false
      await inner.finishAuth(answer)
      return true
    },
  }
}
