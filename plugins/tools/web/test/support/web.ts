import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { systemContext } from '@svc/core'
import { type Tool, Tools } from '@svc/core/contracts'
import { testHost } from '@svc/testing'
import { expect } from 'chai'

type Answer = (request: IncomingMessage, response: ServerResponse, body: string) => unknown

/** A web server on the loopback. */
export async function site(answer: Answer) {
  const asked: { url: string; headers: IncomingMessage['headers']; body: string }[] = []
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += String(chunk)
    asked.push({ url: request.url!, headers: request.headers, body })
    answer(request, response, body)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const close = async () => {
    server.closeAllConnections()
    await new Promise(resolve => server.close(resolve))
  }
  const { port } = server.address() as AddressInfo
  return { asked, port, server, url: `http://127.0.0.1:${port}`, close, [Symbol.asyncDispose]: close }
}

/** A site with fixed pages by path: type and body. */
export const pages = (all: Readonly<Record<string, readonly [type: string, body: string | Uint8Array, status?: number]>>) =>
  site((request, response) => {
    const [type, body, status = 200] = all[request.url!] ?? ['text/plain', 'nothing here', 404]
    response.writeHead(status, type === '' ? {} : { 'content-type': type }).end(body)
  })

/** Starts the plugin in a host that can fetch from the loopback. */
export async function openWeb(config: object = {}) {
  const host = await testHost([new URL('../..', import.meta.url)], {
    config: { tools: { web: { allow: ['127.0.0.1'], ...config } } },
  })
  const ctx = () => systemContext(new AbortController().signal)
  const tool = (name: string) => host.slot(Tools).get(name)
  const call = async (name: string, args: Parameters<Tool['call']>[0], given = ctx()) => {
    const { structured, content } = await tool(name)!.call(args, given)
    const [part] = content
    return { ...(structured as Record<string, unknown>), words: part?.type === 'text' ? part.text : '' } as Page
  }
  const close = () => host.close()
  return {
    host,
    tool,
    call,
    close,
    fetch: (args: Parameters<Tool['call']>[0]) => call('fetch_page', args),
    [Symbol.asyncDispose]: close,
  }
}

type Page = Record<string, unknown> & { words: string; content: string; note?: string; title?: string; results: object[] }

export const refusal = (work: Promise<unknown>): Promise<Error & { code?: string; hint?: string; details?: object }> =>
  work.then(
    () => expect.fail('it was not refused'),
    (error: Error) => error
  )
