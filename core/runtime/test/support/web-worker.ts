import { once } from 'node:events'
import { createServer } from 'node:http'
import type { Socket } from 'node:net'
import { workerLink } from '@svc/runtime'
import { svcError } from '@svc/core'

// A worker for the supervisor's tests: answers with its pid, or fails as WEB_FAILS says.
const link = workerLink()
const how = process.env.WEB_FAILS
if (how === 'report') {
  await link.failed(
    Object.assign(new Error('all'), {
      problems: [svcError('NO_WAY', 'it cannot be', { plugin: 'web', hint: 'let it be' }), new Error('nor this')],
    })
  )
  process.exit(1)
}
if (how === 'block') for (;;);
if (how === 'exit') process.exit(3)
if (how === 'hang') await new Promise(() => setInterval(() => {}, 1000))

let isDraining = false
let slow: ((text: string) => void) | undefined
const server = createServer((request, response) => {
  if (isDraining) response.setHeader('connection', 'close')
  if (request.url === '/slow') {
    slow = text => response.end(text)
    response.writeHead(200)
    response.write('begun ')
  } else if (request.url === '/go') {
    slow?.('ended')
    response.end('gone')
  } else response.end(String(process.pid))
})
const open = new Set<Socket>()
const port = await link.listen({ host: '127.0.0.1', port: 0 }, socket => {
  open.add(socket)
  socket.once('close', () => open.delete(socket))
  server.emit('connection', socket)
})
await link.ready({ port })
link.onDrain(async () => {
  if (process.env.WEB_DRAINS === 'never') await new Promise(() => {})
  isDraining = true
  slow?.('ended')
  for (const socket of open) await once(socket, 'close')
})
