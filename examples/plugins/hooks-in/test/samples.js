import { createHmac } from 'node:crypto'

const SECRET = 'only-the-tests-know-this-secret'
const hmac = (/** @type {string} */ text) => createHmac('sha256', SECRET).update(text).digest('hex')
const bytes = (/** @type {object} */ body) => Buffer.from(JSON.stringify(body))

const PUSH = { ref: 'refs/heads/main' }
const PAID = { id: 'evt_1', type: 'invoice.paid' }
const TIME = Math.floor(Date.now() / 1000)

/** Samples for the kits that `svc plugins test` and the test beside this file run. */
/** @type {import('@svc/testing').PluginSamples} */
const samples = {
  env: { GITHUB_WEBHOOK_SECRET: SECRET, STRIPE_WEBHOOK_SECRET: SECRET },
  routes: {
    github: [
      {
        headers: {
          'x-hub-signature-256': `sha256=${hmac(JSON.stringify(PUSH))}`,
          'x-github-delivery': 'd1',
          'x-github-event': 'push',
        },
        body: PUSH,
        rawBody: bytes(PUSH),
      },
    ],
    stripe: [
      {
        headers: { 'stripe-signature': `t=${TIME},v1=${hmac(`${TIME}.${JSON.stringify(PAID)}`)}` },
        body: PAID,
        rawBody: bytes(PAID),
      },
    ],
    hook_events: [{}, { query: { source: 'github', limit: '1' } }],
  },
  tools: {
    list_hook_events: {
      good: [{ args: {} }, { args: { source: 'stripe', limit: 5 } }],
      bad: [{ args: { limit: 0 } }, { args: { source: 'x' } }],
    },
  },
}

export default samples
