import { definePlugin } from '@svc/core'
import { Http, type RequestDone } from '@svc/core/contracts'
import { expect } from 'chai'
import { call, post, raw, serve, ctx } from './support/client.ts'
import { find, GOOD, say } from './support/routes.ts'

describe('bad input', () => {
  let served: Awaited<ReturnType<typeof serve>>
  let url = ''
  before(async () => {
    served = await serve({ say, find })
    url = served.url
  })
  after(() => served.host.close())
  afterEach(async () => {
    const { status } = await post(`${url}/say`, GOOD)
    expect(status, 'the server is healthy afterwards').to.equal(200)
  })

  describe('in a path or query', () => {
    it('answers an unknown route with NOT_FOUND', async () => {
      const reply = await call(`${url}/nothing/here?x=secret`)
      expect([reply.status, reply.body.error_code, reply.body.success]).to.deep.equal([404, 'NOT_FOUND', false])
      expect(reply.body.details, 'no plugin adds a guide').to.deep.equal({})
      expect(reply.text).not.to.include('secret')
    })

    it('answers a wrong method with METHOD_NOT_ALLOWED and the right ones', async () => {
      const reply = await call(`${url}/say`, { method: 'DELETE' })
      expect([reply.status, reply.body.error_code]).to.deep.equal([405, 'METHOD_NOT_ALLOWED'])
      expect(reply.headers.get('allow')).to.equal('POST, OPTIONS')
    })

    it('answers HEAD like GET, without a body', async () => {
      const head = await call(`${url}/things/a`, { method: 'HEAD' })
      const get = await call(`${url}/things/a`)
      expect([head.status, head.text]).to.deep.equal([200, ''])
      expect(head.headers.get('content-length')).to.equal(get.headers.get('content-length'))
    })

    it('answers OPTIONS with the methods', async () => {
      const reply = await call(`${url}/things/a`, { method: 'OPTIONS' })
      expect([reply.status, reply.headers.get('allow')]).to.deep.equal([204, 'GET, HEAD, OPTIONS'])
    })

    for (const id of ['%zz', '%00', '%2e%2e%2f', 'a%20b', '%F0%9F%98%80', 'x'.repeat(4_000)])
      it(`hands on an absurd id as it is: ${id.slice(0, 20)}`, async () => {
        const { status } = await call(`${url}/things/${id}`)
        expect(status).to.equal(200)
      })

    it('checks numbers of a query', async () => {
      const replies = await Promise.all(['0', 'abc', '1.5', '', '1e1', '9'].map(limit => call(`${url}/things/a?limit=${limit}`)))
      expect(replies.map(reply => reply.status)).to.deep.equal([400, 400, 400, 400, 400, 200])
      expect(replies[1]!.body).to.deep.include({ error_code: 'INVALID_VALUE' })
      expect(replies[1]!.body.details).to.deep.include({ field: 'limit', value: 'abc' })
    })

    it('refuses a query parameter that is given twice', async () => {
      const reply = await call(`${url}/things/a?word=a&word=b`)
      expect(reply.body).to.deep.include({ error_code: 'INVALID_VALUE' })
      expect(reply.body.details).to.deep.include({ field: 'word', reason: 'is given more than once' })
    })

    it('ignores a parameter that it does not know, given twice too', async () => {
      const { status, body } = await call(`${url}/things/a?other=1&other=2&word=a`)
      expect([status, body.query]).to.deep.equal([200, { other: '1', word: 'a' }])
    })

    it('lets a __proto__ in a query change nothing', async () => {
      const { status, body } = await call(`${url}/things/a?__proto__=x&toString=y`)
      expect([status, body.query]).to.deep.equal([200, JSON.parse('{"__proto__":"x","toString":"y"}')])
    })
  })

  describe('in the protocol', () => {
    it('answers a whole request before it turns to the broken one behind it', async () => {
      const request = `POST /say HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(GOOD)}\r\n\r\n${GOOD}`
      const { status, head } = await raw(url, `${request}BROKEN\r\n\r\n`)
      expect(status).to.equal(200)
      expect(head.toLowerCase()).to.contain('connection: close')
    })

    it('answers CONNECT, which it does not do, with METHOD_NOT_ALLOWED', async () => {
      const { status, body } = await raw(url, 'CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n')
      expect([status, body.error_code]).to.deep.equal([405, 'METHOD_NOT_ALLOWED'])
    })

    const malformed = (title: string, bytes: string, status = 400, code = 'INVALID_VALUE') =>
      it(title, async () => {
        const reply = await raw(url, bytes)
        expect([reply.status, reply.body.success, reply.body.error_code]).to.deep.equal([status, false, code])
        expect(reply.head).to.match(/x-request-id: \S+/i)
      })
    const head = 'POST /say HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n'

    it('is counted each time; the log has one line a second and address, with the number of those left out', async () => {
      const lines: string[] = []
      const done: RequestDone[] = []
      const listens = definePlugin({ setup: scope => void scope.tap(Http.hooks.done, item => void done.push(item)) })
      const log = { destination: { write: (line: string) => void lines.push(line) } }
      await using own = await serve({}, {}, log, [{ name: 'listens', use: listens }])
      const answers = await Promise.all(Array.from({ length: 20 }, () => raw(own.url, 'hello\r\n\r\n')))
      expect(answers.map(answer => answer.status)).to.deep.equal(Array(20).fill(400))
      expect(await own.host.service(Http).metrics(ctx)).to.deep.equal({ requestsTotal: 20, requestsActive: 0 })
      expect(done.filter(requestDone => requestDone.method === '' && requestDone.status === 400)).to.have.length(20)
      const entries = lines.filter(line => line.includes('"method":""')).map(line => JSON.parse(line))
      expect(entries).to.have.length.within(1, 5)
      expect(entries[0]).to.include({ status: 400, error_code: 'INVALID_VALUE', address: '127.0.0.1', principal: 'anonymous' })
    })

    malformed('answers what is no HTTP', 'hello\r\n\r\n')
    malformed('answers an unknown method', 'BREW /say HTTP/1.1\r\nHost: localhost\r\n\r\n')
    malformed('refuses two lengths', `${head}Content-Length: 5\r\nContent-Length: 6\r\n\r\n${GOOD}`)
    malformed('refuses a length that is none', `${head}Content-Length: x\r\n\r\n${GOOD}`)
    malformed('refuses a length together with chunks', `${head}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`)
    malformed('refuses a broken chunk', `${head}Transfer-Encoding: chunked\r\n\r\nzz\r\n`)
    malformed(
      'refuses a body in another transfer coding',
      `${head}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`,
      415,
      'UNSUPPORTED_MEDIA_TYPE'
    )
    malformed(
      'refuses it on a route without a body, and takes nothing behind it for a request',
      'GET /things/a HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n',
      415,
      'UNSUPPORTED_MEDIA_TYPE'
    )
    malformed('refuses two media types', `${head}Content-Type: text/plain\r\nContent-Length: ${GOOD.length}\r\n\r\n${GOOD}`)
    malformed('refuses a missing Host', 'GET /things/a HTTP/1.1\r\nConnection: close\r\n\r\n')
    malformed('refuses two Hosts', 'GET /things/a HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: close\r\n\r\n')
    malformed(
      'refuses headers of 64 KiB',
      `GET /things/a HTTP/1.1\r\nHost: localhost\r\nX-Large: ${'a'.repeat(65_536)}\r\n\r\n`,
      413,
      'PAYLOAD_TOO_LARGE'
    )
    malformed(
      'answers the record where a client expects something odd',
      `${head}Expect: wonders\r\nContent-Length: 2\r\n\r\n{}`,
      400,
      'MISSING_FIELD'
    )

    it('takes a request line that names the whole URL', async () => {
      const reply = await raw(
        url,
        'GET http://localhost/things/a?limit=2 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n'
      )
      expect([reply.status, reply.body.query]).to.deep.equal([200, { limit: '2' }])
    })
  })
})
