import { deepEqual, equal, match, rejects } from 'node:assert/strict'
import { createHash, createHmac } from 'node:crypto'
import { test } from 'node:test'
import { Counts } from '@svc/core/contracts'
import { testContext, testHost } from '@svc/testing'
import { createSigned } from '../scheme.js'

// `svc plugins test` runs the kit. It starts the plugins of svc that provide the store.

const SECRET = 'a-secret-of-at-least-32-characters'
const KEYS = new Map([['deploy', { secret: SECRET, variable: 'SIGNED_SECRET_DEPLOY', scopes: ['read'] }]])
const hex = createHash('sha256').update('{"n": 1.0}').digest('hex')

/** @type {(changed?: Record<string, unknown>) => import('@svc/core/contracts').CredentialRequest & Record<string, unknown>} */
function request(changed = {}, age = 0) {
  const [time, nonce] = [String(Math.floor(Date.now() / 1000) - age), 'a-nonce-of-the-test']
  const signature = createHmac('sha256', SECRET)
    .update([time, nonce, 'POST', '/api/v1/chat', 'a=1&b=%20', hex].join('\n'))
    .digest('hex')
  const headers = { 'x-signed-key': 'deploy', 'x-signed-time': time, 'x-signed-nonce': nonce, 'x-signed-signature': signature }
  const signed = { address: '192.0.2.1', method: 'POST', path: '/api/v1/chat', query: 'a=1&b=%20', headers }
  const { headers: others, ...rest } = changed
  return {
    ...signed,
    bodyDigest: { algorithm: 'sha256', hex },
    ...rest,
    headers: { ...headers, .../** @type {object} */ (others) },
  }
}

test('accepts a signed request once, and rejects every change of it', async () => {
  await using host = await testHost(['@svc/plugin-store-memory'])
  const scheme = createSigned({ keys: KEYS, windowMs: 300_000, counts: host.service(Counts) })
  const ask = (/** @type {Record<string, unknown>} */ changed) => scheme.authenticate(request(changed), testContext())
  deepEqual(await ask({ bodyDigest: undefined }), { needs: 'sha256' })
  const now = Math.floor(Date.now() / 1000)
  const changes = [
    { method: 'PUT' },
    { path: '/api/v1/Chat' },
    { query: 'a=1&b= ' },
    { bodyDigest: { algorithm: 'sha256', hex: hex.replace(/^./, sign => (sign === '0' ? '1' : '0')) } },
    { headers: { 'x-signed-nonce': 'another-nonce-of-the-test' } },
    { headers: { 'x-signed-time': String(now - 299) } },
    { headers: { 'x-signed-key': 'other' } },
    { headers: { 'x-signed-key': '__proto__' } },
  ]
  for (const changed of changes) await rejects(ask(changed), { code: 'AUTHENTICATION_FAILED' }, JSON.stringify(changed))
  deepEqual(await ask({}), { id: 'signed:deploy', scopes: ['read'] })
  await rejects(ask({}), { code: 'AUTHENTICATION_FAILED' })
  for (const age of [0, 1000])
    deepEqual(await scheme.authenticate(request({ isRecheck: true }, age), testContext()), {
      id: 'signed:deploy',
      scopes: ['read'],
    })
})

test('asks for no body of a request that it rejects', async () => {
  await using host = await testHost(['@svc/plugin-store-memory'])
  const scheme = createSigned({ keys: KEYS, windowMs: 300_000, counts: host.service(Counts) })
  const seconds = Date.now() / 1000
  for (const headers of [
    { 'x-signed-time': String(Math.floor(seconds - 302)) },
    { 'x-signed-time': String(Math.floor(seconds + 302)) },
    { 'x-signed-time': '1e9' },
    { 'x-signed-nonce': 'short' },
    { 'x-signed-signature': 'zz' },
    { 'x-signed-key': 'other' },
  ])
    await rejects(scheme.authenticate(request({ headers, bodyDigest: undefined }), testContext()), {
      code: 'AUTHENTICATION_FAILED',
    })
})

test('does not start with a secret that is missing or short, and names its variable', async () => {
  await using host = await testHost(['@svc/plugin-store-memory'])
  for (const secret of [undefined, 'short']) {
    const keys = new Map([['deploy', { secret, variable: 'SIGNED_SECRET_DEPLOY', scopes: ['read'] }]])
    const scheme = createSigned({ keys, windowMs: 1000, counts: host.service(Counts) })
    const error = await Promise.resolve(scheme.prepare?.(testContext())).then(
      () => undefined,
      cause => cause
    )
    equal(error?.code, 'SIGNED_SECRET_MISSING')
    match(error.hint, /SIGNED_SECRET_DEPLOY/)
  }
})
