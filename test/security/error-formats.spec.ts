import { expect } from 'chai'
import { inWorkspace } from '../support/plugin-workspace.ts'
import type { Service } from '../support/service.ts'
import { routesOf, type Stranger, serveStrangers, writeStranger } from '../support/stranger.ts'
import { describeWith } from '../support/needs.ts'
import { until } from '../support/wait.ts'

interface Format {
  readonly path: string
  readonly header?: string
}

/** A plugin with routes below a path and formats of errors. `format` is the body of the function of each format. */
const dialect = (
  name: string,
  formats: Readonly<Record<string, Format>>,
  format: string,
  declared: object = formats
): Stranger => {
  const { contributes, permissions } = routesOf({
    [name]: { method: 'POST', path: `/${name}/chat` },
    [`${name}-flow`]: { method: 'GET', path: `/${name}/flow` },
  })
  return {
    name: `svc-plugin-${name}`,
    svc: { kind: 'routes', contributes: { ...contributes, error_formats: declared }, permissions },
    code: `import { definePlugin, svcError } from '@svc/core'
import { ErrorFormats, Routes } from '@svc/core/contracts'
export default definePlugin({
  setup(scope) {
    scope.add(Routes, '${name}', {
      method: 'POST', path: '/${name}/chat', summary: 'Answers', body: { type: 'object', required: ['model'] },
      handle: async ({ body }) => {
        if (body.model === 'ok') return { body: { ok: true }, headers: { 'openai-version': '1', 'request-id': 'r', 'x-ratelimit-limit': '9' } }
        throw svcError(body.model, 'the model failed', { details: { field: 'model', provider: 'p' } })
      },
    })
    scope.add(Routes, '${name}-flow', {
      method: 'GET', path: '/${name}/flow', summary: 'Streams', streams: 'text/event-stream',
      heartbeat: 'event: ping\\ndata: {}\\n\\n',
      async *stream({ query }) {
        yield { headers: { 'content-type': 'text/event-stream' }, holdMs: 200 }
        if (query.wait) await new Promise(resolve => setTimeout(resolve, Number(query.wait)))
        if (query.early) throw svcError('RATE_LIMITED', 'too many', { details: { retry_after: 4 } })
        yield 'data: 1\\n\\n'
        if (query.die) process.exit(1)
        throw svcError('MODEL_FAILED', 'the model is gone', { details: { provider: 'p' } })
      },
    })
    const format = async (failed, ctx) => { ${format} }
    for (const [name, given] of Object.entries(${JSON.stringify(formats)})) scope.add(ErrorFormats, name, { ...given, format })
  },
})`,
  }
}
const MINE = `const error = { message: failed.record.error, code: failed.record.error_code, status: failed.status, id: failed.requestId }
      return { body: { error, keys: Object.keys(failed), principal: ctx.principal }, headers: { 'x-should-retry': 'false' }, event: 'data: ' + JSON.stringify({ error }) + '\\n\\n' }`

