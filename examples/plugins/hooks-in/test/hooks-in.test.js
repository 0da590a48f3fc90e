import { deepEqual, equal, rejects, throws } from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { test } from 'node:test'
import { Store } from '@svc/core/contracts'
import { testContext, testHost } from '@svc/testing'
import { Inbox } from '../inbox.js'
import { readGithub, readStripe } from '../senders.js'

// `svc plugins test` runs the kit. It starts the plugins of svc that provide the store.

const SECRET = 'secret'
const hmac = (/** @type {string} */ text) => createHmac('sha256', SECRET).update(text).digest('hex')
/** @type {(headers: Record<string, string>, text: string) => import('@svc/core/contracts').RouteRequest} */
const request = (headers, text) => ({ params: {}, query: {}, headers, body: JSON.parse(text), rawBody: Buffer.from(text) })
const REJECTED = { code: 'AUTHENTICATION_FAILED' }

test('accepts the example of the documentation of GitHub', () => {
  const rawBody = Buffer.from('Hello, World!')
  const signature = 'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17'
  const headers = { 'x-hub-signature-256': signature, 'x-github-delivery': 'd', 'x-github-event': 'push' }
  const read = (/** @type {string} */ secret) => readGithub({ params: {}, query: {}, headers, body: {}, rawBody }, secret)
  equal(read("It's a Secret to Everybody").id, 'd')
  throws(() => read('another secret'), REJECTED)
})

test('verifies the bytes of a Stripe event, with one of several signatures, within the tolerance', () => {
  const text = '{ "id": "evt_1",\n "type": "charge.failed", "amount": 1.0 }'
  const now = Math.floor(Date.now() / 1000)
  /** @type {(time: number | string, signed?: string, prefix?: string) => unknown} */
  const read = (time, signed = text, prefix = '') =>
    readStripe(request({ 'stripe-signature': `t=${time},${prefix}v1=${hmac(`${time}.${signed}`)}` }, text), SECRET, 300_000)
  const event = { id: 'evt_1', kind: 'charge.failed', proof: 'evt_1', body: JSON.parse(text) }
  deepEqual(read(now), event)
  deepEqual(read(now, text, `v1=${'0'.repeat(64)},v0=x,`), event)
  for (const time of [now - 301, now + 301, 'soon', '', '1e9']) throws(() => read(time), REJECTED)
  throws(() => read(now, JSON.stringify(JSON.parse(text))), REJECTED)
  for (const header of ['', 't=', 'v1', `t=${now},v1=`, ',,,=', 'v1='.repeat(10_000)])
    throws(() => readStripe(request({ 'stripe-signature': header }, text), SECRET, 300_000), REJECTED)
})

test('refuses a signed event whose id cannot be stored', () => {
  for (const id of ['', '\u0000', '\ud800', 'x'.repeat(201), 7, null]) {
    const text = JSON.stringify({ id, type: 'charge.failed' })
    const time = Math.floor(Date.now() / 1000)
    const signed = request({ 'stripe-signature': `t=${time},v1=${hmac(`${time}.${text}`)}` }, text)
    throws(() => readStripe(signed, SECRET, 300_000), { code: 'MISSING_FIELD' })
  }
})

test('keeps each event once, refuses the same body under another id, and deletes old events', async () => {
  await using host = await testHost(['@svc/plugin-store-memory'])
  const ctx = testContext()
  const inbox = await Inbox.open(host.service(Store), ctx)
  const event = { id: 'd-1', kind: 'push', proof: 'signature', body: { n: 1 } }
  const added = await Promise.all(Array.from({ length: 20 }, () => inbox.add('github', event, ctx)))
  equal(added.filter(Boolean).length, 1)
  await rejects(inbox.add('github', { ...event, id: 'd-2' }, ctx), REJECTED)
  equal(await inbox.add('stripe', { ...event, id: 'd-2' }, ctx), true)
  const kinds = async () => (await inbox.list({ limit: 10 }, ctx)).events.map(({ source, event: id }) => `${source} ${id}`)
  deepEqual(await kinds(), ['stripe d-2', 'github d-1'])
  await inbox.prune(Date.now() - 1000, ctx)
  equal((await kinds()).length, 2)
  await inbox.prune(Date.now() + 1, ctx)
  deepEqual(await kinds(), [])
  equal(await inbox.add('github', event, ctx), true)
})
