import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { pipeline } from 'node:stream'

/** Opens a port on the loopback of the sandbox, behind which is the host's proxy: HTTP libraries know no proxies at sockets. */
export async function openProxyDoor({ socket, port }: { readonly socket: string; readonly port: number }): Promise<void> {
  const door = createServer({ allowHalfOpen: true }, near => {
    const far = connect({ path: socket, allowHalfOpen: true })
    // Whoever asked sees the connection end; why it did is the host's to tell.
    pipeline(near, far, near, () => {})
  })
  door.listen(port, '127.0.0.1')
  await once(door, 'listening')
  door.unref()
}
