import { once } from 'node:events'
import { expect } from 'chai'
import type { Route } from '@svc/core/contracts'
import { open, post, raw, serve } from './support/client.ts'
import { GOOD, say } from './support/routes.ts'

const FORM = { 'content-type': 'application/x-www-form-urlencoded' }
const TEXT = { 'content-type': 'text/plain; charset=utf-8' }
/** The smallest `server.body_limit`. */
const LIMIT = 16_384

const field: Route = {
  method: 'POST',
  path: '/field',
  summary: 'Takes a form',
  accepts: 'form',
  body: { type: 'object', required: ['name'], properties: { name: { type: 'string', minLength: 1 } } },
  handle: async ({ body }) => ({ body: { body } }),
}
const line: Route = {
  method: 'POST',
  path: '/line',
  summary: 'Takes a text',
  accepts: 'text',
  body: { type: 'string', minLength: 2 },
  bodyLimit: 20,
  handle: async ({ body }) => ({ body: { body } }),
}
const blob: Route = {
  method: 'POST',
  path: '/blob',
  summary: 'Takes bytes',
  accepts: 'bytes',
  bodyLimit: 8,
  handle: async ({ body, bytes }) => ({ body: { hex: Buffer.from(bytes!).toString('hex'), parsed: body !== undefined } }),
}

const hook: Route = {
  method: 'POST',
  path: '/hook/:as',
  summary: 'Takes a signed body',
  rawBody: true,
  handle: async ({ body, rawBody }) => ({
    body: { body, raw: Buffer.from(rawBody!).toString(), own: rawBody!.buffer.byteLength },
  }),
}
const hookForm: Route = { ...hook, path: '/hook-form', accepts: 'form' }
const hookBytes: Route = {
  ...hook,
  path: '/hook-bytes',
  accepts: 'bytes',
  handle: async ({ body, bytes, rawBody }) => ({
    body: { same: Buffer.compare(bytes!, rawBody!) === 0, parsed: body !== undefined },
  }),
}

const count: Route = {
  ...field,
  path: '/count',
  bodyLimit: 10_000,
  handle: async ({ body }) => ({
    body: { fields: Object.keys(body as object).length, names: (body as { name: string[] }).name },
  }),
  body: { type: 'object' },
}

