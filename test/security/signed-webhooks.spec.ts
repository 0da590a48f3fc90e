import { createHash, createHmac } from 'node:crypto'
import { expect } from 'chai'
import { describeWith } from '../support/needs.ts'
import type { Service } from '../support/service.ts'
import { routesOf, type Stranger, serveStrangers } from '../support/stranger.ts'

const hmac = (secret: string, ...parts: readonly (string | Uint8Array)[]) => {
  const mac = createHmac('sha256', secret)
  for (const part of parts) mac.update(part)
  return mac.digest('hex')
}

const STRIPE = 'whsec_a-secret-of-stripe'
/** The examples that GitHub and Slack publish for their signatures. */
const GITHUB = {
  secret: "It's a Secret to Everybody",
  body: 'Hello, World!',
  signature: 'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17',
}
const SLACK = {
  secret: '8f742231b10e8888abcd99yyyzzz85a5',
  time: '1531420618',
  body: 'token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c',
  signature: 'v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503',
}

const HOOKS = routesOf({
  stripe: { method: 'POST', path: '/hooks/stripe' },
  github: { method: 'POST', path: '/hooks/github' },
  'github-text': { method: 'POST', path: '/hooks/github-text' },
  slack: { method: 'POST', path: '/hooks/slack' },
})

/** Receives webhooks as the documents of the three senders say. */
const WEBHOOKS: Stranger = {
  name: 'svc-plugin-webhooks',
  svc: { kind: 'routes', contributes: HOOKS.contributes, permissions: { ...HOOKS.permissions, env: ['*_SECRET'] } },
  code: `import { createHmac, timingSafeEqual } from 'node:crypto'
import { definePlugin, svcError } from '@svc/core'
import { Routes } from '@svc/core/contracts'
const { STRIPE_SECRET, GITHUB_SECRET, SLACK_SECRET } = process.env
const mac = (secret, ...parts) => parts.reduce((all, part) => all.update(part), createHmac('sha256', secret)).digest('hex')
const isEqual = (a, b) => a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b))
const check = good => { if (!good) throw svcError('AUTHENTICATION_FAILED', 'the signature does not match') }
const github = ({ headers, rawBody, body }) => {
  check(isEqual(headers['x-hub-signature-256'] ?? '', 'sha256=' + mac(GITHUB_SECRET, rawBody)))
  return { body: { body } }
}
const hook = (name, more, handle) => ({ method: 'POST', path: '/hooks/' + name, summary: 'Receives', rawBody: true, body: { type: 'object' }, ...more, handle: async request => handle(request) })
export default definePlugin({
  setup(scope) {
    scope.add(Routes, 'stripe', hook('stripe', {}, ({ headers, rawBody, body }) => {
      const { t, v1 } = Object.fromEntries((headers['stripe-signature'] ?? '').split(',').map(part => part.split('=')))
      check(isEqual(v1 ?? '', mac(STRIPE_SECRET, t + '.', rawBody)))
      return { body: { id: body.id } }
    }))
    scope.add(Routes, 'github', hook('github', {}, github))
    scope.add(Routes, 'github-text', hook('github-text', { accepts: 'text', body: { type: 'string' } }, github))
    scope.add(Routes, 'slack', hook('slack', { accepts: 'form' }, ({ headers, rawBody, body }) => {
      check(isEqual(headers['x-slack-signature'] ?? '', 'v0=' + mac(SLACK_SECRET, 'v0:' + headers['x-slack-request-timestamp'] + ':', rawBody)))
      return { body: { command: body.command } }
    }))
  },
})`,
}

/** A scheme for signed requests: over method, path, query and the digest of the body. */
const SIGNED: Stranger = {
  name: 'svc-plugin-signed',
  svc: { kind: 'auth', contributes: { auth_schemes: ['signed'] } },
  code: `import { createHmac, timingSafeEqual } from 'node:crypto'
import { definePlugin, svcError } from '@svc/core'
import { AuthSchemes } from '@svc/core/contracts'
export default definePlugin({
  setup(scope) {
    scope.add(AuthSchemes, 'signed', {
      headers: ['x-signature'],
      challenge: 'Signature',
      async authenticate({ headers, method, path, query, bodyDigest }) {
        if (!bodyDigest) return { needs: 'sha512' }
        const expected = createHmac('sha256', 'the-secret').update([method, path, query, bodyDigest.hex].join('\\n')).digest('hex')
        const given = headers['x-signature']
        if (given.length !== expected.length || !timingSafeEqual(Buffer.from(given), Buffer.from(expected)))
          throw svcError('AUTHENTICATION_FAILED', 'the signature does not match')
        return { id: 'signed:one', scopes: ['chat', 'read'] }
      },
    })
  },
})`,
}

