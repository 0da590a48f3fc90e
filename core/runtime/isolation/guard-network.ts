import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { pipeline } from 'node:stream'
import { reword } from './errors.ts'

/**
 * Opens a port on the loopback interface of the sandbox that leads to the proxy of the host. HTTP libraries do not support
 * proxies on sockets.
 */
export async function openProxyPort({ socket, port }: { readonly socket: string; readonly port: number }): Promise<void> {
  const door = createServer({ allowHalfOpen: true }, near => {
    const far = connect({ path: socket, allowHalfOpen: true })
    // The client sees the connection end. The host logs the reason.
    pipeline(near, far, near, () => {})
  })
  door.listen(port, '127.0.0.1')
  await once(door, 'listening')
  door.unref()
}

/** Adds the host that the proxy denied to errors of `fetch`, which otherwise hide it in nested causes. */
export function guardFetch(describe: (host: string) => string): void {
  const { fetch } = globalThis
  globalThis.fetch = (asked, options) =>
    fetch(asked, options).catch((error: Error) => {
      if (isRefused(error)) reword(error, `${error.message}: ${describe(hostOf(asked))}${OTHERWISE}`)
      throw error
    })
}

const hostOf = (asked: string | URL | Request) => new URL(asked instanceof Request ? asked.url : asked).host
const OTHERWISE = '; or it redirects to an undeclared host, or to an address that is not public'
const isRefused = (error: unknown): boolean =>
  error instanceof Error && (error.message.includes('Proxy response (403)') || isRefused(error.cause))
