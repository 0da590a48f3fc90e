import { rejects } from 'node:assert/strict'
import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import { svcError } from '@svc/core'
import type { AuthScheme } from '@svc/core/contracts'
import { authKit } from '@svc/testing'

const SECRET = 'the-secret-of-anna'

const scheme: AuthScheme = {
  headers: ['x-key', 'x-signature'],
  challenge: 'Signature',
  async authenticate({ headers, method, path, query, bodyDigest }, { signal }) {
    signal.throwIfAborted()
    if (headers['x-signature'] === undefined) return undefined
    if (headers['x-key'] !== 'anna') throw svcError('AUTHENTICATION_FAILED', 'the key is not known')
    if (!bodyDigest) return { needs: 'sha256' }
    const expected = createHmac('sha256', SECRET).update([method, path, query, bodyDigest.hex].join('\n')).digest('hex')
    const [given, wanted] = [headers['x-signature'], expected].map(text => createHash('sha256').update(text).digest())
    if (!timingSafeEqual(given!, wanted!)) throw svcError('AUTHENTICATION_FAILED', 'the signature does not match')
    return { id: 'signed:anna', scopes: ['read'] }
  },
}

/** The same, for requests with a nonce, each accepted once. */
function acceptingOnce(): AuthScheme {
  const used = new Set<string>()
  return {
    ...scheme,
    headers: [...scheme.headers, 'x-nonce'],
    async authenticate(request, ctx) {
      const holder = await scheme.authenticate(request, ctx)
      const nonce = request.headers['x-nonce'] ?? ''
      if (!request.bodyDigest || request.isRecheck) return holder
      if (used.has(nonce)) throw svcError('AUTHENTICATION_FAILED', 'the request was received before')
      used.add(nonce)
      return holder
    },
  }
}

const empty = createHash('sha256').digest('hex')
const value = createHmac('sha256', SECRET).update(['GET', '/', '', empty].join('\n')).digest('hex')

describe('authKit for signed requests', () => {
  const good = { header: 'x-signature', value, id: 'signed:anna', scopes: ['read'], beside: { 'x-key': 'anna' } }
  const bad = { 'with another secret': createHmac('sha256', 'other').update('x').digest('hex') }
  for (const testCase of authKit(() => ({ scheme, good, bad }))) it(testCase.title, testCase.run)

  describe('that are accepted once', () => {
    let count = 0
    const fresh = () => ({ ...good, beside: { ...good.beside, 'x-nonce': String(count++) } })
    for (const testCase of authKit(() => ({ scheme: acceptingOnce(), good: fresh, bad }))) it(testCase.title, testCase.run)

    it('fails a scheme that accepts a repeated request', async () => {
      const [again] = authKit(() => ({ scheme, good: fresh, bad })).filter(({ title }) =>
        title.startsWith('returns the same answer')
      )
      await rejects(again!.run.call(undefined), /it accepted a credential: a credential that it accepts once/)
    })
  })
})
