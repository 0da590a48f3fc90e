import { createHash, createHmac } from 'node:crypto'

const SECRET = 'only-the-tests-know-this-secret-of-a-key'
const time = String(Math.floor(Date.now() / 1000))
const nonce = 'the-nonce-of-the-test'
const digest = createHash('sha256').digest('hex')

const sign = (/** @type {string} */ text) => createHmac('sha256', SECRET).update(text).digest('hex')

/** Samples for the kits that `svc plugins test` and the test beside this file run. */
/** @type {import('@svc/testing').PluginSamples} */
const samples = {
  env: { SIGNED_SECRET_TEST: SECRET },
  config: { server: { auth: { signed: { keys: { test: ['read', 'chat'] } } } } },
  auth: {
    signed: {
      good: {
        header: 'x-signed-signature',
        value: sign([time, nonce, 'GET', '/', '', digest].join('\n')),
        beside: { 'x-signed-key': 'test', 'x-signed-time': time, 'x-signed-nonce': nonce },
        id: 'signed:test',
        scopes: ['read', 'chat'],
      },
      bad: { 'for another path': sign([time, nonce, 'GET', '/other', '', digest].join('\n')) },
    },
  },
}

export default samples
