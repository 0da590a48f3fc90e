import { once } from 'node:events'
import { createServer, request as send } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A proxy on loopback for http addresses. */
export interface Proxy extends AsyncDisposable {
  readonly url: string
  /** The hosts that were asked for through it, in order. */
  readonly asked: string[]
}

/** Opens a proxy; with a status it refuses. */
export async function openProxy(refusal?: number): Promise<Proxy> {
  const asked: string[] = []
  const server = createServer((request, response) => {
    const { method, url = '', headers } = request
    asked.push(new URL(url).host)
    if (refusal !== undefined) return void response.writeHead(refusal).end()
    const far = send(url, { method, headers }, answer => {
      response.writeHead(answer.statusCode!, answer.headers)
      answer.pipe(response)
    })
    far.on('error', () => response.destroy())
    request.pipe(far)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    async [Symbol.asyncDispose]() {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}
