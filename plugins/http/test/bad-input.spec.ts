import { expect } from 'chai'
import type { Route } from '@svc/core/contracts'
import { call, post, raw, serve } from './support/client.ts'

const said: unknown[] = []
const say: Route = {
  method: 'POST',
  path: '/say',
  summary: 'Says it back',
  body: {
    type: 'object',
    required: ['message', 'to'],
    properties: {
      message: { type: 'string', pattern: '\\S', patternHint: 'must not be blank' },
      to: { enum: ['you', 'me'] },
      heat: { type: 'number', minimum: 0, maximum: 1 },
      list: { type: 'array', items: { type: 'string' } },
    },
  },
  handle: async ({ body }) => {
    said.push(body)
    return { body: { said: body } }
  },
}
const find: Route = {
  method: 'GET',
  path: '/things/:id',
  summary: 'Finds',
  query: { type: 'object', properties: { limit: { type: 'integer', minimum: 1, maximum: 9 }, word: { type: 'string' } } },
  handle: async ({ params, query }) => ({ body: { params, query } }),
}
const GOOD = '{"message":"hi","to":"you"}'

describe('bad input', () => {
  let served: Awaited<ReturnType<typeof serve>>
  let url = ''
  before(async () => {
    served = await serve({ say, find }, { body_limit: 2_000 })
    url = served.url
  })
  after(() => served.host.close())
  afterEach(async () => {
    const { status } = await post(`${url}/say`, GOOD)
    expect(status, 'the server is healthy afterwards').to.equal(200)
  })

  const refuses = (
    title: string,
    body: string | Uint8Array<ArrayBuffer>,
    status: number,
    error_code: string,
    details: object,
    headers?: Record<string, string>
  ) =>
    it(title, async () => {
      const before = said.length
      const reply = await post(`${url}/say`, body, headers)
      expect(reply.body).to.deep.include({ success: false, error_code })
      expect(reply.status).to.equal(status)
      expect(reply.body.details).to.deep.include(details)
      expect(reply.body.error).to.be.a('string').that.is.not.empty
      expect(reply.headers.get('content-type')).to.match(/^application\/json/)
      expect(said.length, 'the route was not asked').to.equal(before)
    })

  describe('in a body', () => {
    refuses('refuses malformed JSON', '{"message":', 400, 'INVALID_VALUE', { field: 'body' })
    refuses('refuses a list', '[1]', 400, 'INVALID_VALUE', { field: 'body', reason: 'must be a JSON object' })
    refuses('refuses null', 'null', 400, 'INVALID_VALUE', { field: 'body' })
    refuses('refuses a bare text', '"hi"', 400, 'INVALID_VALUE', { field: 'body' })
    refuses('names all missing fields, also of an empty object', '{}', 400, 'MISSING_FIELD', {
      required_fields: ['message', 'to'],
      provided_fields: [],
    })
    refuses('lets a missing field win over a wrong one', '{"to":7,"x":1}', 400, 'MISSING_FIELD', {
      required_fields: ['message', 'to'],
      provided_fields: ['to', 'x'],
    })
    refuses('takes no body at all as one without fields', '', 400, 'MISSING_FIELD', { provided_fields: [] })
    refuses('refuses null in a field', '{"message":null,"to":"me"}', 400, 'INVALID_VALUE', {
      field: 'message',
      value: null,
      reason: 'must be string, was null',
    })
    refuses('refuses a wrong type', '{"message":5,"to":"me"}', 400, 'INVALID_VALUE', { field: 'message', value: 5 })
    refuses('refuses empty text', '{"message":"","to":"me"}', 400, 'INVALID_VALUE', { field: 'message' })
    refuses('refuses blank text', '{"message":" \\n ","to":"me"}', 400, 'INVALID_VALUE', { field: 'message' })
    refuses('names the words allowed', '{"message":"a","to":"her"}', 400, 'INVALID_VALUE', {
      field: 'to',
      value: 'her',
      allowed: ['you', 'me'],
    })
    refuses('refuses a number out of range', '{"message":"a","to":"me","heat":1.1}', 400, 'INVALID_VALUE', {
      field: 'heat',
      value: 1.1,
    })
    refuses('refuses an infinite number', '{"message":"a","to":"me","heat":1e999}', 400, 'INVALID_VALUE', { field: 'heat' })
    refuses('names the place in a list', '{"message":"a","to":"me","list":["a",2]}', 400, 'INVALID_VALUE', { field: 'list[1]' })
    refuses('refuses deep nesting', `{"message":"a","to":"me","x":${'['.repeat(900)}${']'.repeat(900)}}`, 400, 'INVALID_VALUE', {
      field: 'body',
    })
    refuses('refuses invalid UTF-8', Buffer.from('{"message":"\xff","to":"me"}', 'latin1'), 400, 'INVALID_VALUE', {
      field: 'body',
      reason: 'must be valid UTF-8',
    })
    refuses(
      'refuses half a surrogate pair in UTF-8',
      Buffer.from([0x7b, 0x22, 0xed, 0xa0, 0x80, 0x22, 0x7d]),
      400,
      'INVALID_VALUE',
      { field: 'body' }
    )
    refuses('refuses a body over the limit', JSON.stringify({ message: 'a'.repeat(2_000), to: 'me' }), 413, 'PAYLOAD_TOO_LARGE', {
      limit: 2_000,
    })
    refuses('refuses a body far over the limit', 'a'.repeat(2_000_000), 413, 'PAYLOAD_TOO_LARGE', { limit: 2_000 })
    refuses('refuses another media type', GOOD, 415, 'UNSUPPORTED_MEDIA_TYPE', {}, { 'content-type': 'text/plain' })
    refuses(
      'refuses a form',
      'message=a',
      415,
      'UNSUPPORTED_MEDIA_TYPE',
      {},
      { 'content-type': 'application/x-www-form-urlencoded' }
    )
    refuses(
      'refuses another charset',
      GOOD,
      415,
      'UNSUPPORTED_MEDIA_TYPE',
      {},
      { 'content-type': 'application/json; charset=utf-16' }
    )
    refuses(
      'refuses a compressed body',
      GOOD,
      415,
      'UNSUPPORTED_MEDIA_TYPE',
      {},
      { 'content-type': 'application/json', 'content-encoding': 'gzip' }
    )

    it('refuses a body without a media type', async () => {
      const reply = await raw(
        url,
        `POST /say HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: ${GOOD.length}\r\n\r\n${GOOD}`
      )
      expect([reply.status, reply.body.error_code]).to.deep.equal([415, 'UNSUPPORTED_MEDIA_TYPE'])
    })

    it('refuses a body over the limit that does not say its length', async () => {
      const chunk = `400\r\n${'a'.repeat(0x400)}\r\n`
      const head =
        'POST /say HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n'
      const reply = await raw(url, `${head}${chunk.repeat(3)}0\r\n\r\n`)
      expect([reply.status, reply.body.error_code]).to.deep.equal([413, 'PAYLOAD_TOO_LARGE'])
    })

    it('takes JSON with a charset, and ignores unknown fields', async () => {
      const reply = await post(`${url}/say`, '{"message":"a","to":"me","more":1}', {
        'content-type': 'Application/JSON; charset="UTF-8"',
      })
      expect(reply.status).to.equal(200)
    })

    it('lets no __proto__ key through', async () => {
      const reply = await post(
        `${url}/say`,
        '{"message":"a","to":"me","__proto__":{"polluted":1},"x":[{"__proto__":{"y":1}}],"constructor":{"prototype":{"z":1}}}'
      )
      expect(reply.status).to.equal(200)
      expect(reply.text).not.to.include('polluted').and.not.include('__proto__')
      expect(({} as { z?: number }).z).to.equal(undefined)
    })

    it('takes __proto__ for no required field', async () => {
      const reply = await post(`${url}/say`, '{"__proto__":{"message":"a","to":"me"}}')
      expect(reply.body.error_code).to.equal('MISSING_FIELD')
    })
  })

  describe('in a path or query', () => {
    it('answers an unknown route with NOT_FOUND', async () => {
      const reply = await call(`${url}/nothing/here?x=secret`)
      expect([reply.status, reply.body.error_code, reply.body.success]).to.deep.equal([404, 'NOT_FOUND', false])
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
      expect(replies.map(one => one.status)).to.deep.equal([400, 400, 400, 400, 400, 200])
      expect(replies[1]!.body).to.deep.include({ error_code: 'INVALID_VALUE' })
      expect(replies[1]!.body.details).to.deep.include({ field: 'limit', value: 'abc' })
    })

    it('refuses a query parameter that is given twice', async () => {
      const reply = await call(`${url}/things/a?word=a&word=b`)
      expect(reply.body).to.deep.include({ error_code: 'INVALID_VALUE' })
      expect(reply.body.details).to.deep.include({ field: 'word', reason: 'is given more than once' })
    })

    it('lets a __proto__ in a query change nothing', async () => {
      const { status, body } = await call(`${url}/things/a?__proto__=x&toString=y`)
      expect([status, body.query]).to.deep.equal([200, JSON.parse('{"__proto__":"x","toString":"y"}')])
    })
  })

  describe('in the protocol', () => {
    const malformed = (title: string, bytes: string, status = 400, code = 'INVALID_VALUE') =>
      it(title, async () => {
        const reply = await raw(url, bytes)
        expect([reply.status, reply.body.success, reply.body.error_code]).to.deep.equal([status, false, code])
        expect(reply.head).to.match(/x-request-id: \S+/i)
      })
    const head = 'POST /say HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n'

    malformed('answers what is no HTTP', 'hello\r\n\r\n')
    malformed('answers an unknown method', 'BREW /say HTTP/1.1\r\nHost: x\r\n\r\n')
    malformed('refuses two lengths', `${head}Content-Length: 5\r\nContent-Length: 6\r\n\r\n${GOOD}`)
    malformed('refuses a length that is none', `${head}Content-Length: x\r\n\r\n${GOOD}`)
    malformed('refuses a length together with chunks', `${head}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`)
    malformed('refuses a broken chunk', `${head}Transfer-Encoding: chunked\r\n\r\nzz\r\n`)
    malformed('refuses two media types', `${head}Content-Type: text/plain\r\nContent-Length: ${GOOD.length}\r\n\r\n${GOOD}`)
    malformed('refuses a missing Host', 'GET /things/a HTTP/1.1\r\nConnection: close\r\n\r\n')
    malformed('refuses two Hosts', 'GET /things/a HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: close\r\n\r\n')
    malformed(
      'refuses headers of 64 KiB',
      `GET /things/a HTTP/1.1\r\nHost: x\r\nX-Large: ${'a'.repeat(65_536)}\r\n\r\n`,
      431,
      'PAYLOAD_TOO_LARGE'
    )
    malformed(
      'answers the record where a client expects something odd',
      `${head}Expect: wonders\r\nContent-Length: 2\r\n\r\n{}`,
      400,
      'MISSING_FIELD'
    )

    it('takes a request line that names the whole URL', async () => {
      const reply = await raw(url, 'GET http://x/things/a?limit=2 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
      expect([reply.status, reply.body.query]).to.deep.equal([200, { limit: '2' }])
    })
  })
})
