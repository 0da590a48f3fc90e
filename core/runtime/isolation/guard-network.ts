import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { pipeline } from 'node:stream'
import { reword, undeclared } from './errors.ts'

/** Opens a port on the loopback of the sandbox, behind which is the host's proxy: HTTP libraries know no proxies at sockets. */
export async function openProxyPort({ socket, port }: { readonly socket: string; readonly port: number }): Promise<void> {
  const door = createServer({ allowHalfOpen: true }, near => {
    const far = connect({ path: socket, allowHalfOpen: true })
    // Whoever asked sees the connection end; why it did is the host's to tell.
    pipeline(near, far, near, () => {})
  })
  door.listen(port, '127.0.0.1')
  await once(door, 'listening')
  door.unref()
}

/** Lets `fetch` say which host the proxy has refused: its own words are for whoever looks at causes of causes. */
export function guardFetch(): void {
  const { fetch } = globalThis
  globalThis.fetch = (asked, options) =>
    fetch(asked, options).catch((error: Error) => {
      if (isRefused(error)) reword(error, `${error.message}: ${undeclared('network', hostOf(asked))}${OTHERWISE}`)
      throw error
    })
}

const hostOf = (asked: string | URL | Request) => new URL(asked instanceof Request ? asked.url : asked).host
const OTHERWISE = '; or it leads on to a host that is not, or to an address that is not public'
const isRefused = (error: unknown): boolean =>
  error instanceof Error && (error.message.includes('Proxy response (403)') || isRefused(error.cause))
