import { once } from 'node:events'
import { rename, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { type Answer, answersIn, type Client, createClient } from './support/client.ts'
import { newHome, type Service, startService } from './support/service.ts'

const HOLD = fileURLToPath(new URL('./support/hold.ts', import.meta.url))

/** What a caller is told who should try again later. */
function expectUnavailable({ status, headers, body }: Answer, reason: RegExp) {
  expect(status).to.equal(503)
  expect(headers['retry-after']).to.match(/^[1-9]\d*$/)
  expect(body).to.include({ success: false, error_code: 'UNAVAILABLE' })
  const { details } = body as { details: { reason: string; retry_after: number } }
  expect(details.reason).to.match(reason)
  expect(String(details.retry_after)).to.equal(headers['retry-after'])
}

/** Sends a request but for the end of its headers: to the server the connection is in use. `finish` sends the rest and reads the answer. */
async function begin(url: string, path: string, body: object): Promise<{ finish(): Promise<Answer> }> {
  const { hostname, port, host } = new URL(url)
  const socket = connect(Number(port), hostname)
  await once(socket, 'connect')
  const bytes = JSON.stringify(body)
  const head = [`POST ${path} HTTP/1.1`, `Host: ${host}`, 'Content-Type: application/json', `Content-Length: ${bytes.length}`]
  socket.write(`${head.join('\r\n')}\r\n`)
  return {
    async finish() {
      let text = ''
      socket.setEncoding('utf8').on('data', chunk => (text += chunk))
      socket.write(`\r\n${bytes}`)
      await once(socket, 'close')
      return answersIn(text)[0]!
    },
  }
}

/** A connection that has had one answer; the promise within resolves when the server closes it, as it does with idle ones once it drains. */
async function idle(url: string): Promise<{ readonly closed: Promise<unknown> }> {
  const { hostname, port, host } = new URL(url)
  const socket = connect(Number(port), hostname)
  socket.write(`GET /health/live HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
  await once(socket, 'data')
  return { closed: once(socket, 'close') }
}

describe('a service that cannot work now', () => {
  let home = ''
  let service: Service
  let client: Client
  beforeEach(async () => {
    home = await newHome()
    await writeFile(join(home, 'svc.config.json'), JSON.stringify({ plugins: [HOLD] }))
    service = await startService({ home })
    client = createClient(service.url)
  })
  afterEach(async () => {
    client.close()
    await service.stop()
    await rm(home, { recursive: true, force: true })
  })

  it('answers 503 UNAVAILABLE with Retry-After while its store is missing, and recovers when the store is back', async () => {
    const first = await client.post('/api/v1/chat', { message: 'before' })
    const { conversation_id } = first.body as { conversation_id: string }
    const file = join(home, 'svc.db')
    await rename(file, `${file}.away`)
    const asks = [
      client.post('/api/v1/chat', { message: 'new' }),
      client.post('/api/v1/chat', { message: 'next', conversation_id }),
      client.post('/api/v1/chat/stream', { message: 'next', conversation_id }),
      client.post('/api/v1/conversations', { message: 'next', conversation_id }),
      client.send({ method: 'DELETE', path: `/api/v1/conversations/${conversation_id}` }),
    ]
    for (const answer of await Promise.all(asks)) expectUnavailable(answer, /store/)
    const health = await client.get('/health')
    const { workflows, ...others } = (health.body as { checks: Record<string, string> }).checks
    expect(health.status).to.equal(503)
    expect(others).to.deep.equal({ database: 'unhealthy', providers: 'healthy', cache: 'healthy', models: 'healthy' })
    // whether its queue has looked at the store since is a matter of time
    expect(workflows).to.be.oneOf(['healthy', 'degraded'])
    await rename(`${file}.away`, file)
    const after = await client.post('/api/v1/chat', { message: 'after', conversation_id })
    expect(after.body).to.include({ response: 'You said: after (turn 2)' })
    expect((await client.get('/health')).status).to.equal(200)
  })

  it('answers new requests with 503 UNAVAILABLE and Retry-After during a drain, and finishes running requests', async () => {
    const running = await client.stream({ method: 'POST', path: '/api/v1/chat/stream', body: { message: '/tool hold {}' } })
    await running.until('tool_call')
    // a request that has begun keeps its connection open
    const late = await begin(service.url, '/api/v1/chat', { message: 'late' })
    const release = await begin(service.url, '/release', {})
    // a later connection has been served, so the two before are known
    const { closed } = await idle(service.url)
    const exited = once(service.child, 'exit')
    service.child.kill('SIGTERM')
    await closed
    expectUnavailable(await late.finish(), /stopping/)
    expect((await release.finish()).status).to.equal(204)
    const ended = await running.rest()
    expect(ended.events.at(-1)?.data).to.include({ type: 'end', status: 'completed' })
    expect(await exited).to.deep.equal([0, null])
  })
})
