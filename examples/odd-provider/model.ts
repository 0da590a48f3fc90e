// A server that speaks the wire of this example: it repeats what it hears. `npm run model`, or `node model.ts <port>`.
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

interface Asked {
  readonly script: readonly { readonly line: string }[]
}

async function say(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { script } = JSON.parse(Buffer.concat(await request.toArray()).toString()) as Asked
  const words = `Awk! ${script.at(-1)?.line}`.split(/(?<= )/)
  response.writeHead(200, { 'content-type': 'application/x-ndjson' })
  for (const at of words.keys()) response.write(`${JSON.stringify({ so_far: words.slice(0, at + 1).join('') })}\n`)
  response.end(`${JSON.stringify({ done: 'end', cost: { heard: 3, said: words.length } })}\n`)
}

const server = createServer((request, response) => {
  if (request.method === 'GET' && request.url === '/voices') response.end('{"voices":["polly","jack"]}')
  else if (request.method === 'POST' && request.url === '/say') void say(request, response)
  else response.writeHead(404).end()
})
server.listen(Number(process.argv[2] ?? 4000), '127.0.0.1')
await once(server, 'listening')
console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