const ANSWERS: Stranger = {
  name: 'svc-plugin-answers',
  svc: {
    kind: 'routes',
    ...routesOf({
      echo: { method: 'POST', path: '/echo', scope: 'chat' },
      reply: { method: 'GET', path: '/reply/:as', scope: 'read' },
      stream: { method: 'GET', path: '/stream/:as', scope: 'read' },
    }),
  },
  code: `import { definePlugin } from '@svc/core'
import { Routes } from '@svc/core/contracts'
const PNG = new Uint8Array([137, 80, 78, 71, 0, 255])
const REPLIES = {
  bytes: { bytes: PNG },
  image: { status: 201, bytes: PNG, headers: { 'content-type': 'image/png' } },
  text: { text: 'plain' },
  data: { body: { data: true } },
  page: { bytes: Buffer.from('<script>x</script>'), headers: { 'content-type': 'text/html', 'set-cookie': 'a=b' } },
}
const head = headers => ({ status: 203, headers })
const STREAMS = {
  csv: [head({ 'content-type': 'text/csv' }), 'a,b\\n', new Uint8Array([49, 44, 50, 10])],
  cookie: [head({ 'set-cookie': 'session=1', 'x-plugin-a': 'b' }), 'text'],
  page: [head({ 'content-type': 'text/html' }), '<script>x</script>'],
  away: [head({ location: 'https://evil.example' }), 'text'],
  resend: [{ status: 307, headers: { location: '/elsewhere' } }],
  both: [{ text: 'a', bytes: PNG }],
}
export default definePlugin({
  setup(scope) {
    scope.add(Routes, 'echo', { method: 'POST', path: '/echo', scope: 'chat', summary: 'Echoes', body: { type: 'object' }, handle: async ({ body }, ctx) => ({ body: { body, id: ctx.principal.id } }) })
    scope.add(Routes, 'reply', { method: 'GET', path: '/reply/:as', scope: 'read', summary: 'Replies', handle: async ({ params }) => REPLIES[params.as] })
    scope.add(Routes, 'stream', {
      method: 'GET', path: '/stream/:as', scope: 'read', summary: 'Streams',
      async *stream({ params }) { yield* STREAMS[params.as] ?? [REPLIES[params.as]] },
    })
  },
})`,
}

