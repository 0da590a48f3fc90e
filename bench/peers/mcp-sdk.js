// The SDK's low-level server over a shared list, for the stateless era: `mcp-sdk.js <port>`.
import { createServer } from 'node:http'
import { toNodeHandler } from '@modelcontextprotocol/node'
import { createMcpHandler, Server } from '@modelcontextprotocol/server'
import { answer, listed } from './mcp-list.js'

const info = { name: 'peer', version: '1.0.0' }

function factory() {
  const server = new Server(info, { capabilities: { tools: { listChanged: true } } })
  server.setRequestHandler('tools/list', () => ({ tools: listed }))
  server.setRequestHandler('tools/call', ({ params }) => answer(params.arguments))
  return server
}

const handle = toNodeHandler(createMcpHandler(factory, { legacy: 'reject' }))

createServer((req, res) => {
  if (req.url === '/health') res.end('ok')
  else void handle(req, res)
}).listen(Number(process.argv[2]), '127.0.0.1')
