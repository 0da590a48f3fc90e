import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { createClient } from './support/client.ts'
import { runSvc } from './support/command.ts'
import { newHome, type Service, startService } from './support/service.ts'

const KEY = 'the-key-of-the-house'
const PATH = '/api/v1/conversations'
const RUNS = '/api/v1/workflows'
const PLUGINS = [
  new URL('./support/asks.ts', import.meta.url),
  new URL('./support/runs.ts', import.meta.url),
  new URL('./support/witness.ts', import.meta.url),
].map(url => fileURLToPath(url))

interface Answer {
  readonly status: number
  readonly text: string
  readonly json: Record<string, unknown>
}

const isJson = (response: Response) => (response.headers.get('content-type') ?? '').startsWith('application/json')

/** Somebody who asks, with the headers of a credential. */
type Person = Readonly<Record<string, string>>

describe('what belongs to a principal', () => {
  let service: Service
  let anna: Person
  let ben: Person
  let admin: Person
  const key: Person = { 'x-api-key': KEY }

  let home: string
  before(async () => {
    home = await newHome()
    const token = async (...args: string[]): Promise<Person> => {
      const { out } = await runSvc(['tokens', 'create', ...args], { home, share: true })
      return { authorization: `Bearer ${out.trim()}` }
    }
    anna = await token('--name', 'anna')
    ben = await token('--name', 'ben')
    admin = await token('--name', 'root', '--scope', 'chat,workflows,admin')
    await writeFile(join(home, 'svc.config.json'), JSON.stringify({ plugins: PLUGINS }))
    service = await startService({ home, env: { SVC_API_KEY: KEY, SVC_SERVER__AUTH__ENABLED: 'true' } })
  })
  after(async () => {
    await service?.[Symbol.asyncDispose]()
    await rm(home, { recursive: true, force: true })
  })

  const ask = async (who: Person, method: string, path: string, body?: object): Promise<Answer> => {
    const sent = body === undefined ? {} : { body: JSON.stringify(body) }
    const headers = { ...who, ...(body === undefined ? {} : { 'content-type': 'application/json' }) }
    const response = await fetch(service.url + path, { method, headers, ...sent })
    const text = await response.text()
    return { status: response.status, text, json: isJson(response) ? (JSON.parse(text) as Record<string, unknown>) : {} }
  }
  const begin = async (who: Person) => {
    const { json } = await ask(who, 'POST', '/api/v1/chat', { message: 'hello' })
    return String(json.conversation_id)
  }
  const listed = async (who: Person) => {
    const { json } = await ask(who, 'GET', `${PATH}?limit=200`)
    return (json.conversations as { conversation_id: string }[]).map(conversation => conversation.conversation_id)
  }

  /** Every route that a conversation can be named to. */
  const ROUTES: Record<string, (who: Person, id: string) => Promise<Answer>> = {
    'POST /api/v1/chat': (who, id) => ask(who, 'POST', '/api/v1/chat', { message: 'hi', conversation_id: id }),
    'POST /api/v1/chat/stream': (who, id) => ask(who, 'POST', '/api/v1/chat/stream', { message: 'hi', conversation_id: id }),
    'POST /api/v1/conversations': (who, id) => ask(who, 'POST', PATH, { message: 'hi', conversation_id: id }),
    'GET /api/v1/conversations/{id}': (who, id) => ask(who, 'GET', `${PATH}/${id}`),
    'DELETE /api/v1/conversations/{id}': (who, id) => ask(who, 'DELETE', `${PATH}/${id}`),
    'PATCH /api/v1/conversations/{id}': (who, id) => ask(who, 'PATCH', `${PATH}/${id}`, { title: 'mine' }),
    'GET /api/v1/conversations/{id}/export': (who, id) => ask(who, 'GET', `${PATH}/${id}/export`),
    'POST /api/v1/conversations/{id}/fork': (who, id) => ask(who, 'POST', `${PATH}/${id}/fork`, {}),
    'POST /api/v1/evaluations': (who, id) =>
      ask(who, 'POST', '/api/v1/evaluations', { replay: { since: '2020-01-01T00:00:00Z', conversation_id: id } }),
  }

  for (const [route, named] of Object.entries(ROUTES)) {
    it(`is 404 to another, word for word like an unknown id: ${route}`, async () => {
      const id = await begin(anna)
      const unknown = `conv_${'0'.repeat(32)}`
      const theirs = await named(ben, id)
      const nobodys = await named(ben, unknown)
      expect(theirs.status).to.equal(404)
      expect(theirs.json).to.include({ error_code: 'INVALID_VALUE' })
      expect(theirs.text.replaceAll(id, '<id>')).to.equal(nobodys.text.replaceAll(unknown, '<id>'))
      const { json } = await ask(anna, 'GET', `${PATH}/${id}`)
      expect(json, 'and nothing happened to it').to.include({ conversation_id: id, message_count: 2 })
    })

    it(`is open to its owner, to the scope admin and to the API key: ${route}`, async () => {
      for (const who of [anna, admin, key]) expect((await named(who, await begin(anna))).status).to.be.oneOf([200, 201, 202, 204])
    })
  }

  /** Routes with tests of their own, below, in their plugins or in test/management. They read no conversation. */
  const OTHERS = [
    'GET /api/v1/conversations',
    'POST /api/v1/chat/answer',
    'POST /api/v1/conversations/delete',
    'POST /api/v1/conversations/import',
    'POST /api/v1/conversations/{id}/hand-over',
    'GET /api/v1/chat/stream/{turn_id}',
    'POST /api/v1/chat/stream/{turn_id}/cancel',
    'GET /api/v1/events',
    'GET /api/v1/series',
    'GET /api/v1/traces',
    'GET /api/v1/usage',
    'POST /v1/messages',
    'POST /v1/messages/count_tokens',
    'POST /v1/models/{name}',
    'POST /v1/responses',
    'POST /v1beta/models/{name}',
  ]

  it('includes every route that takes the id of a chat or conversation', async () => {
    const { json } = await ask(key, 'GET', '/openapi.json')
    const paths = json.paths as Record<string, Record<string, { requestBody?: unknown; parameters?: unknown }>>
    const served = Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods).flatMap(([method, { requestBody, parameters }]) =>
        /^\/api\/v1\/(chat|conversations)\b/.test(path) || JSON.stringify([requestBody, parameters]).includes('conversation')
          ? [`${method.toUpperCase()} ${path}`]
          : []
      )
    )
    expect(served).to.have.members([...Object.keys(ROUTES), ...OTHERS])
  })

  /** A run that waits for an answer. */
  const run = async (who: Person) => {
    const { json } = await ask({ ...who, prefer: 'respond-async' }, 'POST', `${RUNS}/run`, { workflow: 'ask' })
    return String(json.workflow_id)
  }
  const statusOf = (who: Person, id: string) => ask(who, 'GET', `${RUNS}/${id}/status`)

  /** Every route that a run can be named to. */
  const RUN_ROUTES: Record<string, (who: Person, id: string) => Promise<Answer>> = {
    [`GET ${RUNS}/{id}/status`]: statusOf,
    [`GET ${RUNS}/{id}/steps`]: (who, id) => ask(who, 'GET', `${RUNS}/${id}/steps`),
    [`GET ${RUNS}/{id}/events`]: (who, id) => ask(who, 'GET', `${RUNS}/${id}/events`),
    [`POST ${RUNS}/{id}/events`]: (who, id) => ask(who, 'POST', `${RUNS}/${id}/events`, { name: 'paid', data: {} }),
    [`POST ${RUNS}/{id}/answer`]: (who, id) => ask(who, 'POST', `${RUNS}/${id}/answer`, { step: 'may', value: true }),
    [`POST ${RUNS}/{id}/retry`]: (who, id) => ask(who, 'POST', `${RUNS}/${id}/retry`),
    [`POST ${RUNS}/{id}/cancel`]: (who, id) => ask(who, 'POST', `${RUNS}/${id}/cancel`),
    [`POST ${RUNS}/{id}/pause`]: (who, id) => ask(who, 'POST', `${RUNS}/${id}/pause`),
    [`POST ${RUNS}/{id}/resume`]: (who, id) => ask(who, 'POST', `${RUNS}/${id}/resume`),
    [`POST ${RUNS}/{id}/replay`]: (who, id) => ask(who, 'POST', `${RUNS}/${id}/replay`, {}),
    [`GET ${RUNS}/{id}/queries`]: (who, id) => ask(who, 'GET', `${RUNS}/${id}/queries`),
    [`GET ${RUNS}/{id}/queries/{name}`]: (who, id) => ask(who, 'GET', `${RUNS}/${id}/queries/total`),
    [`GET ${RUNS}/{id}/result`]: (who, id) => ask(who, 'GET', `${RUNS}/${id}/result`),
    [`GET ${RUNS}/dead-letters/{id}`]: (who, id) => ask(who, 'GET', `${RUNS}/dead-letters/${id}`),
    [`DELETE ${RUNS}/dead-letters/{id}`]: (who, id) => ask(who, 'DELETE', `${RUNS}/dead-letters/${id}`),
    [`POST ${RUNS}/dead-letters/{id}/retry`]: (who, id) => ask(who, 'POST', `${RUNS}/dead-letters/${id}/retry`),
  }

  it('includes runs of workflows: other principals get 404 on every route, as for an unknown id, and do not see them in lists', async () => {
    const id = await run(anna)
    const before = (await statusOf(anna, id)).json
    for (const [route, named] of Object.entries(RUN_ROUTES)) {
      const [theirs, nobodys] = [await named(ben, id), await named(ben, 'nobody')]
      expect(theirs.status, route).to.equal(404)
      expect(theirs.text.replaceAll(id, '<id>'), route).to.equal(nobodys.text.replaceAll('nobody', '<id>'))
    }
    const runsOf = async (who: Person) =>
      ((await ask(who, 'GET', `${RUNS}/runs`)).json.runs as { workflow_id: string }[]).map(item => item.workflow_id)
    expect(await runsOf(ben)).to.deep.equal([])
    expect((await statusOf(anna, id)).json, 'and nothing happened to it')
      .to.include({ status: before.status })
      .and.deep.include({ error: null })
    for (const who of [anna, admin, key]) {
      expect(await runsOf(who)).to.include(id)
      expect((await statusOf(who, id)).status).to.equal(200)
    }
    const answer = RUN_ROUTES[`POST ${RUNS}/{id}/answer`]!
    expect((await answer(admin, id)).json).to.deep.equal({ success: true })
  })

  it('is every run that a route can name', async () => {
    const { json } = await ask(key, 'GET', '/openapi.json')
    const named = Object.entries(json.paths as Record<string, object>).flatMap(([path, methods]) =>
      [RUNS, `${RUNS}/dead-letters`].some(before => path.startsWith(`${before}/{`))
        ? Object.keys(methods).map(method => `${method.toUpperCase()} ${path}`)
        : []
    )
    expect(named).to.have.members(Object.keys(RUN_ROUTES))
  })

  it('covers questions about tools: no other principal can answer one, or find out that it exists', async () => {
    const client = createClient(service.url, { keepAlive: false })
    const body = { message: '/tool whereabouts {}', interactive: true }
    const stream = await client.stream({ method: 'POST', path: '/api/v1/chat/stream', headers: anna, body })
    const events = await stream.until('ask')
    const idOf = (at: number, name: string) => (events.at(at)!.data as Record<string, unknown>)[name]
    const asked = { request_id: idOf(0, 'request_id'), call_id: idOf(-1, 'call_id') }
    const say = (who: Person, question: object) => ask(who, 'POST', '/api/v1/chat/answer', { ...question, allow: true })
    const unknown = await say(anna, { ...asked, request_id: 'no-such-request' })
    for (const who of [ben, admin, key]) {
      const theirs = await say(who, asked)
      expect([theirs.status, theirs.text]).to.deep.equal([404, unknown.text])
    }
    expect((await say(anna, asked)).json).to.deep.equal({ success: true })
    const result = (await stream.rest()).events.find(event => event.event === 'tool_result')
    expect(result?.data).to.include({ success: true })
  })

  it('appears with the name of its owner in the access log, the request hook and the hooks of its turn', async () => {
    const id = 'named-all-along'
    const headers = { ...anna, 'x-request-id': id }
    expect((await ask(headers, 'POST', '/api/v1/chat', { message: '/tool current_time {}' })).status).to.equal(200)
    for (const last of ['http.done', 'chat.end'])
      await service.seen(new RegExp(`"hook":"${last}","witnessed":"[^"]*","of":"${id}"`))
    await service.seen(new RegExp(`"request_id":"${id}".*"msg":"request"`))
    const written = service
      .output()
      .split('\n')
      .filter(line => line.includes(id))
    const lines = written.map(line => JSON.parse(line) as Record<string, unknown>)
    const witnessed = lines.filter(line => line.hook !== undefined)
    expect(new Set(witnessed.map(line => line.hook))).to.deep.equal(
      new Set(['chat.turn', 'model_calls.modelDone', 'chat.toolCall', 'chat.end', 'http.done'])
    )
    const logged = lines.filter(line => line.msg === 'request')
    expect(logged.map(line => [line.route, line.principal])).to.deep.equal([['/api/v1/chat', 'token:anna']])
    expect(new Set(witnessed.map(line => line.witnessed))).to.deep.equal(new Set(['token:anna']))
  })

  it('is alone in the list of its owner; the scope admin and the API key see all', async () => {
    const ids = { anna: await begin(anna), ben: await begin(ben), key: await begin(key) }
    expect(await listed(anna))
      .to.include(ids.anna)
      .and.not.include(ids.ben)
      .and.not.include(ids.key)
    expect(await listed(ben))
      .to.include(ids.ben)
      .and.not.include(ids.anna)
      .and.not.include(ids.key)
    for (const who of [admin, key]) expect(await listed(who)).to.include.members(Object.values(ids))
  })

  it('is not listed for another principal, even with a cursor of the API key', async () => {
    for (let at = 0; at < 3; at++) await begin(anna)
    const { json } = await ask(key, 'GET', `${PATH}?limit=1`)
    const { status, json: page } = await ask(
      ben,
      'GET',
      `${PATH}?limit=200&cursor=${encodeURIComponent(String(json.next_cursor))}`
    )
    const mine = await listed(ben)
    expect(status).to.be.oneOf([200, 400])
    for (const conversation of (page.conversations ?? []) as { conversation_id: string }[])
      expect(mine).to.include(conversation.conversation_id)
  })

  it('stays with the owner when a principal with the scope admin writes to it', async () => {
    const id = await begin(anna)
    await ROUTES['POST /api/v1/chat']!(admin, id)
    expect((await ask(anna, 'GET', `${PATH}/${id}`)).json).to.include({ message_count: 4 })
  })

  it('is the same for two tokens of one name, so that a token can be renewed', async () => {
    const id = await begin(anna)
    const { out } = await runSvc(['tokens', 'create', '--name', 'anna'], { home: service.home })
    const renewed = { authorization: `Bearer ${out.trim()}` }
    expect((await ask(renewed, 'GET', `${PATH}/${id}`)).status).to.equal(200)
  })
})
