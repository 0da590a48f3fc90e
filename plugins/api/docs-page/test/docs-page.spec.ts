import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, request } from 'node:http'
import { type AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { gunzipSync } from 'node:zlib'
import { codeOf, systemContext } from '@svc/core'
import { Mounts } from '@svc/core/contracts'
import { testHost } from '@svc/testing'
import { expect } from 'chai'

interface Got {
  readonly status: number | undefined
  readonly headers: IncomingMessage['headers']
  readonly body: Buffer
}

/** The page behind a bare server; what the mount throws is answered with its code. */
async function served() {
  // a mount takes the raw request, which nothing can copy
  const host = await testHost([new URL('..', import.meta.url)], { strict: false })
  const mount = host.slot(Mounts).get('docs')!
  const server = createServer((incoming, response) => {
    response.setHeader('Vary', 'Origin')
    mount.handle!(incoming, response, systemContext(new AbortController().signal)).catch((error: unknown) => {
      response.writeHead(500).end(codeOf(error))
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    mount,
    async get(path: string, headers: Readonly<Record<string, string>> = {}, method = 'GET'): Promise<Got> {
      const asked = request({ port, path, method, headers, host: '127.0.0.1' }).end()
      const [response] = (await once(asked, 'response')) as [IncomingMessage]
      return { status: response.statusCode, headers: response.headers, body: await buffer(response) }
    },
    async [Symbol.asyncDispose]() {
      server.close()
      server.closeAllConnections()
      await host.close()
    },
  }
}

describe('the page /docs', () => {
  it('is for who may read, and brings a policy that lets it speak to its own server alone', async () => {
    await using page = await served()
    expect(page.mount.scope).to.equal('read')
    const { status, headers, body } = await page.get('/docs')
    expect([status, headers['content-type']]).to.deep.equal([200, 'text/html; charset=utf-8'])
    expect(headers['content-security-policy'])
      .to.contain("default-src 'none'")
      .and.contain("connect-src 'self'")
      .and.not.contain('http')
    expect(body.toString())
      .to.contain('<script src="/docs/api-reference.js"')
      .and.not.match(/https?:/)
    expect((await page.get('/docs/')).body.equals(body)).to.equal(true)
  })

  it('sends its script compressed to clients that accept gzip, and plain to others', async () => {
    await using page = await served()
    const packed = await page.get('/docs/api-reference.js', { 'accept-encoding': 'br, gzip' })
    const plain = await page.get('/docs/api-reference.js', { 'accept-encoding': 'gzip;q=0, br' })
    expect([packed.headers['content-encoding'], plain.headers['content-encoding']]).to.deep.equal(['gzip', undefined])
    expect(packed.headers.vary).to.equal('Origin, Accept-Encoding')
    expect(Number(packed.headers['content-length'])).to.equal(packed.body.length)
    expect(gunzipSync(packed.body).equals(plain.body)).to.equal(true)
    expect(plain.headers['content-type']).to.equal('text/javascript; charset=utf-8')
  })

  it('has the library that it says it has', async () => {
    await using page = await served()
    const about = JSON.parse(await readFile(new URL('../assets/about.json', import.meta.url), 'utf8')) as { sha256: string }
    const { body } = await page.get('/docs/api-reference.js')
    expect(createHash('sha256').update(body).digest('hex')).to.equal(about.sha256)
  })

  it('is not sent again to who has it', async () => {
    await using page = await served()
    const { headers } = await page.get('/docs/start.js')
    const again = await page.get('/docs/start.js', { 'if-none-match': headers.etag! })
    expect([again.status, again.body.length]).to.deep.equal([304, 0])
  })

  it('has headers without a body for HEAD, and takes no other method', async () => {
    await using page = await served()
    const head = await page.get('/docs', {}, 'HEAD')
    expect([head.status, head.body.length, Number(head.headers['content-length']) > 0]).to.deep.equal([200, 0, true])
    const posted = await page.get('/docs', {}, 'POST')
    expect([posted.headers.allow, posted.body.toString()]).to.deep.equal(['GET, HEAD', 'METHOD_NOT_ALLOWED'])
  })

  it('has no other files, however the path is written', async () => {
    await using page = await served()
    for (const path of ['/docs/page.html', '/docs/../package.json', '/docs/%2e%2e/package.json', '/docs//start.js', '//docs'])
      expect((await page.get(path)).body.toString()).to.equal('NOT_FOUND')
  })
})
