// Not a unit test: the helper starts servers.
import { once } from 'node:events'
import { createGuardedFetch, webResponse } from '@svc/safe-fetch'
import { expect } from 'chai'
import { upstream } from './support/upstream.ts'

const { signal } = new AbortController()
const EVENTS = { 'content-type': 'text/event-stream' }

describe('a response of the web', () => {
  it('has status, headers and body, and none where there can be none', async () => {
    await using server = await upstream((request, response) =>
      request.url === '/none' ? response.writeHead(204).end() : response.writeHead(404, { 'x-one': 'a' }).end('ä')
    )
    await using web = createGuardedFetch({ allow: ['127.0.0.1'] })
    const answer = webResponse(await web.fetch(server.url, { signal }), { bodyBytes: 2 })
    expect([answer.status, answer.headers.get('x-one'), await answer.text()]).to.deep.equal([404, 'a', 'ä'])
    const none = webResponse(await web.fetch(`${server.url}/none`, { signal }), { bodyBytes: 2 })
    expect([none.status, none.body]).to.deep.equal([204, null])
  })

  it('fails with a body of too many bytes, and calls back', async () => {
    await using server = await upstream((_, response) => response.end('x'.repeat(1_001)))
    await using web = createGuardedFetch({ allow: ['127.0.0.1'] })
    const failures: unknown[] = []
    const failed = (error: unknown) => failures.push(error)
    const answer = webResponse(await web.fetch(server.url, { signal }), { bodyBytes: 1_000, failed })
    const error = await answer.text().catch((item: unknown) => item)
    expect(error).to.have.property('code', 'BODY_TOO_LARGE')
    expect(failures).to.deep.equal([error])
  })

  it('limits each event of a stream, not their sum', async () => {
    await using server = await upstream(async (request, response) => {
      response.writeHead(200, EVENTS)
      for (let sent = 0; sent < 10; sent++) {
        const end = request.url === '/endless' ? '\n' : '\n\n'
        if (!response.write(`data: ${'x'.repeat(300)}${end}`)) await once(response, 'drain')
        await new Promise(resolve => setTimeout(resolve, 2))
      }
      response.end()
    })
    await using web = createGuardedFetch({ allow: ['127.0.0.1'] })
    const whole = webResponse(await web.fetch(server.url, { signal }), { bodyBytes: 1_000 })
    expect((await whole.text()).length).to.equal(3_080)
    const endless = webResponse(await web.fetch(`${server.url}/endless`, { signal }), { bodyBytes: 1_000 })
    expect(await endless.text().catch((error: unknown) => error)).to.have.property('code', 'BODY_TOO_LARGE')
  })

  it('ends the request when it is cancelled, also before it is read', async () => {
    const closed = Promise.withResolvers<void>()
    await using server = await upstream((_, response) => {
      response.on('close', () => closed.resolve())
      response.writeHead(200, EVENTS).write('data: 1\n\n')
    })
    await using web = createGuardedFetch({ allow: ['127.0.0.1'] })
    await webResponse(await web.fetch(server.url, { signal }), { bodyBytes: 1_000 }).body?.cancel()
    await closed.promise
  })
})
