import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { createGuardedFetch, readBody } from '@svc/safe-fetch'
import { makeCertificate } from '@svc/testing'
import { expect } from 'chai'
import { get, refusal, upstream } from './support/upstream.ts'

const redirect =
  (to: string, status = 302) =>
  (_: unknown, response: import('node:http').ServerResponse) =>
    response.writeHead(status, { location: to }).end('elsewhere')

describe('a guarded fetch', () => {
  it('answers status, headers, the last URL and the body', async () => {
    await using server = await upstream((_, response) => response.writeHead(404, { 'x-one': ['a', 'b'] }).end('ä'))
    const { status, headers, url, text, redirects } = await get(`${server.url}/a?b=1#c`, { userAgent: 'svc' })
    expect({ status, url, text, redirects }).to.deep.equal({ status: 404, url: `${server.url}/a?b=1#c`, text: 'ä', redirects: 0 })
    expect(headers['x-one']).to.equal('a, b')
    expect(server.asked[0]).to.deep.include({ method: 'GET', url: '/a?b=1' })
    expect(server.asked[0]!.headers).to.include({ 'user-agent': 'svc' })
  })

  it('follows redirects, relative ones too, and looks at each like at the first', async () => {
    await using server = await upstream((request, response) => {
      const to: Record<string, string> = {
        '/a': 'b',
        '/b': '/c?x=1',
        '/loop': '/loop',
        '/in': 'http://[::1]/',
        '/file': 'file:///etc/passwd',
        '/bad': 'http://[',
      }
      const location = to[request.url!]
      if (location) redirect(location)(request, response)
      else response.end('there')
    })
    expect(await get(`${server.url}/a`)).to.include({ text: 'there', redirects: 2, url: `${server.url}/c?x=1` })
    const codes: string[] = []
    for (const path of ['/loop', '/in', '/file', '/bad']) codes.push((await refusal(get(server.url + path))).code!)
    expect(codes).to.deep.equal(['REDIRECT_REFUSED', 'ADDRESS_FORBIDDEN', 'URL_INVALID', 'REDIRECT_REFUSED'])
    expect(server.asked.filter(request => request.url === '/loop')).to.have.length(6)
    expect((await get(`${server.url}/a`, {}, { limits: { redirects: 0 } })).status).to.equal(302)
  })

  it('takes everything that could be a key off on the way to another origin, and keeps it on the same', async () => {
    await using other = await upstream((_, response) => response.end())
    await using server = await upstream((request, response) =>
      redirect(request.url === '/a' ? '/b' : other.url)(request, response)
    )
    const headers = { Authorization: 'Bearer s', cookie: 's', 'X-Api-Key': 's', 'proxy-authorization': 's', accept: 'text/html' }
    await get(`${server.url}/a`, {}, { headers })
    expect(server.asked[1]!.headers).to.include({ authorization: 'Bearer s', 'x-api-key': 's', cookie: 's' })
    expect(other.asked[0]!.headers).to.have.keys('accept', 'accept-encoding', 'host', 'connection')
  })

  it('repeats what was sent for 307 and 308, on the same origin only, and makes it a GET for the others', async () => {
    await using other = await upstream((_, response) => response.end())
    await using server = await upstream((request, response) => {
      const [, status, where] = request.url!.split('/')
      if (status === 'end') response.end()
      else redirect(where === 'other' ? other.url : '/end', Number(status))(request, response)
    })
    const post = { method: 'POST', body: 'secret', headers: { 'content-type': 'text/plain' } }
    for (const status of [301, 302, 303, 307, 308]) await get(`${server.url}/${status}/here`, {}, post)
    const ends = server.asked.filter(request => request.url === '/end').map(request => request.method + request.body)
    expect(ends).to.deep.equal(['GET', 'GET', 'GET', 'POSTsecret', 'POSTsecret'])
    expect((await refusal(get(`${server.url}/307/other`, {}, post))).code).to.equal('REDIRECT_REFUSED')
    expect(other.asked).to.deep.equal([])
  })

  it('reads gzip, deflate with and without its wrapper, brotli and zstd', async () => {
    const forms = {
      gzip: gzipSync,
      deflate: deflateSync,
      'deflate ': deflateRawSync,
      br: brotliCompressSync,
      zstd: zstdCompressSync,
    }
    await using server = await upstream((request, response) => {
      const name = decodeURIComponent(request.url!.slice(1)) as keyof typeof forms
      response.writeHead(200, { 'content-encoding': name.trim() }).end(forms[name](Buffer.from('packed '.repeat(10_000))))
    })
    for (const name of Object.keys(forms)) expect((await get(`${server.url}/${name}`)).text, name).to.have.length(70_000)
  })

  it('takes a bomb of each kind apart no further than its limit', async () => {
    const zeros = Buffer.alloc(50_000_000)
    const bombs = {
      gzip: gzipSync(zeros),
      deflate: deflateSync(zeros),
      br: brotliCompressSync(zeros),
      zstd: zstdCompressSync(zeros),
    }
    await using server = await upstream((request, response) => {
      const name = request.url!.slice(1) as keyof typeof bombs
      response.writeHead(200, { 'content-encoding': name }).end(bombs[name])
    })
    for (const name of Object.keys(bombs)) {
      expect((await refusal(get(`${server.url}/${name}`))).code, name).to.equal('BODY_TOO_LARGE')
      const { bytes, cut } = await get(`${server.url}/${name}`, {}, { cut: true, limits: { bodyBytes: 1000 } })
      expect({ size: bytes.length, cut }, name).to.deep.equal({ size: 1000, cut: true })
    }
  })

  it('refuses a body that is too large as it comes, endless or compressed', async () => {
    await using server = await upstream((request, response) => {
      if (request.url === '/packed')
        return response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(crypto.getRandomValues(Buffer.alloc(50_000))))
      const more = () => {
        while (response.write('x'.repeat(10_000)));
      }
      response.on('drain', more)
      more()
    })
    const packed = await refusal(get(`${server.url}/packed`, {}, { limits: { wireBytes: 10_000 } }))
    expect(packed).to.include({ code: 'BODY_TOO_LARGE' })
    expect(packed.message).to.include('(compressed)')
    expect((await refusal(get(`${server.url}/`))).code).to.equal('BODY_TOO_LARGE')
    expect(await get(`${server.url}/`, {}, { cut: true, limits: { bodyBytes: 25_000 } })).to.include({ cut: true })
    expect(await get(`${server.url}/packed`, {}, { limits: { bodyBytes: 50_000 } })).to.include({ cut: false })
  })

  it('reads an empty body, also of one that says it is compressed', async () => {
    await using server = await upstream((request, response) =>
      response.writeHead(request.url === '/204' ? 204 : 200, { 'content-encoding': 'gzip' }).end()
    )
    for (const path of ['/', '/204']) expect((await get(server.url + path)).text).to.equal('')
    expect((await get(server.url, {}, { method: 'HEAD' })).text).to.equal('')
  })

  it('refuses a body that is cut, packed wrongly, twice or in an unknown way', async () => {
    const good = gzipSync('hello '.repeat(1000))
    const bad: Record<string, [string, Buffer]> = {
      '/cut': ['gzip', good.subarray(0, -9)],
      '/wrong': ['gzip', Buffer.from('no gzip at all')],
      '/br': ['br', Buffer.from('no brotli at all, surely')],
      '/zstd': ['zstd', Buffer.from('no zstd')],
      '/twice': ['gzip, gzip', good],
      '/odd': ['rot13', good],
    }
    await using server = await upstream((request, response) => {
      const [encoding, bytes] = bad[request.url!] ?? ['', good]
      if (request.url === '/short')
        return response.writeHead(200, { 'content-length': 9999 }).write('x', () => response.destroy())
      response.writeHead(200, { 'content-encoding': encoding }).end(bytes)
    })
    for (const path of [...Object.keys(bad), '/short'])
      expect((await refusal(get(server.url + path))).code, path).to.equal('BODY_INVALID')
  })

  it('refuses headers that are too large, and what is no HTTP', async () => {
    await using server = await upstream((_, response) => response.writeHead(200, { 'x-big': 'x'.repeat(20_000) }).end())
    expect((await refusal(get(server.url, { headerBytes: 10_000 }))).code).to.equal('RESPONSE_INVALID')
    const raw = createServer(socket =>
      socket
        .on('error', () => {})
        .resume()
        .end('SSH-2.0-OpenSSH\r\n')
    ).listen(0, '127.0.0.1')
    await once(raw, 'listening')
    expect((await refusal(get(`http://127.0.0.1:${(raw.address() as AddressInfo).port}/`))).code).to.equal('RESPONSE_INVALID')
    raw.close()
  })

  it('reports a refused connection', async () => {
    const server = await upstream(() => {})
    await server[Symbol.asyncDispose]()
    const { code, message } = await refusal(get(`${server.url}/x?key=1`))
    expect({ code, message }).to.deep.equal({
      code: 'CONNECTION_FAILED',
      message: `${server.url}/x cannot be reached (ECONNREFUSED)`,
    })
  })

  it('ends what is silent before its headers, silent in its body, and slow altogether', async () => {
    await using server = await upstream((request, response) => {
      if (request.url !== '/silent') response.write('x')
      if (request.url === '/drip') setInterval(() => response.write('x'), 5).unref()
    })
    const ends = await Promise.all([
      refusal(get(`${server.url}/silent`, {}, { limits: { headersMs: 20 } })),
      refusal(get(`${server.url}/stops`, {}, { limits: { idleMs: 20 } })),
      refusal(get(`${server.url}/drip`, {}, { limits: { totalMs: 50 } })),
      refusal(get(`${server.url}/silent`, {}, { limits: { totalMs: 50 } })),
    ])
    expect(ends.map(end => end.code)).to.deep.equal(Array(4).fill('FETCH_TIMEOUT'))
  })

  it('ends with its caller, and closes the socket: before the headers and in the body', async () => {
    await using server = await upstream((request, response) => void (request.url === '/body' && response.write('x')))
    for (const path of ['/silent', '/body']) {
      const controller = new AbortController()
      const closed = once(server.server, 'connection').then(([socket]) => once(socket, 'close'))
      await using guarded = createGuardedFetch({ allow: ['127.0.0.1'] })
      const whole = guarded.fetch(server.url + path, controller).then(item => readBody(item.body))
      await once(server.server, 'request')
      controller.abort(new Error('enough'))
      expect((await refusal(whole)).message).to.equal('enough')
      await closed
    }
  })

  it('closes the socket of a body that is read in part, or not at all', async () => {
    await using server = await upstream((_, response) => response.write('x'))
    for (const how of ['break', 'discard']) {
      const closed = once(server.server, 'connection').then(([socket]) => once(socket, 'close'))
      await using guarded = createGuardedFetch({ allow: ['127.0.0.1'] })
      const response = await guarded.fetch(server.url, { signal: new AbortController().signal })
      if (how === 'discard') response.discard()
      else for await (const _ of response.body) break
      await closed
    }
  })

  it('trusts no certificate that it has no reason to, and keeps the name for those it has', async () => {
    const made = makeCertificate()
    await using server = await upstream((_, response) => response.end('safe'), made)
    const resolve = async () => ['127.0.0.1']
    const at = (host: string) => `https://${host}:${server.port}/`
    expect((await refusal(get(at('localhost'), { resolve }))).code).to.equal('CERTIFICATE_INVALID')
    expect((await get(at('localhost'), { resolve, ca: made.cert })).text).to.equal('safe')
    expect((await refusal(get(at('another.example'), { resolve, ca: made.cert }))).code).to.equal('CERTIFICATE_INVALID')
    expect((await refusal(get(`https://127.0.0.1:${(await plain()).port}/`))).code).to.equal('CERTIFICATE_INVALID')
  })

  it('is open for 100 at once, and leaves nothing open', async () => {
    await using server = await upstream((_, response) => response.end('x'.repeat(1000)))
    await using guarded = createGuardedFetch({ allow: ['127.0.0.1'], connections: 4 })
    const single = async () => {
      const { body } = await guarded.fetch(server.url, { signal: new AbortController().signal })
      return (await readBody(body)).bytes.length
    }
    expect(await Promise.all(Array.from({ length: 100 }, single))).to.deep.equal(Array(100).fill(1000))
    const connections = await new Promise(resolve => server.server.getConnections((_, count) => resolve(count)))
    expect(connections).to.be.at.most(4)
  })
})

async function plain() {
  const server = createServer(socket => {
    server.close()
    socket
      .on('error', () => {})
      .resume()
      .end('HTTP/1.1 200 OK\r\n\r\n')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return server.address() as AddressInfo
}
