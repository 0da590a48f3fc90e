import { type RunningHost, systemContext } from '@svc/core'
import { AuthSchemes, Store } from '@svc/core/contracts'
import { authKit, testHost } from '@svc/testing'
import { expect } from 'chai'
import { createBearer } from '../src/bearer.ts'
import { COLLECTION, createTokens } from '../src/tokens.ts'

const ctx = systemContext(new AbortController().signal)
const OWN = new URL('..', import.meta.url)
const STORE = new URL('../../../storage/memory/', import.meta.url)
const DAY = 86_400_000

async function subject(host: RunningHost, found?: ReturnType<typeof createBearer>) {
  const tokens = createTokens(host.service(Store))
  await tokens.open(ctx)
  const anna = await tokens.make({ name: 'anna', scopes: ['chat', 'read'], ttlMs: DAY }, ctx)
  const old = await tokens.make({ scopes: ['chat'], ttlMs: -1 }, ctx)
  const scheme = found ?? host.slot(AuthSchemes).get('bearer')!
  return {
    scheme,
    tokens,
    good: { header: 'authorization', value: `Bearer ${anna.token}`, id: 'token:anna', scopes: ['chat', 'read'] },
    bad: { expired: `Bearer ${old.token}`, unknown: `Bearer svc_${'A'.repeat(43)}`, 'of wrong form': 'Bearer svc_' },
    revoke: () => tokens.revoke('anna', ctx),
    close: () => host.close(),
  }
}

const open = async () => subject(await testHost([STORE, OWN]))
const openDirect = async () => {
  const host = await testHost([STORE], { strict: false })
  return subject(host, createBearer({ tokens: createTokens(host.service(Store)), log: host.log, lasting: ctx }))
}
const answerOf = async ({ scheme, good }: Awaited<ReturnType<typeof subject>>, value = good.value) =>
  scheme
    .authenticate({ headers: { authorization: value }, address: '127.0.0.1', method: 'GET', path: '/', query: '' }, ctx)
    .catch((error: { code: string }) => error)

