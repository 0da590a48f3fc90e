// node:http and nothing else.
import { createServer } from 'node:http'
import { replyTo } from './reply.js'

createServer((req, res) => {
  const chunks = []
  req.on('data', chunk => chunks.push(chunk))
  req.on('end', () => {
    const { message = '' } = chunks.length > 0 ? JSON.parse(Buffer.concat(chunks)) : {}
    const text = JSON.stringify(replyTo(message))
    res.writeHead(200, { 'Content-Type': 'application/json; charset=utf-8', 'Content-Length': Buffer.byteLength(text) })
    res.end(text)
  })
}).listen(Number(process.argv[2]), '127.0.0.1')
