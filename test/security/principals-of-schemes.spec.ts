import { expect } from 'chai'
import { type Stranger, serveStrangers } from '../support/stranger.ts'
import { describeWith } from '../support/needs.ts'

/** A credential scheme that answers what its credential says. */
const SCHEME: Stranger = {
  name: 'svc-plugin-anybody',
  svc: { kind: 'auth', contributes: { auth_schemes: ['anybody'] } },
  code: `import { definePlugin } from '@svc/core'
import { AuthSchemes } from '@svc/core/contracts'
export default definePlugin({
  setup: scope => void scope.add(AuthSchemes, 'anybody', {
    headers: ['x-anybody'],
    challenge: 'Anybody',
    authenticate: async ({ headers }) => headers['x-anybody'] && JSON.parse(headers['x-anybody']),
  }),
})`,
}

describeWith('bubblewrap', 'a credential scheme of an isolated plugin', () => {
  it('never turns a caller into the server, an empty principal or a plugin, or into a principal of another form', async () => {
    await using service = await serveStrangers([SCHEME], {
      beside: ['rest', 'conversations', 'selection', 'chat', 'model-calls', 'modes', 'provider-local'],
      config: { server: { auth: { enabled: true } } },
    })
    const status = async (holder: unknown) => {
      const headers = { 'x-anybody': JSON.stringify(holder) }
      return (await fetch(`${service.url}/api/v1/conversations`, { headers })).status
    }
    expect(await status({ id: 'anybody:ada', scopes: ['chat', 'read'] })).to.equal(200)
    const scopes = ['*']
    for (const id of ['system', 'anonymous', 'plugin:svc-plugin-anybody', 'plugin:x', '', 'a\nb', 7, null])
      expect(await status({ id, scopes }), JSON.stringify(id)).to.equal(500)
    for (const bad of ['chat', [7], {}, undefined])
      expect(await status({ id: 'x', scopes: bad }), JSON.stringify(bad)).to.equal(500)
    await service.seen(/SCHEME_INVALID.*svc-plugin-anybody|svc-plugin-anybody.*SCHEME_INVALID/)
  })

  it('reads the headers of other credentials only where that was accepted', async () => {
    const reading = (header: string, permissions: object = {}): Stranger => ({
      ...SCHEME,
      svc: { ...SCHEME.svc, permissions },
      code: SCHEME.code.replace("['x-anybody']", `['x-anybody', '${header}']`),
    })
    const start = (stranger: Stranger) =>
      serveStrangers([stranger], {
        beside: ['rest', 'chat', 'model-calls', 'conversations', 'selection', 'modes', 'provider-local'],
      })
    for (const header of ['authorization', 'x-api-key', 'x-goog-api-key', 'cookie', 'proxy-authorization']) {
      const error = await start(reading(header)).then(
        async service => service[Symbol.asyncDispose](),
        (failure: Error) => failure.message
      )
      expect(error, header).to.include('PERMISSION_MISSING').and.include('credential_headers')
    }
    await using service = await start(reading('x-api-key', { credential_headers: ['x-api-key'] }))
    expect((await fetch(`${service.url}/health`)).status).to.equal(200)
  })
})
