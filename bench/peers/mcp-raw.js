// The minimum cost of JSON over node:http, without checks: `mcp-raw.js <port>`.
import { createServer } from 'node:http'
import { answer, listed } from './mcp-list.js'

const list = JSON.stringify(listed)

const resultOf = ({ method, params }) =>
  method === 'tools/list' ? `{"tools":${list}}` : JSON.stringify(answer(params.arguments))

createServer((req, res) => {
  if (req.url === '/health') return void res.end('ok')
  const chunks = []
  req.on('data', chunk => chunks.push(chunk))
  req.on('end', () => {
    const body = JSON.parse(Buffer.concat(chunks).toString())
    const text = `{"jsonrpc":"2.0","id":${JSON.stringify(body.id)},"result":${resultOf(body)}}`
    res.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }).end(text)
  })
}).listen(Number(process.argv[2]), '127.0.0.1')
