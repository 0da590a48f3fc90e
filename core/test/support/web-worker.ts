import { createServer } from 'node:http'
import { freePort, workerLink } from '@svc/core/processes'
import { svcError } from '@svc/core'

// A worker for the supervisor's tests: answers with its pid, or fails as WEB_FAILS says.
const link = workerLink()
const how = process.env.WEB_FAILS
if (how === 'report') {
  await link.failed(
    Object.assign(new Error('all'), {
      problems: [svcError('NO_WAY', 'it cannot be', { plugin: 'web', mend: 'let it be' }), new Error('nor this')],
    })
  )
  process.exit(1)
}
if (how === 'block') for (;;);
if (how === 'exit') process.exit(3)
if (how === 'hang') await new Promise(() => setInterval(() => {}, 1000))

let slow: ((text: string) => void) | undefined
const server = createServer((request, response) => {
  if (server.listening === false) response.setHeader('connection', 'close')
  if (request.url === '/slow') {
    slow = text => response.end(text)
    response.writeHead(200)
    response.write('begun ')
  } else if (request.url === '/go') {
    slow?.('ended')
    response.end('gone')
  } else response.end(String(process.pid))
})
const port = Number(process.env.WEB_PORT ?? (await freePort('127.0.0.1')))
server.listen(port, '127.0.0.1', () => void link.ready({ port }))
link.onDrain(
  () =>
    new Promise<void>(resolve => {
      if (process.env.WEB_DRAINS === 'never') return
      server.closeIdleConnections = () => {}
      server.close(() => resolve())
      slow?.('ended')
    })
)
