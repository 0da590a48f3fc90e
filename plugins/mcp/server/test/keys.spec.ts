import { systemContext } from '@svc/core'
import type { CredentialHolder } from '@svc/core/contracts'
import { expect } from 'chai'
import { createServerKey } from '../src/server-key.ts'
import { bearer, KEY, keyed, plain } from './support/keyed.ts'

const ctx = systemContext(new AbortController().signal)
const warnings: string[] = []
const log = { warn: (_facts: object, message?: string) => void warnings.push(message ?? '') }
const schemeOf = (key: string | undefined, required = true) =>
  createServerKey({ auth: { required, api_key_env: 'KEY' }, env: { KEY: key }, log })

const required = { auth: { required: true } }

describe('the key of the tool server', () => {
  it('is known in either header, and of other credentials it says nothing: they may be good for the whole server', async () => {
    const scheme = schemeOf(KEY)
    const ask = (headers: Readonly<Record<string, string>>) =>
      scheme
        .authenticate({ headers, address: '127.0.0.1', method: 'GET', path: '/', query: '' }, ctx)
        .catch((error: { code?: string }) => error.code)
    const holder = { id: 'mcp-key', scopes: ['tools'] }
    for (const headers of [plain(KEY), bearer(KEY), { ...plain(KEY), ...bearer(KEY) }, { authorization: `BEARER   ${KEY}` }])
      expect(await ask(headers)).to.deep.equal(holder)
    const strange = ['', 'x', KEY.slice(1), `${KEY}x`, KEY.toUpperCase(), `x${KEY}`, 'x'.repeat(100_000)]
    for (const value of strange)
      for (const headers of [plain(value), bearer(value)]) expect(await ask(headers)).to.equal(undefined)
    expect(await ask({})).to.equal(undefined)
    for (const authorization of [KEY, `Basic ${KEY}`]) expect(await ask({ authorization })).to.equal(undefined)
    for (const headers of [
      { ...plain(KEY), ...bearer('x') },
      { ...plain('x'), ...bearer(KEY) },
    ])
      expect(await ask(headers)).to.equal('AUTHENTICATION_FAILED')
  })

  it('returns a principal that cannot change it, and stops with its caller', async () => {
    const scheme = schemeOf(KEY)
    const first = await scheme.authenticate({ headers: plain(KEY), address: '', method: 'GET', path: '/', query: '' }, ctx)
    Reflect.set((first as CredentialHolder).scopes, 0, 'admin')
    expect(
      await scheme.authenticate({ headers: plain(KEY), address: '', method: 'GET', path: '/', query: '' }, ctx)
    ).to.deep.equal({
      id: 'mcp-key',
      scopes: ['tools'],
    })
    const gone = AbortSignal.abort(new Error('gone'))
    const late = scheme
      .authenticate({ headers: plain(KEY), address: '', method: 'GET', path: '/', query: '' }, { ...ctx, signal: gone })
      .catch((error: Error) => error.message)
    expect(await late).to.equal('gone')
  })

  it('keeps the server from starting where it is asked for and missing, and says the hint', async () => {
    for (const key of [undefined, '', ' \n']) {
      const error = await schemeOf(key).prepare!(ctx).catch((thrown: unknown) => thrown)
      expect(error).to.include({ code: 'MCP_KEY_MISSING' })
      expect(error).to.have.property('hint').that.contains('KEY').and.contains('mcp.server.auth.required')
      expect(await schemeOf(key, false).prepare!(ctx)).to.equal(undefined)
    }
    const started = await keyed({ mcp: required }, '').then(
      item => item.host.close(),
      (error: unknown) => error
    )
    expect(started).to.have.nested.property('problems[0].code', 'MCP_KEY_MISSING')
  })

  it('keeps the server from starting where no header can carry it, and warns of one that can be guessed', async () => {
    for (const key of ['two words', 'schlüssel', 'x'.repeat(5000)]) {
      const error = await schemeOf(key, false).prepare!(ctx).catch((thrown: unknown) => thrown)
      expect(error).to.include({ code: 'MCP_KEY_UNUSABLE' })
      expect(String((error as Error).message)).to.not.contain(key)
    }
    await schemeOf('short').prepare!(ctx)
    expect(warnings.splice(0).join())
      .to.match(/fewer than 16/)
      .and.not.contain('short')
    expect(schemeOf('short').doubt?.message).to.match(/fewer than 16/)
    await schemeOf('long-enough-0123456').prepare!(ctx)
    expect([warnings, schemeOf('long-enough-0123456').doubt, schemeOf('', false).doubt]).to.deep.equal([[], undefined, undefined])
  })

  it('is nothing at all while the variable is empty', async () => {
    for (const headers of [plain(''), bearer(''), plain('undefined')])
      expect(
        await schemeOf('', false).authenticate({ headers, address: '127.0.0.1', method: 'GET', path: '/', query: '' }, ctx)
      ).to.equal(undefined)
  })
})