describe('bodies of routes', () => {
  let served: Awaited<ReturnType<typeof serve>>
  let url = ''
  before(async () => {
    served = await serve({ say, field, line, blob, count, hook, hookForm, hookBytes }, { body_limit: LIMIT })
    url = served.url
  })
  after(() => served.host.close())

  const refused = async (path: string, body: string | Uint8Array<ArrayBuffer>, headers?: Record<string, string>) => {
    const { status, body: record } = await post(`${url}${path}`, body, headers)
    return [status, record.error_code]
  }

  it('are given as sent beside what they mean, where the route asks for that', async () => {
    const body = '{ "a": 1.0,\n "b": "caf\\u00e9" }'
    const raw = async (path: string, sent: string, type?: Record<string, string>) =>
      (await post(`${url}${path}`, sent, type)).body
    expect(await raw('/hook/x', body)).to.deep.equal({ body: { a: 1, b: 'café' }, raw: body, own: body.length })
    expect(await raw('/hook/x', '')).to.deep.equal({ body: {}, raw: '', own: 0 })
    expect(await raw('/hook-form', 'a=%2F&a=b', FORM)).to.deep.include({ body: { a: ['/', 'b'] }, raw: 'a=%2F&a=b' })
    expect(await raw('/hook-bytes', '{', TEXT)).to.deep.equal({ same: true, parsed: false })
    expect(await refused('/hook/x', '{')).to.deep.equal([400, 'INVALID_VALUE'])
    expect(await refused('/hook/x', `{"a":"${'x'.repeat(LIMIT)}"}`)).to.deep.equal([413, 'PAYLOAD_TOO_LARGE'])
  })

  it('lose no field of a form, whatever its name and however many there are', async () => {
    const names = Array.from({ length: 50 }, (_, at) => String(at))
    const { body } = await post(`${url}/count`, names.map(name => `name=${name}`).join('&'), FORM)
    expect(body).to.deep.equal({ fields: 1, names })
    const fields = (many: number) => Array.from({ length: many }, (_, at) => `f${at}`).join('&')
    expect((await post(`${url}/count`, fields(1_500), FORM)).body).to.deep.equal({ fields: 1_500 })
    expect((await post(`${url}/field`, 'name=a&constructor=b&toString=c', FORM)).body).to.deep.equal({
      body: { name: 'a', constructor: 'b', toString: 'c' },
    })
    expect((await post(`${url}/field`, '?name=a&name=b&?=c&&=d', FORM)).body).to.deep.equal({
      body: { '?name': 'a', name: 'b', '?': 'c', '': 'd' },
    })
  })

  it('are forms where the route accepts a form', async () => {
    expect((await post(`${url}/field`, 'name=J%C3%BCrgen+B&x=1', FORM)).body).to.deep.equal({
      body: { name: 'Jürgen B', x: '1' },
    })
    expect((await post(`${url}/field`, 'name=a&b.c=1&d[e]=2&f=3&f=4&__proto__=5', FORM)).body).to.deep.equal({
      body: { name: 'a', 'b.c': '1', 'd[e]': '2', f: ['3', '4'] },
    })
    expect(await refused('/field', 'x=1', FORM)).to.deep.equal([400, 'MISSING_FIELD'])
    expect(await refused('/field', 'name=', FORM)).to.deep.equal([400, 'INVALID_VALUE'])
    expect(await refused('/field', GOOD)).to.deep.equal([415, 'UNSUPPORTED_MEDIA_TYPE'])
    expect(await refused('/field', `name=${'a'.repeat(LIMIT)}`, FORM)).to.deep.equal([413, 'PAYLOAD_TOO_LARGE'])
  })

  it('are texts where the route accepts text', async () => {
    expect((await post(`${url}/line`, 'grüße', TEXT)).body).to.deep.equal({ body: 'grüße' })
    expect(await refused('/line', 'a', TEXT)).to.deep.equal([400, 'INVALID_VALUE'])
    expect(await refused('/line', '', TEXT)).to.deep.equal([400, 'INVALID_VALUE'])
    expect(await refused('/line', 'a'.repeat(21), TEXT)).to.deep.equal([413, 'PAYLOAD_TOO_LARGE'])
    expect(await refused('/line', 'aa', { 'content-type': 'text/plain; charset=latin1' })).to.deep.equal([
      415,
      'UNSUPPORTED_MEDIA_TYPE',
    ])
  })

  it('are bytes as they came where the route accepts bytes', async () => {
    const bytes = Buffer.from([0xff, 0x00, 0xef, 0xbb, 0xbf])
    expect((await post(`${url}/blob`, bytes, { 'content-type': 'image/png' })).body).to.deep.equal({
      hex: 'ff00efbbbf',
      parsed: false,
    })
    expect((await post(`${url}/blob`, '', {})).body).to.deep.equal({ hex: '', parsed: false })
    expect(await refused('/blob', Buffer.alloc(9), {})).to.deep.equal([413, 'PAYLOAD_TOO_LARGE'])
    expect(await refused('/blob', bytes, { 'content-encoding': 'gzip' })).to.deep.equal([415, 'UNSUPPORTED_MEDIA_TYPE'])
  })

  for (const [title, path, body, headers] of [
    ['JSON in UTF-8', '/say', Buffer.from('{"message":"\xc3\x28","to":"you"}', 'latin1'), undefined],
    ['JSON with a byte order mark', '/say', Buffer.from(`\uFEFF${GOOD}`), undefined],
    ['a form in UTF-8', '/field', Buffer.from('name=\xff', 'latin1'), FORM],
    ['a form whose escapes are UTF-8', '/field', 'name=%FF', FORM],
    ['a form with a byte order mark', '/field', '\uFEFFname=a', FORM],
    ['text in UTF-8', '/line', Buffer.from('a\xed\xa0\x80', 'latin1'), TEXT],
    ['text with a byte order mark', '/line', '\uFEFFaa', TEXT],
  ] as const)
    it(`are refused where they are not ${title.replace(' with', ' without')}`, async () => {
      expect(await refused(path, typeof body === 'string' ? body : new Uint8Array(body), headers)).to.deep.equal([
        400,
        'INVALID_VALUE',
      ])
    })

  it('may say that they have no coding, in any case', async () => {
    const { status } = await post(`${url}/say`, GOOD, { 'content-type': 'application/json', 'content-encoding': 'Identity' })
    expect(status).to.equal(200)
  })

  it('may hold the character that stands for broken text elsewhere', async () => {
    const { status, text } = await post(`${url}/say`, '{"message":"\uFFFD","to":"you"}')
    expect([status, text]).to.deep.equal([200, '{"said":{"message":"\uFFFD","to":"you"}}'])
  })

  it('are read whole, wherever they are cut on the way', async () => {
    const bytes = Buffer.from('{"message":"äö€😀","to":"you"}')
    const head =
      'POST /say HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n'
    const chunk = (part: Buffer) => Buffer.concat([Buffer.from(`${part.length.toString(16)}\r\n`), part, Buffer.from('\r\n')])
    for (let at = 1; at < bytes.length; at++) {
      const parts = [bytes.subarray(0, at), bytes.subarray(at)].map(chunk)
      const { status, body } = await raw(url, Buffer.concat([Buffer.from(head), ...parts, Buffer.from('0\r\n\r\n')]))
      expect([status, body]).to.deep.equal([200, { said: { message: 'äö€😀', to: 'you' } }])
    }
  })

  it('that are too large leave the connection as it was, though they did not say their length', async () => {
    const socket = await open(url)
    let text = ''
    socket.setEncoding('utf8').on('data', part => (text += part))
    const chunk = `2000\r\n${'a'.repeat(0x2000)}\r\n`
    const head = 'POST /say HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n'
    socket.write(`${head}Transfer-Encoding: chunked\r\n\r\n${chunk.repeat(4)}`)
    while (!text.includes('PAYLOAD_TOO_LARGE')) await once(socket, 'data')
    socket.write(`${chunk}0\r\n\r\n${head}Connection: close\r\nContent-Length: ${GOOD.length}\r\n\r\n${GOOD}`)
    await once(socket, 'close')
    expect(text.match(/HTTP\/1\.1 \d+/g)).to.deep.equal(['HTTP/1.1 413', 'HTTP/1.1 200'])
  })

  it('are never read by a route that does not say how', async () => {
    const log: string[] = []
    const odd = { ...say, path: '/odd', accepts: 'xml' } as unknown as Route
    await using other = await serve({ odd, say }, {}, { destination: { write: (text: string) => void log.push(text) } })
    expect((await post(`${other.url}/odd`, GOOD)).status).to.equal(404)
    expect((await post(`${other.url}/say`, GOOD)).status).to.equal(200)
    expect(log.join('')).to.contain('the route odd is not served')
  })
})
