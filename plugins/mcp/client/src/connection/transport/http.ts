import { AsyncLocalStorage } from 'node:async_hooks'
import { withTimeout } from '@svc/core'
import { asMessage, type Link, type LinkEvents, tapped } from '../json-rpc.ts'
import { createAuth, sharedRefresh } from '../oauth/authorization.ts'
import type { HttpOptions, NamedServers } from '../options.ts'
import type { Clock } from '../timing.ts'
import { createUpstreamFetch } from './upstream-fetch.ts'

/** The SDK does not report to which request a stream belongs: its messages are handled in the async context of the sender. */
const senders = new AsyncLocalStorage<string>()
/** Limit for ending the session at the server. */
const TERMINATE_MS = 1_000

/** Minimum wait before a stream is opened again; the server chooses the wait, and 0 would keep this process busy. */
const REOPEN_MS = 250

/** Streamable HTTP: the SDK's transport over the guarded fetch. */
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
    reconnectionScheduler: (again, ms) => clock.after(Math.max(REOPEN_MS, ms), again),
    ...(auth !== undefined && { authProvider: auth.provider }),
  })
  const reason = Promise.withResolvers<string>()
  const closed = (why: string) => {
    reason.resolve(why)
    return (ending ??= end())
  }
  let ending: Promise<void> | undefined
  async function end(): Promise<void> {
    // a server that does not answer ends the session by itself
    if (inner.sessionId !== undefined) await withTimeout(TERMINATE_MS, () => inner.terminateSession()).catch(() => {})
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
