import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { Json, Route } from '@svc/core/contracts'
import { Http, Routes } from '@svc/core/contracts'
import { type ConfigTree, type LogOptions, type RunningHost, systemContext } from '@svc/core'
import { type Fixture, item, testHost } from '@svc/testing'

export const ctx = systemContext(new AbortController().signal)

/** A host with the HTTP server and these routes; `call` talks to it. */
export async function serve(
  routes: Record<string, Route>,
  server: ConfigTree = {},
  log?: LogOptions,
  gifts: readonly Fixture[] = [],
  cluster: { readonly clusterId?: string } = {}
) {
  const give = [...Object.entries(routes).map(([name, route]) => item(Routes, name, route)), ...gifts]
  const config = { server: { port: 0, ...server } }
  const host = await testHost([new URL('../..', import.meta.url)], { give, config, ...cluster, ...(log ? { log } : {}) })
  return { host, url: await urlOf(host), [Symbol.asyncDispose]: () => host.close() }
}

export async function urlOf(host: RunningHost): Promise<string> {
  const address = await host.service(Http).address(ctx)
  return address!.url
}

/** What came back: status, headers, and the body as JSON where it is. */
export async function call(url: string, init: RequestInit = {}) {
  const response = await fetch(url, init)
  const text = await response.text()
  return {
    status: response.status,
    headers: response.headers,
    text,
    body: (text.startsWith('{') ? JSON.parse(text) : undefined) as { [key: string]: Json },
  }
}

export const post = (
  url: string,
  body: string | Uint8Array<ArrayBuffer>,
  headers: Record<string, string> = { 'content-type': 'application/json' }
) => call(url, { method: 'POST', body, headers })

/** A bare connection, for what no HTTP client would send. */
export async function open(url: string): Promise<Socket> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  socket.on('error', () => {})
  await once(socket, 'connect')
  return socket
}

/** Sends these bytes and reads until the far side closes. */
export async function raw(
  url: string,
  bytes: string | Uint8Array
): Promise<{ status: number; head: string; body: { [key: string]: Json } }> {
  const socket = await open(url)
  let text = ''
  socket.setEncoding('utf8').on('data', chunk => (text += chunk))
  socket.write(bytes)
  await once(socket, 'close')
  const [head = '', body = ''] = text.split('\r\n\r\n')
  return { status: Number(head.split(' ')[1]), head, body: body.startsWith('{') ? JSON.parse(body) : {} }
}

/** Something to wait for. */
export function signalOf<T = void>() {
  const { promise, resolve } = Promise.withResolvers<T>()
  return { promise, resolve }
}
