import { randomBytes } from 'node:crypto'
import { systemContext } from '@svc/core'
import { AuthSchemes } from '@svc/core/contracts'
import { authKit, testHost } from '@svc/testing'
import { expect } from 'chai'
import { createApiKey } from '../src/api-key.ts'

const KEY = 'k3y-of-the-tests.0123456789abcdef'
const ctx = systemContext(new AbortController().signal)
const address = '127.0.0.1'
const log = { warn: (_facts: object, message?: string) => void warnings.push(message ?? '') }
const warnings: string[] = []

describe('auth-api-key', () => {
  const good = { header: 'x-api-key', value: KEY, id: 'api-key', scopes: ['*'] }
  const bad = { another: 'another-key', 'in other letters': KEY.toUpperCase(), 'as a bearer': `Bearer ${KEY}` }

  describe('in process, by the kit', () => {
    const open = () => ({ scheme: createApiKey({ variable: 'KEY', env: { KEY }, log }), good, bad, passesOn: true as const })
    for (const testCase of authKit(open)) it(testCase.title, testCase.run)
  })

  describe('through the strict host, by the kit', () => {
    const open = async () => {
      process.env.SVC_TEST_KEY = KEY
      const host = await testHost([new URL('..', import.meta.url)], {
        config: { server: { auth: { api_key_env: 'SVC_TEST_KEY' } } },
      })
      delete process.env.SVC_TEST_KEY
      return { scheme: host.slot(AuthSchemes).get('api_key')!, good, bad, passesOn: true as const, close: () => host.close() }
    }
    for (const testCase of authKit(open)) it(testCase.title, testCase.run)
  })

  it('takes the key in each of the three headers, and leaves other values to other schemes', async () => {
    const scheme = createApiKey({ variable: 'KEY', env: { KEY }, log })
    const ask = async (headers: Record<string, string>) =>
      (await scheme.authenticate({ headers, address, method: 'GET', path: '/', query: '' }, ctx)) as { id: string } | undefined
    const each: Record<string, string>[] = [{ 'x-api-key': KEY }, { authorization: `Bearer ${KEY}` }, { 'x-goog-api-key': KEY }]
    for (const headers of each) expect((await ask(headers))?.id, JSON.stringify(headers)).to.equal('api-key')
    expect((await ask({ 'x-api-key': KEY, authorization: `bearer  ${KEY}`, 'x-goog-api-key': KEY }))?.id).to.equal('api-key')
    for (const other of ['Bearer svc_token', 'Bearer eyJh.bGci', 'Bearer', 'Basic YTpi', KEY])
      expect(await ask({ authorization: other }), other).to.equal(undefined)
    for (const other of [`Bearer ${KEY}`, `${KEY}, ${KEY}`, 'svc_token'])
      expect(await ask({ 'x-api-key': other })).to.equal(undefined)
  })

  it('refuses the key beside another value', async () => {
    const scheme = createApiKey({ variable: 'KEY', env: { KEY }, log })
    const mixed: Record<string, string>[] = [
      { 'x-api-key': KEY, authorization: 'Bearer other' },
      { 'x-api-key': '', authorization: `Bearer ${KEY}` },
      { 'x-goog-api-key': 'other', 'x-api-key': KEY },
    ]
    for (const headers of mixed) {
      const request = { headers, address, method: 'GET', path: '/', query: '' }
      expect(await scheme.authenticate(request, ctx).catch((thrown: unknown) => thrown)).to.include({
        code: 'AUTHENTICATION_FAILED',
      })
    }
  })

  it('keeps the server from starting without a key, and says the hint', async () => {
    for (const env of [{}, { SVC_API_KEY: '' }, { SVC_API_KEY: ' \n' }]) {
      const scheme = createApiKey({ variable: 'SVC_API_KEY', env, log })
      const error = await scheme.prepare!(ctx).catch((thrown: unknown) => thrown)
      expect(error).to.include({ code: 'API_KEY_MISSING' })
      expect(error).to.have.property('hint').that.contains('SVC_API_KEY').and.contains('server.auth.enabled')
    }
  })

  it('keeps the server from starting with a key that no header can carry', async () => {
    for (const KEY of ['two words', 'schlüssel', 'a\nb', 'x'.repeat(5000)]) {
      const error = await createApiKey({ variable: 'KEY', env: { KEY }, log }).prepare!(ctx).catch((thrown: unknown) => thrown)
      expect(error).to.include({ code: 'API_KEY_UNUSABLE' })
      expect(String((error as Error).message)).to.not.contain(KEY)
    }
  })

  it('warns of a key that can be guessed, in the log and in doctor, with the hint and without the key', async () => {
    warnings.length = 0
    const short = ['q', 'q7-x'.repeat(3), `${'q7-'.repeat(5)}\n`]
    const known = [
      'change-me-please-change-me',
      'MySecretPassword1234',
      'your-api-key-here',
      '0123456789abcdefgh',
      'q'.repeat(40),
    ]
    for (const KEY of [...short, ...known]) {
      const scheme = createApiKey({ variable: 'KEY', env: { KEY }, log })
      await scheme.prepare!(ctx)
      const texts = [warnings.splice(0).join(), JSON.stringify(scheme.doubt)]
      for (const text of texts)
        expect(text, KEY)
          .to.match(/KEY can be guessed.*openssl rand -hex 32/)
          .and.not.contain(KEY.trim())
    }
    const random = Array.from({ length: 1000 }, () => randomBytes(16).toString('hex'))
    for (const KEY of [...random, 'svc-example-3f9a0c517be2d846'])
      expect(createApiKey({ variable: 'KEY', env: { KEY }, log }).doubt, KEY).to.equal(undefined)
    await createApiKey({ variable: 'KEY', env: { KEY: random[0] }, log }).prepare!(ctx)
    expect(warnings).to.deep.equal([])
  })

  it('takes nothing at all while there is no key, not even an empty one', async () => {
    const scheme = createApiKey({ variable: 'KEY', env: {}, log })
    const empty: Record<string, string>[] = [{ 'x-api-key': '' }, { authorization: 'Bearer' }, { 'x-goog-api-key': '' }]
    for (const headers of empty)
      expect(await scheme.authenticate({ headers, address, method: 'GET', path: '/', query: '' }, ctx)).to.equal(undefined)
  })

  it('takes a key as a file gives it, with a line end', async () => {
    const scheme = createApiKey({ variable: 'KEY', env: { KEY: `${KEY}\n` }, log })
    expect(
      await scheme.authenticate({ headers: { 'x-api-key': KEY }, address, method: 'GET', path: '/', query: '' }, ctx)
    ).to.deep.equal({
      id: 'api-key',
      scopes: ['*'],
    })
  })
})