describeWith('bubblewrap', 'an isolated plugin', function () {
  this.timeout(60_000)
  let service: Service
  before(async () => {
    const config = { server: { auth: { enabled: true }, body_limit: 100_000 } }
    const env = { STRIPE_SECRET: STRIPE, GITHUB_SECRET: GITHUB.secret, SLACK_SECRET: SLACK.secret }
    service = await serveStrangers([WEBHOOKS, SIGNED, ANSWERS], { beside: [], config, env })
  })
  after(() => service?.[Symbol.asyncDispose]())

  const send = async (path: string, body: string | Uint8Array, headers: Record<string, string>) => {
    const init = { method: 'POST', body: body as string, headers, signal: AbortSignal.timeout(10_000) }
    const answer = await fetch(`${service.url}${path}`, init)
    return { status: answer.status, body: (await answer.json()) as { [key: string]: unknown } }
  }
  const JSON_TYPE = { 'content-type': 'application/json' }

  it('verifies the signatures of Stripe over the bytes, not over the parsed body', async () => {
    const body = '{ "id":"evt_1",  "amount": 1.0, "name": "caf\\u00e9 ☕" }'
    const time = '1764000000'
    const signature = `t=${time},v1=${hmac(STRIPE, `${time}.`, body)}`
    expect(await send('/hooks/stripe', body, { ...JSON_TYPE, 'stripe-signature': signature })).to.deep.equal({
      status: 200,
      body: { id: 'evt_1' },
    })
    const reordered = JSON.stringify(JSON.parse(body))
    for (const [what, sent, header] of [
      ['a body that only parses to the same', reordered, signature],
      ['another time', body, signature.replace(time, '1764000001')],
      ['no signature', body, 't=1'],
    ] as const)
      expect((await send('/hooks/stripe', sent, { ...JSON_TYPE, 'stripe-signature': header })).status, what).to.equal(401)
  })

  it('verifies the signatures of GitHub, with its published example', async () => {
    const { body, signature } = GITHUB
    const text = { 'content-type': 'text/plain', 'x-hub-signature-256': signature }
    expect(await send('/hooks/github-text', body, text)).to.deep.equal({ status: 200, body: { body } })
    expect((await send('/hooks/github-text', `${body} `, text)).status).to.equal(401)
    const push = '{"ref":"refs/heads/main"}\n'
    const json = { ...JSON_TYPE, 'x-hub-signature-256': `sha256=${hmac(GITHUB.secret, push)}` }
    expect((await send('/hooks/github', push, json)).status).to.equal(200)
    expect((await send('/hooks/github', push.trim(), json)).status).to.equal(401)
  })

  it('verifies the signatures of Slack, with its published example', async () => {
    const { body, signature, time } = SLACK
    const headers = {
      'content-type': 'application/x-www-form-urlencoded',
      'x-slack-request-timestamp': time,
      'x-slack-signature': signature,
    }
    expect(await send('/hooks/slack', body, headers)).to.deep.equal({ status: 200, body: { command: '/webhook-collect' } })
    expect((await send('/hooks/slack', body.replace('%2F', '/'), headers)).status, 'decodes to the same').to.equal(401)
  })

  const sign = (method: string, target: string, body: string | Uint8Array = '') => {
    const [path, query = ''] = target.split('?')
    const digest = createHash('sha512').update(body).digest('hex')
    return { 'x-signature': hmac('the-secret', [method, path, query, digest].join('\n')) }
  }
  const get = async (path: string) => {
    const answer = await fetch(`${service.url}${path}`, { headers: sign('GET', path), signal: AbortSignal.timeout(10_000) })
    const bytes = Buffer.from(await answer.arrayBuffer())
    return {
      status: answer.status,
      type: answer.headers.get('content-type'),
      headers: answer.headers,
      text: bytes.toString('latin1'),
    }
  }

  it('authenticates signed requests, and their routes get the body', async () => {
    const body = JSON.stringify({ text: 'x'.repeat(90_000) })
    const answer = await send('/echo?a=1', body, { ...JSON_TYPE, ...sign('POST', '/echo?a=1', body) })
    expect(answer).to.deep.equal({ status: 200, body: { body: JSON.parse(body), id: 'signed:one' } })
    for (const [what, sent, target] of [
      ['body', body.replace('x', 'y'), '/echo?a=1'],
      ['query', body, '/echo?a=2'],
    ] as const)
      expect((await send(target, sent, { ...JSON_TYPE, ...sign('POST', '/echo?a=1', body) })).status, what).to.equal(401)
  })

  it('answers bytes, text, data or a stream, decided per request', async () => {
    const png = Buffer.from([137, 80, 78, 71, 0, 255]).toString('latin1')
    for (const kind of ['reply', 'stream']) {
      expect(await get(`/${kind}/bytes`)).to.deep.include({ status: 200, type: 'application/octet-stream', text: png })
      expect(await get(`/${kind}/image`)).to.deep.include({ status: 201, type: 'image/png', text: png })
      expect((await get(`/${kind}/text`)).text).to.equal('plain')
      expect((await get(`/${kind}/data`)).text).to.equal('{"data":true}')
    }
    expect(await get('/stream/csv')).to.deep.include({ status: 203, type: 'text/csv', text: 'a,b\n1,2\n' })
  })

  it('sets no header by a stream or bytes that it may not set otherwise', async () => {
    const cookie = await get('/stream/cookie')
    expect([cookie.status, cookie.headers.get('set-cookie'), cookie.headers.get('x-plugin-a')]).to.deep.equal([203, null, 'b'])
    for (const path of ['/stream/page', '/reply/page', '/reply/bytes', '/stream/bytes']) {
      const { headers } = await get(path)
      expect(headers.get('content-security-policy'), path).to.match(/^sandbox; default-src 'none'/)
      expect(headers.get('set-cookie')).to.equal(null)
    }
    for (const as of ['away', 'resend', 'both']) expect((await get(`/stream/${as}`)).status, as).to.equal(500)
  })
})
