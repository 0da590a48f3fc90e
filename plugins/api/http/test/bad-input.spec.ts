import { expect } from 'chai'
import { post, raw, serve } from './support/client.ts'
import { GOOD, said, say } from './support/routes.ts'

describe('bad input in a body', () => {
  let served: Awaited<ReturnType<typeof serve>>
  let url = ''
  before(async () => {
    served = await serve({ say }, { body_limit: 16_384 })
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
  refuses('refuses a body over the limit', JSON.stringify({ message: 'a'.repeat(16_384), to: 'me' }), 413, 'PAYLOAD_TOO_LARGE', {
    limit: 16_384,
  })
  refuses('refuses a body far over the limit', 'a'.repeat(2_000_000), 413, 'PAYLOAD_TOO_LARGE', { limit: 16_384 })
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
      `POST /say HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: ${GOOD.length}\r\n\r\n${GOOD}`
    )
    expect([reply.status, reply.body.error_code]).to.deep.equal([415, 'UNSUPPORTED_MEDIA_TYPE'])
  })

  it('refuses a body over the limit that does not say its length', async () => {
    const chunk = `2000\r\n${'a'.repeat(0x2000)}\r\n`
    const head =
      'POST /say HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n'
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
