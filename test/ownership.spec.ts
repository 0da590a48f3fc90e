import { rm } from 'node:fs/promises'
import { expect } from 'chai'
import { runSvc } from './support/command.ts'
import { newHome, type Service, startService } from './support/service.ts'

const KEY = 'the-key-of-the-house'
const PATH = '/api/v1/conversations'

interface Answer {
  readonly status: number
  readonly text: string
  readonly json: Record<string, unknown>
}

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
      const { out } = await runSvc(['tokens', 'create', ...args], { home })
      return { authorization: `Bearer ${out.trim()}` }
    }
    anna = await token('--name', 'anna')
    ben = await token('--name', 'ben')
    admin = await token('--name', 'root', '--scope', 'chat,admin')
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
    return { status: response.status, text, json: text.startsWith('{') ? (JSON.parse(text) as Record<string, unknown>) : {} }
  }
  const begin = async (who: Person) => {
    const { json } = await ask(who, 'POST', '/api/v1/chat', { message: 'hello' })
    return String(json.conversation_id)
  }
  const listed = async (who: Person) => {
    const { json } = await ask(who, 'GET', `${PATH}?limit=200`)
    return (json.conversations as { conversation_id: string }[]).map(one => one.conversation_id)
  }

  /** Every route that a conversation can be named to. */
  const ROUTES: Record<string, (who: Person, id: string) => Promise<Answer>> = {
    'POST /api/v1/chat': (who, id) => ask(who, 'POST', '/api/v1/chat', { message: 'hi', conversation_id: id }),
    'POST /api/v1/chat/stream': (who, id) => ask(who, 'POST', '/api/v1/chat/stream', { message: 'hi', conversation_id: id }),
    'POST /api/v1/conversations': (who, id) => ask(who, 'POST', PATH, { message: 'hi', conversation_id: id }),
    'GET /api/v1/conversations/{id}': (who, id) => ask(who, 'GET', `${PATH}/${id}`),
    'DELETE /api/v1/conversations/{id}': (who, id) => ask(who, 'DELETE', `${PATH}/${id}`),
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
      for (const who of [anna, admin, key]) expect((await named(who, await begin(anna))).status).to.be.oneOf([200, 204])
    })
  }

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

  it('does not come out with a cursor of somebody who sees all', async () => {
    for (let at = 0; at < 3; at++) await begin(anna)
    const { json } = await ask(key, 'GET', `${PATH}?limit=1`)
    const { status, json: page } = await ask(
      ben,
      'GET',
      `${PATH}?limit=200&cursor=${encodeURIComponent(String(json.next_cursor))}`
    )
    const mine = await listed(ben)
    expect(status).to.be.oneOf([200, 400])
    for (const one of (page.conversations ?? []) as { conversation_id: string }[]) expect(mine).to.include(one.conversation_id)
  })

  it('stays with the owner when somebody with the scope admin writes into it', async () => {
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