describe('auth-bearer', () => {
  describe('in process, by the kit', () => {
    for (const testCase of authKit(openDirect)) it(testCase.title, testCase.run)
  })

  describe('through the strict host, by the kit', () => {
    for (const testCase of authKit(open)) it(testCase.title, testCase.run)
  })

  for (const header of ['x-api-key', 'x-goog-api-key'])
    describe(`in the header ${header}, by the kit`, () => {
      const alone = (value: string) => value.slice('Bearer '.length)
      const openAlone = async () => {
        const { good, bad, ...opened } = await openDirect()
        const others = Object.entries(bad).map(([what, value]) => [what, alone(value)])
        return { ...opened, good: { ...good, header, value: alone(good.value) }, bad: Object.fromEntries(others) }
      }
      for (const testCase of authKit(openAlone)) it(testCase.title, testCase.run)
    })

  it('takes the word Bearer in any letters, as HTTP has it, and the token to the letter', async () => {
    const opened = await open()
    const token = opened.good.value.slice('Bearer '.length)
    for (const word of ['bearer', 'BEARER', 'Bearer  '])
      expect(await answerOf(opened, `${word} ${token}`)).to.include({ id: 'token:anna' })
    expect(await answerOf(opened, `Bearer ${token.toUpperCase()}`)).to.include({ code: 'AUTHENTICATION_FAILED' })
    await opened.close()
  })

  it('gives out 32 random bytes and keeps their digest alone', async () => {
    const host = await testHost([STORE])
    const tokens = createTokens(host.service(Store))
    await tokens.open(ctx)
    const made = await Promise.all(Array.from({ length: 50 }, () => tokens.make({ scopes: ['chat'], ttlMs: DAY }, ctx)))
    expect(new Set(made.map(item => item.token)).size).to.equal(50)
    for (const { token } of made) expect(token).to.match(/^svc_[A-Za-z0-9_-]{43}$/)
    const page = await host.service(Store).range(COLLECTION, { limit: 1000 }, ctx)
    const kept = JSON.stringify(page.records)
    for (const { token } of made) expect(kept).to.not.contain(token.slice(4))
    for (const { key } of page.records) expect(key).to.match(/^[0-9a-f]{64}$/)
    await host.close()
  })

  it('stops to take a revoked token by the time revoke answers, though it was used just before', async () => {
    const opened = await open()
    expect(await answerOf(opened)).to.include({ id: 'token:anna' })
    const gone = await opened.tokens.revoke('anna', ctx)
    expect(gone.map(({ name }) => name)).to.deep.equal(['anna'])
    expect(await answerOf(opened)).to.include({ code: 'AUTHENTICATION_FAILED' })
    await opened.close()
  })

  it('takes a new token at once', async () => {
    const opened = await open()
    expect(await answerOf(opened)).to.include({ id: 'token:anna' })
    const { token } = await opened.tokens.make({ name: 'ben', scopes: ['read'], ttlMs: DAY }, ctx)
    expect(await answerOf(opened, `Bearer ${token}`)).to.deep.include({ id: 'token:ben', scopes: ['read'] })
    await opened.close()
  })

  it('revokes by id the one token, by name all of that name', async () => {
    const opened = await open()
    const second = await opened.tokens.make({ name: 'anna', scopes: ['read'], ttlMs: DAY }, ctx)
    expect((await opened.tokens.revoke(second.shown.id, ctx)).map(({ id }) => id)).to.deep.equal([second.shown.id])
    expect(await answerOf(opened)).to.include({ id: 'token:anna' })
    await opened.tokens.make({ name: 'anna', scopes: ['read'], ttlMs: DAY }, ctx)
    expect(await opened.tokens.revoke('anna', ctx)).to.have.length(2)
    const error = await opened.tokens.revoke('anna', ctx).catch((thrown: unknown) => thrown)
    expect(error).to.include({ code: 'TOKEN_UNKNOWN' })
    await opened.close()
  })

  it('notes when a token was used, once a minute at most', async () => {
    const opened = await open()
    const writes: string[] = []
    const store = { find: opened.tokens.find, open: opened.tokens.open, note: async () => void writes.push('note') }
    const scheme = createBearer({ tokens: { ...opened.tokens, ...store }, log: { debug() {} } as never, lasting: ctx })
    for (let at = 0; at < 5; at++) await answerOf({ ...opened, scheme })
    expect(writes).to.deep.equal(['note'])
    const [shown] = (await opened.tokens.list(ctx)).filter(({ name }) => name === 'anna')
    const found = await opened.tokens.find((await keyOf(opened, shown!.id))!, ctx)
    await opened.tokens.note(found!, ctx)
    expect((await opened.tokens.list(ctx)).find(({ name }) => name === 'anna')).to.have.property('used')
    await opened.tokens.note(found!, ctx) // its version is old: somebody else has noted it
    await opened.close()
  })

  it('forgets tokens that expired long ago when it makes one', async () => {
    const opened = await open()
    await opened.tokens.make({ name: 'ancient', scopes: ['chat'], ttlMs: -31 * DAY }, ctx)
    await opened.tokens.make({ name: 'new', scopes: ['chat'], ttlMs: DAY }, ctx)
    expect((await opened.tokens.list(ctx)).map(({ name }) => name))
      .to.include('new')
      .and.not.include('ancient')
    await opened.close()
  })

  it('answers UNAVAILABLE while the store is down', async () => {
    const opened = await open()
    const down = Object.assign(new Error('down'), { code: 'STORE_UNAVAILABLE' })
    const tokens = { ...opened.tokens, find: () => Promise.reject(down) }
    const scheme = createBearer({ tokens, log: { debug() {} } as never, lasting: ctx })
    expect(await answerOf({ ...opened, scheme })).to.include({ code: 'STORE_UNAVAILABLE' })
    await opened.close()
  })
})

async function keyOf(awaited: Awaited<ReturnType<typeof subject>>, id: string): Promise<string | undefined> {
  const { digestOf } = await import('../src/token.ts')
  const digest = digestOf(awaited.good.value.slice('Bearer '.length))
  return digest.startsWith(id.slice(4)) ? digest : undefined
}