describeWith('bubblewrap', 'the format of errors of an isolated plugin', function () {
  this.timeout(90_000)
  let service: Service
  before(async () => {
    service = await serveStrangers(
      [
        dialect('fine', { fine: { path: '/fine' }, special: { path: '/fine/special', header: 'x-special' } }, MINE),
        // of others: the routes of "fine", paths without a route beside them, and those of the server
        dialect(
          'greedy',
          {
            a: { path: '/fine/chat' },
            b: { path: '/fine/flow', header: 'x-any' },
            c: { path: '/inside' },
            d: { path: '/greedy' },
            e: { path: '/.well-known' },
          },
          `return { body: { greedy: true } }`
        ),
        { ...dialect('inside', {}, ''), isolation: 'in-process' },
        dialect('shared', { shared: { path: '/shared' } }, MINE),
        {
          ...dialect('beside', { beside: { path: '/beside' } }, MINE),
          code: dialect('beside', { beside: { path: '/beside' } }, MINE).code.replace(
            "path: '/beside/chat'",
            "path: '/shared/beside'"
          ),
          svc: JSON.parse(
            JSON.stringify(dialect('beside', { beside: { path: '/beside' } }, MINE).svc).replace('/beside/chat', '/shared/beside')
          ) as Stranger['svc'],
        },
        dialect('hanging', { hanging: { path: '/hanging' } }, `while (failed.path.endsWith('hang')) {}; ${MINE}`),
        dialect('dying', { dying: { path: '/dying' } }, `if (failed.path.endsWith('die')) process.exit(1); ${MINE}`),
        dialect('large', { large: { path: '/large' } }, `return { body: { text: 'x'.repeat(10_000_000) } }`),
        dialect('status', { status: { path: '/status' } }, `return { status: 200, body: {} }`),
        { ...dialect('other', { other: { path: '/other' } }, MINE, { other: { path: '/others' } }), optional: true },
        {
          ...dialect('headless', { headless: { path: '/headless', header: 'x-a' } }, MINE, { headless: { path: '/headless' } }),
          optional: true,
        },
        { ...dialect('silent', { silent: { path: '/silent' } }, MINE, {}), optional: true },
        { ...dialect('wide', { wide: { path: '/' } }, MINE), optional: true },
      ],
      { beside: [] }
    )
  })
  after(() => service[Symbol.asyncDispose]())

  const ask = async (path: string, init: RequestInit = {}) => {
    const response = await fetch(`${service.url}${path}`, { headers: { 'x-request-id': 'r-1' }, ...init })
    const text = await response.text()
    const body = (text.startsWith('{') ? JSON.parse(text) : {}) as Record<string, unknown>
    return { status: response.status, headers: response.headers, text, body }
  }
  const post = (path: string, body: string) =>
    ask(path, { method: 'POST', body, headers: { 'content-type': 'application/json', 'x-request-id': 'r-1' } })
  const expectOwn = (answer: Awaited<ReturnType<typeof ask>>, status: number) =>
    expect([answer.status, answer.body.success], answer.text).to.deep.equal([status, false])

  it('words errors of its routes, of the gates before them, and of unknown paths below', async () => {
    const wrong = { MODEL_FAILED: [503, 'PROVIDER_ERROR'], NOT_FOUND: [404, 'NOT_FOUND'], ANYTHING: [500, 'INTERNAL_ERROR'] }
    for (const [model, [status, code]] of Object.entries(wrong)) {
      const answer = await post('/fine/chat', JSON.stringify({ model }))
      expect([answer.status, answer.body.error && (answer.body.error as { code: string }).code], answer.text).to.deep.equal([
        status,
        code,
      ])
    }
    for (const [path, body, status] of [
      ['/fine/chat', '{', 400],
      ['/fine/chat', '{}', 400],
      ['/fine/nothing', '{}', 404],
      ['/fine/flow', '{}', 405],
    ] as const) {
      const answer = await post(path, body)
      expect([answer.status, answer.headers.get('x-should-retry')], answer.text).to.deep.equal([status, 'false'])
      expect(answer.body).to.include.keys('error', 'keys')
    }
  })

  it('gets the error and its id, and no caller', async () => {
    const { body, headers } = await ask('/fine/nothing')
    expect(body.keys).to.deep.equal(['record', 'status', 'requestId', 'method', 'path'])
    expect(body.principal).to.deep.equal({ id: 'anonymous', scopes: [] })
    expect(headers.get('x-request-id')).to.equal('r-1')
  })

  it('lets its routes set headers of model APIs, but not those of the server', async () => {
    const { status, headers } = await post('/fine/chat', '{"model":"ok"}')
    expect([status, headers.get('openai-version'), headers.get('request-id'), headers.get('x-ratelimit-limit')]).to.deep.equal([
      200,
      '1',
      'r',
      null,
    ])
  })

  it('ends its streams with an event; an early error has a status, and heartbeats come before the first item', async () => {
    const { status, text } = await ask('/fine/flow')
    expect([status, text.startsWith('data: 1\n\ndata: {"error":{"message":"the model is gone"')], text).to.deep.equal([200, true])
    const early = await ask('/fine/flow?early=1')
    expect([early.status, early.headers.get('retry-after'), (early.body.error as { code: string }).code]).to.deep.equal([
      429,
      '4',
      'RATE_LIMITED',
    ])
    const late = await ask('/fine/flow?early=1&wait=400')
    expect([late.status, late.text.startsWith('data: {"error"')], late.text).to.deep.equal([200, true])
    const died = await ask('/fine/flow?die=1').catch(() => undefined)
    if (died) expectOwn(died, 503) // its process ended before the first item had left it
    // while it is restarted, no other plugin takes its paths
    for (let at = 0; at < 20; at++) expect((await post('/fine/chat', '{')).body).to.not.have.property('greedy')
    await until(
      () => post('/fine/chat', '{"model":"ok"}'),
      answer => answer.status === 200
    )
  })

  it('never words errors of routes of others, of the server, or of paths that others may own', async () => {
    expect((await ask('/greedy/nothing')).body).to.deep.equal({ greedy: true })
    expect((await post('/fine/chat', '{')).body).to.not.have.property('greedy')
    expect((await ask('/fine/flow?early=1', { headers: { 'x-any': '1' } })).body).to.not.have.property('greedy')
    expectOwn(await ask('/inside/x'), 404)
    expectOwn(await ask('/inside/chat', { method: 'DELETE' }), 405)
    expectOwn(await post('/inside/chat', '{'), 400)
    expectOwn(await ask('/.well-known/x'), 404)
    expectOwn(await ask('/shared/nothing'), 404)
    expect((await post('/shared/chat', '{')).body, 'of its own routes it does').to.include.keys('error')
    expectOwn(await post('/shared/beside', '{'), 400)
    await service.seen(/\/.well-known, which isolated plugins cannot use.*ignored an invalid error format/)
  })

  it('that hangs or dies costs only its own requests, and those half a second', async () => {
    const began = performance.now()
    const hanging = ask('/hanging/hang')
    const other = await ask('/fine/nothing')
    expect(other.body).to.include.keys('error')
    expectOwn(await hanging, 404)
    expect(performance.now() - began).to.be.below(5_000)
    expectOwn(await ask('/dying/die'), 404)
    await until(
      () => ask('/dying/nothing'),
      answer => answer.body.error instanceof Object
    )
  })

  it('leaves the record of the server, if it returns 10 MB or a status', async () => {
    expectOwn(await ask('/large/nothing'), 404)
    expectOwn(await ask('/status/nothing'), 404)
    await service.seen(/"format":"status".*an error format failed|an error format failed.*"format":"status"/)
  })

  it('is refused, if it is not what the manifest declares', async () => {
    await service.seen(/CONTRIBUTION_DIFFERS[^\n]*\/others/)
    await service.seen(/svc-plugin-headless[^\n]*CONTRIBUTION_DIFFERS|CONTRIBUTION_DIFFERS[^\n]*x-a/)
    await service.seen(/CONTRIBUTION_UNDECLARED[^\n]*error_formats/)
    await service.seen(/MANIFEST_INVALID[^\n]*must be a path like \/v1/)
    for (const name of ['other', 'headless', 'silent', 'wide']) expectOwn(await ask(`/${name}/nothing`), 404)
  })
})

describeWith('bubblewrap', 'an installation of a plugin with a format of errors', function () {
  this.timeout(60_000)

  it('shows the paths whose errors it words', () =>
    inWorkspace(async workspace => {
      const stranger = dialect('fine', { fine: { path: '/fine' }, special: { path: '/v1', header: 'x-special' } }, MINE)
      const { out, err, code } = await workspace.svc(
        'plugins',
        'install',
        await writeStranger(workspace.folder, stranger),
        '--yes'
      )
      expect(code, err).to.equal(0)
      const info = await workspace.svc('plugins', 'info', stranger.name)
      for (const text of [out, info.out])
        expect(text)
          .to.include('/fine/*: gives errors its own format\n')
          .and.include('/v1/*: gives errors its own format, for requests with x-special')
    }))
})
