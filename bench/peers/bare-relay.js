// node:http that relays a request to the upstream with undici, byte for byte.
import { createServer } from 'node:http'
import { Pool } from 'undici'

const [port, upstream] = process.argv.slice(2).map(Number)
const pool = new Pool(`http://127.0.0.1:${upstream}`, { connections: 512 })

createServer((req, res) => {
  if (req.method === 'GET') return res.end('ok')
  const chunks = []
  req.on('data', chunk => chunks.push(chunk))
  req.on('end', () => {
    const headers = { 'content-type': 'application/json' }
    pool
      .stream({ path: req.url, method: 'POST', headers, body: Buffer.concat(chunks) }, ({ statusCode, headers: answered }) =>
        res.writeHead(statusCode, { 'content-type': answered['content-type'] })
      )
      .catch(() => res.destroy())
  })
}).listen(port, '127.0.0.1')
