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
    for (const one of authKit(openDirect)) it(one.title, one.run)
  })

  describe('through the strict host, by the kit', () => {
    for (const one of authKit(open)) it(one.title, one.run)
  })

  it('takes the word Bearer in any letters, as HTTP has it, and the token to the letter', async () => {
    const one = await open()
    const token = one.good.value.slice('Bearer '.length)
    for (const word of ['bearer', 'BEARER', 'Bearer  '])
      expect(await answerOf(one, `${word} ${token}`)).to.include({ id: 'token:anna' })
    expect(await answerOf(one, `Bearer ${token.toUpperCase()}`)).to.include({ code: 'AUTHENTICATION_FAILED' })
    await one.close()
  })

  it('gives out 32 random bytes and keeps their digest alone', async () => {
    const host = await testHost([STORE])
    const tokens = createTokens(host.service(Store))
    await tokens.open(ctx)
    const made = await Promise.all(Array.from({ length: 50 }, () => tokens.make({ scopes: ['chat'], ttlMs: DAY }, ctx)))
    expect(new Set(made.map(one => one.token)).size).to.equal(50)
    for (const { token } of made) expect(token).to.match(/^svc_[A-Za-z0-9_-]{43}$/)
    const page = await host.service(Store).range(COLLECTION, { limit: 1000 }, ctx)
    const kept = JSON.stringify(page.records)
    for (const { token } of made) expect(kept).to.not.contain(token.slice(4))
    for (const { key } of page.records) expect(key).to.match(/^[0-9a-f]{64}$/)
    await host.close()
  })

  it('stops to take a revoked token by the time revoke answers, though it was used just before', async () => {
    const one = await open()
    expect(await answerOf(one)).to.include({ id: 'token:anna' })
    const gone = await one.tokens.revoke('anna', ctx)
    expect(gone.map(({ name }) => name)).to.deep.equal(['anna'])
    expect(await answerOf(one)).to.include({ code: 'AUTHENTICATION_FAILED' })
    await one.close()
  })

  it('takes a new token at once', async () => {
    const one = await open()
    expect(await answerOf(one)).to.include({ id: 'token:anna' })
    const { token } = await one.tokens.make({ name: 'ben', scopes: ['read'], ttlMs: DAY }, ctx)
    expect(await answerOf(one, `Bearer ${token}`)).to.deep.include({ id: 'token:ben', scopes: ['read'] })
    await one.close()
  })

  it('revokes by id the one token, by name all of that name', async () => {
    const one = await open()
    const second = await one.tokens.make({ name: 'anna', scopes: ['read'], ttlMs: DAY }, ctx)
    expect((await one.tokens.revoke(second.shown.id, ctx)).map(({ id }) => id)).to.deep.equal([second.shown.id])
    expect(await answerOf(one)).to.include({ id: 'token:anna' })
    await one.tokens.make({ name: 'anna', scopes: ['read'], ttlMs: DAY }, ctx)
    expect(await one.tokens.revoke('anna', ctx)).to.have.length(2)
    const error = await one.tokens.revoke('anna', ctx).catch((thrown: unknown) => thrown)
    expect(error).to.include({ code: 'TOKEN_UNKNOWN' })
    await one.close()
  })

  it('notes when a token was used, once a minute at most', async () => {
    const one = await open()
    const writes: string[] = []
    const store = { find: one.tokens.find, open: one.tokens.open, note: async () => void writes.push('note') }
    const scheme = createBearer({ tokens: { ...one.tokens, ...store }, log: { debug() {} } as never, lasting: ctx })
    for (let at = 0; at < 5; at++) await answerOf({ ...one, scheme })
    expect(writes).to.deep.equal(['note'])
    const [shown] = (await one.tokens.list(ctx)).filter(({ name }) => name === 'anna')
    const found = await one.tokens.find((await keyOf(one, shown!.id))!, ctx)
    await one.tokens.note(found!, ctx)
    expect((await one.tokens.list(ctx)).find(({ name }) => name === 'anna')).to.have.property('used')
    await one.tokens.note(found!, ctx) // its version is old: somebody else has noted it
    await one.close()
  })

  it('forgets tokens that expired long ago when it makes one', async () => {
    const one = await open()
    await one.tokens.make({ name: 'ancient', scopes: ['chat'], ttlMs: -31 * DAY }, ctx)
    await one.tokens.make({ name: 'new', scopes: ['chat'], ttlMs: DAY }, ctx)
    expect((await one.tokens.list(ctx)).map(({ name }) => name))
      .to.include('new')
      .and.not.include('ancient')
    await one.close()
  })

  it('answers UNAVAILABLE while the store is down', async () => {
    const one = await open()
    const down = Object.assign(new Error('down'), { code: 'STORE_UNAVAILABLE' })
    const tokens = { ...one.tokens, find: () => Promise.reject(down) }
    const scheme = createBearer({ tokens, log: { debug() {} } as never, lasting: ctx })
    expect(await answerOf({ ...one, scheme })).to.include({ code: 'STORE_UNAVAILABLE' })
    await one.close()
  })
})

async function keyOf(one: Awaited<ReturnType<typeof subject>>, id: string): Promise<string | undefined> {
  const { digestOf } = await import('../src/token.ts')
  const digest = digestOf(one.good.value.slice('Bearer '.length))
  return digest.startsWith(id.slice(4)) ? digest : undefined
}
