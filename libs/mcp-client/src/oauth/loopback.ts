import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Person } from './options.ts'

/** A person with a browser on this machine. */
export interface Loopback extends Person, AsyncDisposable {}

const PAGE = '<!doctype html><meta charset="utf-8"><title>svc</title><p>You are logged in. This page may be closed.'
const PATH = '/callback'

/** Waits at 127.0.0.1 for the browser to come back; `show` opens the page, or prints where it is. `port` 0 takes any. */
export async function openLoopback(show: (page: URL) => void | Promise<void>, port: number): Promise<Loopback> {
  let came = Promise.withResolvers<URLSearchParams>()
  const server = createServer((request, response) => {
    const [path, query] = (request.url ?? '').split('?', 2)
    if (path !== PATH) return void response.writeHead(404).end()
    response.writeHead(200, { 'content-type': 'text/html', connection: 'close' }).end(PAGE)
    came.resolve(new URLSearchParams(query))
  })
  await once(server.listen(port, '127.0.0.1'), 'listening')
  return {
    redirectUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}${PATH}`,
    async authorize(page) {
      came = Promise.withResolvers()
      await show(page)
      return came.promise
    },
    [Symbol.asyncDispose]: () => closed(server),
  }
}

async function closed(server: Server): Promise<void> {
  server.close()
  server.closeAllConnections()
  if (server.listening) await once(server, 'close')
}
