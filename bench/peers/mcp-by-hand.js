// The minimal bridge from HTTP to the stdin of a tool server, without checks: `mcp-by-hand.js <port> <server.js>`.
import { spawn } from 'node:child_process'
import { createServer } from 'node:http'
import { createInterface } from 'node:readline'

const [port, script] = process.argv.slice(2)
const child = spawn(process.execPath, [script], { stdio: ['pipe', 'pipe', 'inherit'] })
const waiting = new Map()
let last = 0

createInterface({ input: child.stdout }).on('line', line => {
  const message = JSON.parse(line)
  const { res, id } = waiting.get(message.id)
  waiting.delete(message.id)
  const text = JSON.stringify({ ...message, id })
  res.writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': 'one', 'content-length': Buffer.byteLength(text) })
  res.end(text)
})

createServer((req, res) => {
  if (req.url === '/health') return void res.end('ok')
  const chunks = []
  req.on('data', chunk => chunks.push(chunk))
  req.on('end', () => {
    const message = JSON.parse(Buffer.concat(chunks).toString())
    if (message.id === undefined) {
      child.stdin.write(`${JSON.stringify(message)}\n`)
      return void res.writeHead(202).end()
    }
    waiting.set(++last, { res, id: message.id })
    child.stdin.write(`${JSON.stringify({ ...message, id: last })}\n`)
  })
}).listen(Number(port), '127.0.0.1')
process.once('SIGTERM', () => child.kill() && process.exit(0))
