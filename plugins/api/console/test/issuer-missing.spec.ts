import { type ConfigTree, type RunningHost, startHost, systemContext } from '@svc/core'
import { AuthSchemes } from '@svc/core/contracts'
import { expect } from 'chai'

const OWN = new URL('..', import.meta.url)
const STORE = new URL('../../../storage/memory/', import.meta.url)
const HTTP = new URL('../../http/', import.meta.url)
const OIDC = new URL('../../auth-oidc/', import.meta.url)
const CONSOLE = { oidc: { client_id: 'svc-console', redirect_uri: 'https://svc.example.com/console/oidc' } }
const ISSUER = { issuer: 'https://login.example.org', audience: 'svc' }
const start = (plugins: readonly URL[], config: ConfigTree) =>
  startHost({ plugins: [STORE, ...plugins], config, log: { destination: { write() {} } } })
const prepare = (host: RunningHost) =>
  host.slot(AuthSchemes).get('console_session')!.prepare!(systemContext(new AbortController().signal))

describe('a console with a client of an issuer', () => {
  it('fails the start of a server that accepts the tokens of no issuer, and says what to set', async () => {
    const server = { port: 0, auth: { enabled: true } }
    const failed = await start([HTTP, OWN], { console: CONSOLE, server }).then(
      host => host.close(),
      (error: unknown) => error
    )
    expect(String((failed as Error).message)).to.contain('console.oidc is set')
    expect(JSON.stringify(failed, Object.getOwnPropertyNames(failed))).to.contain('Set server.auth.oidc.issuer')
  })

  it('does not with an issuer, in whatever order the plugins start, nor without a client', async () => {
    for (const plugins of [
      [OWN, OIDC],
      [OIDC, OWN],
    ]) {
      await using host = await start(plugins, { console: CONSOLE, server: { auth: { oidc: ISSUER } } })
      await prepare(host)
    }
    await using host = await start([OWN], {})
    await prepare(host)
  })
})
