import { expect } from 'chai'
import { createClient, type OpenStream } from '../support/client.ts'
import { runSvc } from '../support/command.ts'
import { inNewHome, startService } from '../support/service.ts'

const ADMIN = 'the-key-of-this-test-0123456789'
const ENV = { SVC_API_KEY: ADMIN, SVC_SERVER__AUTH__ENABLED: 'true' }
const fresh = (url: string) => createClient(url, { keepAlive: false })

interface Line {
  readonly time: string
  readonly level: string
  readonly worker: string
  readonly message: string
  readonly request_id: string | null
  readonly principal: string | null
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
const admin = { 'x-api-key': ADMIN }
type Headers = Record<string, string>

async function linesOf(url: string, query: string, headers: Headers): Promise<readonly Line[]> {
  const answer = await fresh(url).send({ method: 'GET', path: `/api/v1/logs${query}`, headers })
  expect(answer.status, answer.text).to.equal(200)
  const { lines, complete } = answer.body as { lines: readonly Line[]; complete: boolean }
  expect(complete).to.equal(true)
  return lines
}

const say = async (url: string, id: string, headers: Headers) => {
  const request = { method: 'POST', path: '/api/v1/chat', headers: { ...headers, 'x-request-id': id }, body: { message: 'hi' } }
  const answer = await fresh(url).send(request)
  expect(answer.status, answer.text).to.equal(200)
}

/** The next event of this name. */
async function nextOf(stream: OpenStream, name: string): Promise<{ readonly [field: string]: unknown }> {
  for (;;) {
    const event = await stream.next()
    if (!event) throw new Error('the stream ended')
    if (event.event === name) return event.data as { readonly [field: string]: unknown }
  }
}

describe('the log, the caller and the events of a server with two workers', () => {
  it('show each caller its own, and all to the scope admin', () =>
    inNewHome(async home => {
      await using service = await startService({ home, env: ENV, args: ['--workers', '2'] })
      await service.seen(/"event":"worker_ready"/)
      const { url } = service
      const all = await fresh(url).stream({ method: 'GET', path: '/api/v1/events?types=token_*,turn_completed', headers: admin })
      // the stream is open when its first comment is there
      await all.next()
      const create = async (...words: string[]) => (await runSvc(['tokens', 'create', ...words], { home })).out.trim()
      const [anna, bert] = [await create('--name', 'anna'), await create('--name', 'bert', '--ttl', '1h')]

      const me = async (headers: Headers) => (await fresh(url).send({ method: 'GET', path: '/api/v1/me', headers })).body
      expect(await me(admin)).to.deep.include({ scopes: ['*'], expires: null })
      const shown = (await me(bearer(bert))) as { principal: string; scopes: string[]; scheme: string; expires: string }
      expect(shown).to.deep.include({ scopes: ['chat', 'read', 'workflows', 'tools'], scheme: 'bearer' })
      expect(Date.parse(shown.expires) - Date.now()).to.be.within(3_500_000, 3_600_000)
      expect((await fresh(url).get('/api/v1/me')).status).to.equal(401)

      const own = await fresh(url).stream({ method: 'GET', path: '/api/v1/events?types=turn_completed', headers: bearer(anna) })
      await own.next()
      for (let at = 0; at < 8; at++) {
        await say(url, `anna-${at}`, bearer(anna))
        await say(url, `bert-${at}`, bearer(bert))
      }
      // the first events of a worker can be from before it knows the reader
      for (let seen = 0; seen < 3; seen++) expect((await nextOf(own, 'svc.turn_completed')).requestid).to.match(/^anna-/)
      const created = await nextOf(all, 'svc.token_created')
      expect(created).to.deep.include({ category: 'AUDIT' })
      expect(JSON.stringify(created)).to.not.include(anna)
      await all.leave()
      await own.leave()

      const everything = await linesOf(url, '?limit=1000', admin)
      expect(new Set(everything.map(({ worker }) => worker)).size).to.equal(2)
      expect(everything.map(({ time }) => time)).to.deep.equal(everything.map(({ time }) => time).toSorted())
      expect(everything.map(({ request_id }) => request_id)).to.include.members(['anna-0', 'bert-0', 'anna-7', 'bert-7'])
      const ofAnna = await linesOf(url, '?limit=1000', bearer(anna))
      expect(ofAnna.map(({ request_id }) => request_id)).to.include.members(['anna-0', 'anna-7'])
      expect(new Set(ofAnna.map(({ principal }) => principal)).size).to.equal(1)
      // the id of another's request gives no access
      await fresh(url).send({ method: 'GET', path: '/api/v1/status', headers: { ...bearer(anna), 'x-request-id': 'bert-0' } })
      for (const { principal } of await linesOf(url, '?request_id=bert-0', bearer(anna)))
        expect(principal).to.equal(ofAnna[0]!.principal)
      for (let refresh = 0; refresh < 10; refresh++)
        expect((await linesOf(url, '?request_id=anna-3', admin)).map(({ request_id }) => request_id)).to.deep.equal(['anna-3'])
      expect(await linesOf(url, '?level=error', admin)).to.deep.equal([])
      expect((await linesOf(url, '?text=LISTENING', admin)).length).to.be.at.least(1)
      expect(await linesOf(url, '?since=2999-01-01', admin)).to.deep.equal([])

      const follow = await fresh(url).stream({ method: 'GET', path: '/api/v1/logs?follow=true&text=late-', headers: admin })
      await follow.next()
      for (const id of ['late-0', 'late-1', 'late-2', 'late-3']) await say(url, id, bearer(bert))
      const late = new Set<unknown>()
      while (late.size < 4) late.add((await nextOf(follow, 'log_line')).request_id)
      await follow.leave()
    }))

  it('reject bad input', () =>
    inNewHome(async home => {
      await using service = await startService({ home })
      const ask = async (query: string) => {
        const { status, body } = await fresh(service.url).get(`/api/v1/logs${query}`)
        return { status, ...(body as { error_code: string; error: string }) }
      }
      const bad = ['level=loud', 'limit=0', 'limit=1001', 'limit=x', 'since=yesterday', 'since=1', 'follow=maybe', 'text=']
      for (const query of [...bad, `text=${'a'.repeat(201)}`, 'request_id='])
        expect(await ask(`?${query}`), query).to.include({ status: 400, error_code: 'INVALID_VALUE' })
      expect((await ask('?levle=info')).error).to.match(/did you mean "level"/)
      expect((await fresh(service.url).get('/api/v1/me?x=1')).status).to.equal(400)
    }))
})
