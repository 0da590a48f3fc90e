import { expect } from 'chai'
import { TIDES } from '../../../../test/support/tides.ts'
import { linkedPlace } from './support/linked.ts'

const GUARD = `import { definePlugin, svcError } from '@svc/core'
import { AuthSchemes } from '@svc/core/contracts'

const prepare = async () => {
  throw svcError('GUARD_KEY_MISSING', 'the variable GUARD_KEY is not set', { hint: 'set GUARD_KEY' })
}
const guard = { headers: ['x-guard'], challenge: 'Guard', prepare, authenticate: async () => undefined }
export default definePlugin({ setup: scope => void scope.add(AuthSchemes, 'guard', guard) })
`

describe('an installed plugin that cannot start', function () {
  this.timeout(60_000)

  it('is reported with the command that disables it', async () => {
    await using place = await linkedPlace({ version: '1.0.0', setup: "throw new Error('no moon tonight')" })
    const { code, err } = await place.svc(['serve', '--port', '0'])
    expect(code).to.equal(1)
    expect(err)
      .to.match(new RegExp(`^SETUP_FAILED {2}${TIDES}\n {2}its setup failed: no moon tonight`, 'm'))
      .and.contain(`  Fix the plugin, or disable it: svc plugins disable ${TIDES}\n`)
    expect((await place.svc(['plugins', 'disable', TIDES])).code).to.equal(0)
    const server = await place.serve()
    expect((await server.end()).code).to.equal(0)
  })

  it('is named where its scheme cannot check credentials: no other is to blame', async () => {
    const svc = { kind: 'auth', contributes: { auth_schemes: ['guard'] } }
    await using place = await linkedPlace({ version: '1.0.0', name: 'svc-plugin-guard', svc, files: { 'index.js': GUARD } })
    const { code, err } = await place.svc(['serve', '--port', '0'], { env: { SVC_SERVER__AUTH__ENABLED: 'true' } })
    expect(code).to.equal(1)
    expect(err)
      .to.match(/^GUARD_KEY_MISSING {2}svc-plugin-guard\n {2}the variable GUARD_KEY is not set/m)
      .and.contain('  set GUARD_KEY\n')
      .and.not.contain('@svc/plugin-http')
  })
})
