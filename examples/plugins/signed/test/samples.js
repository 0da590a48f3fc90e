import { createHash, createHmac, randomUUID } from 'node:crypto'

const SECRET = 'only-the-tests-know-this-secret-of-a-key'
const NO_BODY = createHash('sha256').digest('hex')

/** Headers of a request without a body. @type {(path?: string, time?: number) => Record<string, string>} */
const signed = (path = '/', time = Math.floor(Date.now() / 1000)) => {
  const nonce = randomUUID()
  const text = [time, nonce, 'GET', path, '', NO_BODY].join('\n')
  const signature = createHmac('sha256', SECRET).update(text).digest('hex')
  return { 'x-signed-key': 'test', 'x-signed-time': String(time), 'x-signed-nonce': nonce, 'x-signed-signature': signature }
}

/** Samples for the kits that `svc plugins test` and the test beside this file run. */
/** @type {import('@svc/testing').PluginSamples} */
const samples = {
  env: { SIGNED_SECRET_TEST: SECRET },
  config: { server: { auth: { signed: { keys: { test: ['read', 'chat'] } } } } },
  auth: {
    signed: {
      good: () => {
        const { 'x-signed-signature': value = '', ...beside } = signed()
        return { header: 'x-signed-signature', value, beside, id: 'signed:test', scopes: ['read', 'chat'] }
      },
      bad: { 'of another request': signed('/other')['x-signed-signature'] ?? '' },
    },
  },
}

export default samples
