import { once } from 'node:events'
import { createServer, request as send, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A proxy in front of a server that lets each event stream carry so many events, and then breaks the connection. */
export interface CuttingProxy extends AsyncDisposable {
  readonly url: string
  /** The `Last-Event-ID` of each stream. */
  readonly asked: (string | undefined)[]
  /** The paths of the streams. */
  readonly paths: string[]
}

/** `isClean`: the response ends as if it were whole. */
export async function openCuttingProxy(target: string, events: number, isClean = false): Promise<CuttingProxy> {
  const asked: (string | undefined)[] = []
  const paths: string[] = []
  const server = createServer((request, response) => {
    const { method, url = '', headers } = request
    const { host: _host, ...rest } = headers
    const far = send(new URL(url, target), { method, headers: rest }, answer => {
      response.writeHead(answer.statusCode!, answer.headers)
      response.flushHeaders()
      if (!answer.headers['content-type']?.startsWith('text/event-stream')) return void answer.pipe(response)
      asked.push(headers['last-event-id']?.toString())
      paths.push(url)
      const cut = cutAfter(events, response, isClean)
      answer
        .setEncoding('utf8')
        .on('data', cut)
        .on('error', () => response.destroy())
        .on('end', () => response.end())
      response.on('close', () => answer.destroy())
    })
    far.on('error', () => response.destroy())
    request.pipe(far)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    paths,
    async [Symbol.asyncDispose]() {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}

/** Passes frames on one by one. After the last one, half of the next goes out too. */
function cutAfter(events: number, response: ServerResponse, isClean: boolean): (text: string) => void {
  let left = events
  let rest = ''
  let isOver = false
  return text => {
    if (isOver) return
    const frames = (rest + text).split('\n\n')
    rest = frames.pop() ?? ''
    for (const frame of frames) {
      const isEvent = frame.includes('\nevent:') || frame.startsWith('event:')
      if (isEvent && left === 0) {
        isOver = true
        if (isClean) response.end()
        else response.write(frame.slice(0, frame.length / 2), () => response.destroy())
        return
      }
      if (isEvent) left -= 1
      response.write(`${frame}\n\n`)
    }
  }
}
