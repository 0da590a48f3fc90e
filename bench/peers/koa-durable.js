// Plain koa that stores each turn: node koa-durable.js <port> <file> [commit-each|search]. The response waits for the commit.
// With `search`, it also keeps the texts and an FTS5 table of their words, in a later commit, as svc does.
import { Worker } from 'node:worker_threads'
import { serve } from './koa-app.js'
import { replyTo } from './reply.js'

const [, , port, file, mode] = process.argv
const waiting = new Map()
const writer = new Worker(new URL('./durable-writer.js', import.meta.url), { workerData: { file, mode } })
writer.on('message', ids => {
  for (const id of ids) waiting.get(id)()
  for (const id of ids) waiting.delete(id)
})

let last = 0
let outbox = []
function keep(turn) {
  const id = ++last
  if (outbox.push({ id, ...turn }) === 1) setImmediate(flush)
  return new Promise(resolve => waiting.set(id, resolve))
}
function flush() {
  writer.postMessage(outbox)
  outbox = []
}

// The same rows that svc stores: a conversation in two orders, a stream, an entry of its log.
serve(Number(port), async message => {
  const reply = replyTo(message)
  const now = new Date().toISOString()
  const record = {
    owner: 'anonymous',
    created: now,
    updated: now,
    count: 2,
    turns: 1,
    bytes: message.length + reply.response.length,
  }
  const turn = [
    { role: 'user', parts: [{ type: 'text', text: message }] },
    { role: 'assistant', parts: [{ type: 'text', text: reply.response }], provider: reply.provider },
  ]
  const texts = { owner: 'anonymous', user: message, assistant: reply.response, at: [0, 1] }
  await keep({ key: reply.conversation_id, now, record: JSON.stringify(record), turn: JSON.stringify(turn), texts })
  return reply
})
