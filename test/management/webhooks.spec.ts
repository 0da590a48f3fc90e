import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { Webhook } from 'standardwebhooks'
import { createClient } from '../support/client.ts'
import { runSvc } from '../support/command.ts'
import { inNewHome, startService } from '../support/service.ts'
import { startTwo, workersOf } from '../support/two-workers.ts'

const HOOKS = '/api/v1/webhooks'
const KEY = 'AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8='

interface Delivered {
  readonly id: string
  readonly headers: Record<string, string>
  readonly body: string
  readonly event: { readonly id: string; readonly type: string; readonly requestid: string; readonly data: object }
}

/** A receiver of webhooks, whose answers a test decides. */
async function startReceiver(answer: (response: ServerResponse, delivered: Delivered, attempt: number) => void) {
  const got: Delivered[] = []
  const server = createServer((request: IncomingMessage, response) => {
    void (async () => {
      let body = ''
      for await (const chunk of request.setEncoding('utf8')) body += chunk
      const headers = request.headers as Record<string, string>
      const delivered = { id: headers['webhook-id']!, headers, body, event: JSON.parse(body) as Delivered['event'] }
      got.push(delivered)
      answer(response, delivered, got.filter(({ id }) => id === delivered.id).length)
    })()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/hook`,
    port,
    got,
    close() {
      server.close()
      server.closeAllConnections()
    },
    [Symbol.dispose]() {
      this.close()
    },
  }
}

const ok = (response: ServerResponse) => void response.writeHead(204).end()

const configure = (home: string, webhooks: object = {}) =>
  writeFile(
    join(home, 'svc.config.json'),
    JSON.stringify({ webhooks: { allow: ['127.0.0.1'], retry_delays_s: [0, 1], timeout_ms: 1_000, ...webhooks } })
  )
const env = { SVC_SECRETS_KEY: KEY }
const fresh = (url: string) => createClient(url, { keepAlive: false })

interface Added {
  readonly webhook: { readonly id: string; readonly enabled: boolean; readonly disabled_reason: string | null }
  readonly secret: string
}
async function add(url: string, body: object): Promise<Added> {
  const answer = await fresh(url).post(HOOKS, body)
  expect(answer.status, answer.text).to.equal(201)
  return answer.body as Added
}
const say = async (url: string, id: string) => {
  const headers = { 'x-request-id': id }
  const answer = await fresh(url).send({ method: 'POST', path: '/api/v1/chat', headers, body: { message: 'hi' } })
  expect(answer.status, answer.text).to.equal(200)
}

interface Shown {
  readonly id: string
  readonly state: string
  readonly attempts: number
  readonly error: string | null
}
async function deliveriesOf(url: string, id: string, query = ''): Promise<readonly Shown[]> {
  const { body, text, status } = await fresh(url).get(`${HOOKS}/${id}/deliveries${query}`)
  expect(status, text).to.equal(200)
  return (body as { deliveries: Shown[] }).deliveries
}

/** Waits until a condition holds. */
async function until(what: string, holds: () => boolean | Promise<boolean>, ms = 30_000): Promise<void> {
  for (const end = Date.now() + ms; !(await holds()); await sleep(50))
    if (Date.now() > end) throw new Error(`waited too long until ${what}`)
}

/** All workers know a new webhook when events of each reach it. */
async function untilTaken(url: string, got: readonly Delivered[], workers: number): Promise<void> {
  const sources = () => new Set(got.map(({ body }) => (JSON.parse(body) as { source: string }).source))
  await until('all workers deliver', async () => {
    await say(url, 'warm')
    return sources().size >= workers
  })
}

describe('webhooks', () => {
  it('deliver each event of two workers once, signed as Standard Webhooks', () =>
    inNewHome(async home => {
      using receiver = await startReceiver(ok)
      await configure(home)
      await using service = await startTwo({ home, env })
      const { url } = service
      const { webhook, secret } = await add(url, { url: receiver.url, types: ['turn_completed'] })
      await untilTaken(url, receiver.got, 2)
      const ids = Array.from({ length: 40 }, (_, at) => `turn-${at}`)
      await Promise.all(ids.map(id => say(url, id)))
      const delivered = () => receiver.got.filter(({ event }) => ids.includes(event.requestid))
      await until('all are delivered', () => delivered().length >= ids.length)
      await until('no delivery is open', async () =>
        (await deliveriesOf(url, webhook.id, '?limit=50')).every(({ state }) => state === 'completed')
      )
      expect(
        delivered()
          .map(({ event }) => event.requestid)
          .toSorted()
      ).to.deep.equal(ids.toSorted())
      const [one] = delivered()
      expect(new Webhook(secret).verify(one!.body, one!.headers)).to.deep.include({ type: 'svc.turn_completed' })
      expect(() => new Webhook(secret).verify(`${one!.body} `, one!.headers)).to.throw()
      expect(one!.headers['webhook-id']).to.equal(one!.event.id)
      expect(JSON.stringify(one!.event)).to.not.include('hi')
      // the secret is in no later answer
      for (const path of [HOOKS, `${HOOKS}/${webhook.id}`])
        expect((await fresh(url).get(path)).text)
          .to.not.include('whsec_')
          .and.not.include(secret)
    }))

  it('are retried, end as dead letters, and are delivered again on request; a hanging receiver holds no other', () =>
    inNewHome(async home => {
      let fails = true
      using failing = await startReceiver(response => void response.writeHead(fails ? 500 : 200).end('x'.repeat(100_000)))
      using hanging = await startReceiver(() => {})
      using inward = await startReceiver(response => void response.writeHead(302, { location: 'http://127.0.0.1:9/' }).end())
      using gone = await startReceiver(response => void response.writeHead(410).end())
      using good = await startReceiver(ok)
      await configure(home)
      await using service = await startService({ home, env })
      const { url } = service
      const types = ['turn_completed']
      const receivers = { failing, hanging, inward, gone, good }
      const ids: Record<string, string> = {}
      for (const [name, receiver] of Object.entries(receivers))
        ids[name] = (await add(url, { url: receiver.url, types, name })).webhook.id
      const forbidden = (await add(url, { url: 'http://10.1.2.3/', types })).webhook.id
      await say(url, 'first')
      await until('the good receiver gets it', () => good.got.length === 1)
      for (let at = 0; at < 5; at++) await say(url, `more-${at}`)
      await until('the good receiver gets the others beside the hanging one', () => good.got.length === 6, 5_000)
      const isDead = async (id: string) => (await deliveriesOf(url, id, '?state=failed')).length >= 1
      for (const name of ['failing', 'hanging', 'inward', 'gone'])
        await until(`${name} is a dead letter`, () => isDead(ids[name]!))
      await until('a forbidden address is refused at once', () => isDead(forbidden))
      const first = async (id: string) => (await deliveriesOf(url, id, '?state=failed')).at(-1)!
      expect(await first(ids.failing!)).to.deep.include({ attempts: 3, error: 'the receiver answered with the status 500' })
      expect((await first(ids.hanging!)).error).to.match(/1000 ms|time/)
      expect(await first(ids.inward!)).to.deep.include({ error: 'the receiver answered with the status 302' })
      expect((await first(forbidden)).attempts).to.equal(1)
      const { body } = await fresh(url).get(`${HOOKS}/${ids.gone}`)
      expect(body).to.include({ enabled: false, disabled_reason: 'the receiver answered 410 Gone' })
      fails = false
      const dead = await first(ids.failing!)
      const retry = await fresh(url).post(`${HOOKS}/${ids.failing}/deliveries/${dead.id}/retry`, {})
      expect(retry.status, retry.text).to.equal(200)
      await until('it is delivered after all', async () =>
        (await deliveriesOf(url, ids.failing!, '?state=completed')).some(({ id }) => id === dead.id)
      )
      const again = await fresh(url).post(`${HOOKS}/${ids.failing}/deliveries/${dead.id}/retry`, {})
      expect(again.status).to.equal(400)
      const other = await fresh(url).post(`${HOOKS}/${ids.good}/deliveries/${dead.id}/retry`, {})
      expect(other.status).to.equal(404)
    }))

  it('lose no delivery that is stored when their worker is killed', () =>
    inNewHome(async home => {
      let isOpen = false
      using receiver = await startReceiver(response => void response.writeHead(isOpen ? 204 : 503).end())
      await configure(home, { retry_delays_s: Array.from({ length: 60 }, () => 1) })
      await using service = await startTwo({ home, env })
      const { url } = service
      const { webhook } = await add(url, { url: receiver.url, types: ['turn_completed'] })
      await untilTaken(url, receiver.got, 1)
      const ids = Array.from({ length: 20 }, (_, at) => `turn-${at}`)
      for (const id of ids) await say(url, id)
      await until('all deliveries are stored', async () => {
        const { body } = await fresh(url).get(`${HOOKS}/${webhook.id}/deliveries?limit=50`)
        const { deliveries } = body as { deliveries: readonly { readonly id: string }[] }
        return deliveries.length >= ids.length + 1
      })
      for (const pid of await workersOf(home)) process.kill(pid, 'SIGKILL')
      isOpen = true
      const delivered = () => new Set(receiver.got.map(({ event }) => event.requestid))
      await until('all are delivered', () => ids.every(id => delivered().has(id)), 90_000)
    })).timeout(150_000)

  it('get the events of requests that end during a reload', () =>
    inNewHome(async home => {
      using receiver = await startReceiver(ok)
      await configure(home)
      await using service = await startTwo({ home, env })
      const { url } = service
      await add(url, { url: receiver.url, types: ['turn_completed'] })
      await untilTaken(url, receiver.got, 2)
      const ids = Array.from({ length: 12 }, (_, at) => `turn-${at}`)
      const slow = async (id: string) => {
        const request = {
          method: 'POST',
          path: '/api/v1/chat',
          headers: { 'x-request-id': id },
          body: { message: '/delay 1500\nhi' },
        }
        expect((await fresh(url).send(request)).status).to.equal(200)
      }
      const turns = Promise.all(ids.map(slow))
      const active = async () =>
        ((await (await fetch(`${url}/api/v1/status`)).json()) as { requests_active: number }).requests_active
      await until('all turns run', async () => (await active()) > ids.length)
      process.kill(service.child.pid!, 'SIGHUP')
      await turns
      const delivered = () => receiver.got.map(({ event }) => event.requestid).filter(id => ids.includes(id))
      await until('all are delivered', () => new Set(delivered()).size === ids.length)
      expect(delivered()).to.have.lengthOf(ids.length)
    }))

  it('are added, listed, tested and removed by svc webhooks', () =>
    inNewHome(async home => {
      let status = 204
      using receiver = await startReceiver(response => void response.writeHead(status).end())
      await configure(home)
      const svc = (...args: string[]) => runSvc(['webhooks', ...args], { home, share: true })
      const none = await svc('list')
      expect(none.code).to.not.equal(0)
      expect(none.err).to.match(/svc serve/)
      await using _service = await startService({ home, env })
      const added = await svc('add', receiver.url, '--name', 'ours', '--event', 'run_*', '--event', 'turn_failed', '--json')
      expect(added.code, added.err).to.equal(0)
      const { webhook, secret } = JSON.parse(added.out) as Added
      expect((await svc('list')).out)
        .to.include(webhook.id)
        .and.include('run_*,turn_failed')
      const tested = await svc('test', webhook.id)
      expect([tested.code, tested.err]).to.deep.equal([0, tested.err])
      const [one] = receiver.got
      expect(new Webhook(secret).verify(one!.body, one!.headers)).to.deep.include({ type: 'svc.webhook_test' })
      status = 500
      const failed = await svc('test', webhook.id)
      expect(failed.code).to.equal(1)
      expect(failed.err).to.include('500')
      expect((await svc('remove', webhook.id)).code).to.equal(0)
      const gone = await svc('remove', webhook.id)
      expect(gone.code).to.not.equal(0)
      expect(gone.err).to.include('there is no webhook')
      const wrong = await svc('add', 'nowhere')
      expect(wrong.err).to.include('must be an absolute URL')
    }))

  it('reject bad input', () =>
    inNewHome(async home => {
      await configure(home)
      await using service = await startService({ home, env })
      const { url } = service
      const { webhook } = await add(url, { url: 'https://hooks.example/x' })
      const one = `${HOOKS}/${webhook.id}`
      const ask = async (method: string, path: string, body?: unknown) => {
        const answer = await fresh(url).send({ method, path, ...(body === undefined ? {} : { body }) })
        const { error_code, error, details } = answer.body as { error_code: string; error: string; details: { field?: string } }
        return { status: answer.status, error_code, error, field: details.field }
      }
      const bad: readonly (readonly [object, string])[] = [
        [{ url: 7 }, 'url'],
        [{ url: 'nowhere' }, 'url'],
        [{ url: 'file:///etc/passwd' }, 'url'],
        [{ url: 'https://me:pass@hooks.example/' }, 'url'],
        [{ url: 'https://a.example', types: 'turn_*' }, 'types'],
        [{ url: 'https://a.example', types: ['Turn'] }, 'types[0]'],
        [{ url: 'https://a.example', types: Array.from({ length: 51 }, () => 'a') }, 'types'],
        [{ url: 'https://a.example', enabled: 'yes' }, 'enabled'],
        [{ url: 'https://a.example', secret: 'whsec_x' }, 'secret'],
      ]
      for (const [body, field] of bad) {
        const refused = await ask('POST', HOOKS, body)
        expect(refused, JSON.stringify(body)).to.include({ status: 400, error_code: 'INVALID_VALUE' })
        expect(refused.field, JSON.stringify(body)).to.contain(field.replace(/\[.*/, ''))
      }
      expect(await ask('POST', HOOKS, {})).to.include({ status: 400, error_code: 'MISSING_FIELD' })
      expect((await ask('POST', HOOKS, { url: 'https://a.example', type: [] })).error).to.match(/did you mean "types"/)
      expect((await ask('GET', `${HOOKS}?limt=1`)).status).to.equal(400)
      expect((await ask('GET', `${one}/deliveries?stat=failed`)).error).to.match(/did you mean "state"/)
      for (const query of ['?limit=0', '?limit=51', '?limit=x', '?state=done', '?cursor=garbage'])
        expect(await ask('GET', `${one}/deliveries${query}`), query).to.include({ status: 400, error_code: 'INVALID_VALUE' })
      const strangers = ['nothing', '00000000-0000-0000-0000-000000000000', '%00', '..%2f', 'a'.repeat(2_000)]
      for (const id of strangers)
        for (const [method, path, body] of [
          ['GET', ''],
          ['PATCH', '', {}],
          ['DELETE', ''],
          ['POST', '/test', {}],
          ['GET', '/deliveries'],
          ['POST', '/deliveries/x/retry', {}],
        ] as const)
          expect((await ask(method, `${HOOKS}/${id}${path}`, body)).status, `${method} ${id}${path}`).to.be.oneOf([400, 404])
      expect((await ask('POST', `${one}/deliveries/nothing/retry`, {})).status).to.equal(404)
      const changed = await fresh(url).send({ method: 'PATCH', path: one, body: { enabled: false, rotate_secret: true } })
      expect(changed.body).to.have.nested.property('webhook.enabled', false)
      expect((changed.body as { secret: string }).secret).to.match(/^whsec_/)
      expect((await fresh(url).send({ method: 'DELETE', path: one })).status).to.equal(200)
      expect((await ask('GET', one)).status).to.equal(404)
    }))

  it('need a key for secrets, and say so', () =>
    inNewHome(async home => {
      await configure(home)
      await using service = await startService({ home })
      const { status, body, headers } = await fresh(service.url).post(HOOKS, { url: 'https://hooks.example/' })
      expect(status).to.equal(503)
      expect((body as { error: string }).error).to.match(/secrets\.key_file/)
      // only a person can help, so clients must not try again
      expect((body as { details: object }).details).to.include({ retryable: false })
      expect(headers).to.not.have.property('retry-after')
    }))
})
