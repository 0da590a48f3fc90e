import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Json } from '@svc/core/contracts'
import { expect } from 'chai'
import { codeThrown, type HostOptions, openNode, provesNode, nodeSteps } from './support/host.ts'

const keys: (string | undefined)[] = []

/** Says what it was asked, or does what the path says. */
async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { method, url = '', headers } = request
  response.sendDate = false // two answers of one sample are compared, and a second may end between them
  const body = Buffer.concat(await Array.fromAsync(request)).toString()
  if (method === 'POST') keys.push(headers['idempotency-key'] as string | undefined)
  const path = url.split('?')[0]
  if (path === '/hang') return
  if (path === '/text')
    return void response.setHeader('content-type', 'text/plain; charset=latin1').end(Buffer.from('gr\u00fc\u00df', 'latin1'))
  if (path === '/broken') return void response.setHeader('content-type', 'application/json').end('{"a":')
  if (path === '/large') return void response.end('x'.repeat(5_000))
  const status = Number(/^\/(\d{3})$/.exec(path ?? '')?.[1] ?? 200)
  const seen = {
    method,
    url,
    body,
    type: headers['content-type'] ?? null,
    key: headers['idempotency-key'] ?? null,
    mine: headers['x-mine'] ?? null,
  }
  response
    .writeHead(status, { 'content-type': 'application/problem+json', 'retry-after': '7' })
    .end(status === 204 ? '' : JSON.stringify(seen))
}

const server = createServer((request, response) => void answer(request, response)).listen(0, '127.0.0.1')
await once(server, 'listening')
server.unref()
const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
const options: HostOptions = { config: { workflow_nodes: { http: { allow: ['127.0.0.1'], max_bytes: 4_096 } } } }
const seen = (output: Json) => (output as { body: Record<string, Json> }).body

describe('a node http', () => {
  after(() => server.close())

  provesNode(
    'http',
    {
      good: [
        {
          settings: { url: `${base}/a?b=1`, query: { c: ['x y', 2], d: null }, headers: { 'X-Mine': 5 } },
          expect(output) {
            expect(seen(output)).to.include({ method: 'GET', url: '/a?b=1&c=x+y&c=2', key: null, mine: '5', type: null })
            expect(output).to.deep.include({ status: 200 }).and.have.nested.property('headers.retry-after', '7')
          },
        },
        {
          settings: { url: base, method: 'POST', body: { a: 1 } },
          expect: output => expect(seen(output)).to.include({ body: '{"a":1}', type: 'application/json', key: 'kit:step' }),
        },
        {
          settings: { url: base, method: 'PUT', body: 'text', headers: { 'Idempotency-Key': 'own', 'content-type': 'text/csv' } },
          expect: output => expect(seen(output)).to.include({ body: 'text', type: 'text/csv', key: 'own' }),
        },
        { settings: { url: `${base}/404`, statuses: [404] }, expect: output => expect(output).to.have.property('status', 404) },
        { settings: { url: `${base}/204` }, expect: output => expect(output).to.have.property('body', '') },
        { settings: { url: `${base}/text` }, expect: output => expect(output).to.have.property('body', 'gr\u00fc\u00df') },
        {
          settings: { url: `${base}/broken`, parse: 'text' },
          expect: output => expect(output).to.have.property('body', '{"a":'),
        },
      ],
      bad: [
        { settings: {} },
        { settings: { url: base, method: 'get' } },
        { settings: { url: base, headers: { a: {} } } },
        { settings: { url: 'nowhere' }, code: 'INVALID_VALUE' },
        { settings: { url: 'file:///etc/passwd' }, code: 'URL_INVALID' },
        { settings: { url: `${base}/404` }, code: 'HTTP_REFUSED' },
        { settings: { url: `${base}/503` }, code: 'HTTP_FAILED' },
        { settings: { url: `${base}/429` }, code: 'HTTP_FAILED' },
        { settings: { url: `${base}/broken` }, code: 'HTTP_BODY_INVALID' },
        { settings: { url: `${base}/large` }, code: 'BODY_TOO_LARGE' },
        { settings: { url: 'http://127.0.0.2:9/' }, code: 'ADDRESS_FORBIDDEN' },
      ],
      slow: { settings: { url: `${base}/hang` } },
      keyed: { settings: { url: base, method: 'POST' }, keys: () => keys },
    },
    options
  )

  it('tells the status and the beginning of the answer, and no query, which may hold a key', async () => {
    await using node = await openNode('http', options)
    const { message, details } = await codeThrown(nodeSteps(node, { settings: { url: `${base}/503?token=hidden` } }))
    expect(message).to.equal(`${base}/503 returned the status 503`)
    expect(details).to.include({ status: 503, retry_after: '7', url: `${base}/503` })
  })

  it('is run again after its process has ended where it changes nothing', async () => {
    await using node = await openNode('http', options)
    for (const method of ['GET', 'HEAD'])
      expect((await nodeSteps(node, { settings: { url: `${base}/text`, method }, interrupted: true })).at(-1)?.type).to.equal(
        'output'
      )
    expect((await codeThrown(nodeSteps(node, { settings: { url: base, method: 'DELETE' }, interrupted: true }))).code).to.equal(
      'NODE_INTERRUPTED'
    )
  })
})
