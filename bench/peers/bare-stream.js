// node:http that writes the frames of a reply. The path selects how: /turns one socket write each, one per turn of the loop;
// /corked one res.write each, all in one turn (Node gathers them); /joined one text; /paced one write each, `pace` milliseconds
// apart.
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { setImmediate as turn, setTimeout as wait } from 'node:timers/promises'
import { MODEL } from './reply.js'

const HEADERS = { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-cache', 'X-Accel-Buffering': 'no' }

function* frames(pieces) {
  const now = { request_id: randomUUID(), timestamp: new Date().toISOString() }
  let id = 0
  const frame = data => `id: ${++id}\nevent: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`
  yield frame({ type: 'start', ...now, conversation_id: `conv_${randomUUID().replaceAll('-', '')}`, ...MODEL })
  for (let index = 0; index < pieces.length; index++) yield frame({ type: 'token', content: pieces[index], index })
  const tokens_used = { input: pieces.length, output: pieces.length, total: 2 * pieces.length }
  yield frame({ type: 'end', ...now, status: 'completed', ...MODEL, tokens_used, duration_ms: 1 })
}

const WAYS = {
  async turns(res, pieces) {
    for (const frame of frames(pieces)) {
      res.write(frame)
      await turn()
    }
  },
  corked(res, pieces) {
    for (const frame of frames(pieces)) res.write(frame)
  },
  joined(res, pieces) {
    let text = ''
    for (const frame of frames(pieces)) text += frame
    res.write(text)
  },
  async paced(res, pieces, pace) {
    for (const frame of frames(pieces)) {
      res.write(frame)
      await wait(pace)
    }
  },
}

createServer((req, res) => {
  const chunks = []
  req.on('data', chunk => chunks.push(chunk))
  req.on('end', async () => {
    if (req.method === 'GET') return res.end('ok')
    const { message, pace } = JSON.parse(Buffer.concat(chunks))
    res.writeHead(200, HEADERS)
    await WAYS[req.url.slice(1)](res, `You said: ${message}`.match(/\s*\S+/g), pace)
    res.end()
  })
}).listen(Number(process.argv[2]), '127.0.0.1')
