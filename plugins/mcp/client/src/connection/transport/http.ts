import { AsyncLocalStorage } from 'node:async_hooks'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { withTimeout } from '@svc/core'
import { createLogin, sharedRefresh } from '@svc/mcp-protocol/oauth'
import { createServerFetch, type NamedServers } from '@svc/mcp-protocol/server-fetch'
import type { McpConnection, ServerTransport } from '../connection.ts'
import type { HttpOptions } from '../client-types.ts'

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
  connection: McpConnection
): Promise<ServerTransport> {
  const upstream = createServerFetch(options, servers, resultBytes, () => {
    const sender = senders.getStore()
    return () => connection.tooLong(sender)
  })
  const login = options.oauth && options.oauth.tokenUrl === undefined ? await createLogin(options.oauth) : undefined
  const inner = new StreamableHTTPClientTransport(new URL(options.url), {
    fetch: sharedRefresh((url, init) => upstream.fetch(url, init)),
    reconnectionScheduler(again, ms) {
      const timer = setTimeout(again, Math.max(REOPEN_MS, ms))
      return () => clearTimeout(timer)
    },
    ...(login && { authProvider: login.provider }),
  })
  const reason = Promise.withResolvers<string>()
  let ending: Promise<void> | undefined
  async function end(): Promise<void> {
    reason.resolve('it was closed')
    // a server that does not answer ends the session by itself
    if (inner.sessionId !== undefined) await withTimeout(TERMINATE_MS, () => inner.terminateSession()).catch(() => {})
    await inner.close()
    await upstream.close()
  }
  const outer: ServerTransport = {
    hasPerRequestStream: true,
    start: () => inner.start(),
    send: (message, sendOptions, sender) =>
      sender === undefined ? inner.send(message, sendOptions) : senders.run(sender, () => inner.send(message, sendOptions)),
    sender: () => senders.getStore(),
    close: () => inner.close(),
    get sessionId() {
      return inner.sessionId
    },
    setProtocolVersion: version => inner.setProtocolVersion(version),
    ended: reason.promise,
    end: () => (ending ??= end()),
    abort(why) {
      reason.resolve(why)
      void outer.end()
    },
    async authorize() {
      const answer = await login?.answer()
      if (answer === undefined) return false
      await inner.finishAuth(answer)
      return true
    },
    stderr: () => undefined,
    authMs: () => upstream.authMs(),
  }
  inner.onmessage = message => void (connection.take(message) || outer.onmessage?.(message))
  inner.onclose = () => outer.onclose?.()
  inner.onerror = error => outer.onerror?.(error)
  return outer
}
