// A cheap model server for chat completions. `model` selects the form of a stream: `fast-100` has 100 tokens, one frame in each
// turn
// of the loop; `paced-100` one every 20 ms. GET /served returns the number of started streams.
import { createServer } from 'node:http'
import { setImmediate as turn, setTimeout as wait } from 'node:timers/promises'

const WORDS = ['time', ' home', ' water', ' people', ' world', ' year', ' light', ' and', ' so', ' on']
const HEADERS = { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-cache' }
const PACE_MS = 20
const BASE = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1700000000, model: 'bench' }
const frame = (choices, more = {}) => `data: ${JSON.stringify({ ...BASE, ...more, choices })}\n\n`
const FRAMES = WORDS.map(content => frame([{ index: 0, delta: { content }, finish_reason: null }]))
const FIRST = frame([{ index: 0, delta: { role: 'assistant', content: 'now' }, finish_reason: null }])
const lastOf = tokens =>
  `${frame([{ index: 0, delta: {}, finish_reason: 'stop' }])}${frame([], { usage: usageOf(tokens) })}data: [DONE]\n\n`
const usageOf = tokens => ({ prompt_tokens: 12, completion_tokens: tokens, total_tokens: 12 + tokens })
const WHOLE = JSON.stringify({
  ...BASE,
  object: 'chat.completion',
  choices: [{ index: 0, message: { role: 'assistant', content: WORDS.join('') }, finish_reason: 'stop' }],
  usage: usageOf(WORDS.length),
})
const MODELS = JSON.stringify({ object: 'list', data: [{ id: 'fast-100' }, { id: 'paced-100' }] })
let served = 0

createServer((req, res) => {
  const chunks = []
  req.on('data', chunk => chunks.push(chunk))
  req.on('end', async () => {
    if (req.url === '/served') return res.end(String(served))
    if (req.method === 'GET') return res.end(MODELS)
    served++
    const { stream, model } = JSON.parse(Buffer.concat(chunks))
    if (!stream) return res.writeHead(200, { 'Content-Type': 'application/json' }).end(WHOLE)
    const [way, count] = model.split('-')
    const tokens = Number(count)
    res.writeHead(200, HEADERS)
    res.write(FIRST)
    for (let at = 1; at < tokens && !res.destroyed; at++) {
      await (way === 'paced' ? wait(PACE_MS) : turn())
      res.write(FRAMES[at % FRAMES.length])
    }
    res.end(lastOf(tokens))
  })
}).listen(Number(process.argv[2]), '127.0.0.1')
