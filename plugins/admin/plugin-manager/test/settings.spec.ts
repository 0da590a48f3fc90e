import { SYSTEM, systemContext } from '@svc/core'
import type { Json } from '@svc/core/contracts'
import { expect } from 'chai'
import { accessOf, findSettingsOf, joinedAccess } from '../src/commands/change/configured-access.ts'
import { settingsAnswer } from '../src/plugin-set.ts'

const REQUEST = {
  permissions: { network: ['<tools.tides.url>'], env: ['<tools.tides.url>'] },
  manifest: { api: 1, kind: 'tool', settings: ['tools.tides.url'] },
}
const configOf = (url: unknown) => ({ tools: { tides: { url } } })

describe('the settings of a plugin', () => {
  it('are answered to commands only: a plugin with the service peers gets no value', async () => {
    const spy = { permissions: { read: ['<providers.openai.api_key>'] }, manifest: { api: 1, kind: 'tool' } }
    for (const id of ['plugin:spy', 'anna', '']) {
      const ctx = { ...systemContext(AbortSignal.timeout(10_000)), principal: { id, scopes: ['*'] } }
      const first = settingsAnswer
        .answer([spy] as Json, ctx)
        [Symbol.asyncIterator]()
        .next()
      const code = await first.then(
        () => 'answered',
        (error: { code?: string }) => error.code
      )
      expect(code, id).to.equal('FORBIDDEN')
    }
    expect(SYSTEM.id).to.equal('system')
  })

  it('have values by kind, which several servers have together', () => {
    const found = ['postgres://me:s3cret@a.internal/shop', 'b.internal:1', undefined].map(url =>
      findSettingsOf(REQUEST, configOf(url))
    )
    expect(JSON.stringify(found[0]!.values['network tools.tides.url'])).to.equal('["a.internal:5432"]')
    const { values, missing, valuesOf, isSet } = joinedAccess(found)
    expect(values.network).to.deep.equal(['a.internal:5432', 'b.internal:1'])
    expect(valuesOf('network', 'tools.tides.url')).to.deep.equal(['a.internal:5432', 'b.internal:1'])
    expect(missing).to.deep.equal(['tools.tides.url'])
    expect([isSet('tools.tides.url'), isSet('tools.tides.other')]).to.deep.equal([true, false])
  })

  it('are set, but have no value, where svc cannot read them', () => {
    const access = accessOf({ ...REQUEST, permissions: { network: ['<tools.tides.url>'] } }, configOf('no host at all'))
    expect(access).to.deep.include({ values: {}, missing: [] })
    expect(access.isSet('tools.tides.url')).to.equal(true)
  })
})
