import { systemContext } from '@svc/core'
import { Conversations, type Json, Store } from '@svc/core/contracts'
import { expect } from 'chai'
import { ResponseStore } from '../src/responses/store.ts'
import type { Tree } from './support/api.ts'
import { as, principals } from './support/principals.ts'
import { fn, says, startResponses, textOf } from './support/responses.ts'

type Started = Awaited<ReturnType<typeof startResponses>>
const AUTH = { give: [principals], config: { server: { auth: { enabled: true } } } }
const ctx = systemContext(new AbortController().signal, 'test')

describe('a stored response', () => {
  let api: Started
  before(async () => {
    api = await startResponses({ plugins: ['rest'] })
  })
  after(() => api[Symbol.asyncDispose]())
  const stored = async (body: Tree) => {
    const { status, body: made, text } = await api.respond({ store: true, ...body })
    expect(status, text).to.equal(200)
    return made
  }
  const missing = async (asked: Promise<{ status: number; body: Tree }>) => {
    const { status, body } = await asked
    return [status, body.error?.code, body.error?.param]
  }

  it('can be read as it was answered, and deleted', async () => {
    const made = await stored({ input: 'hello', metadata: { a: 'b' } })
    expect(made.store).to.equal(true)
    expect((await api.get(made.id)).body).to.deep.equal(made)
    expect(await api.remove(made.id)).to.deep.equal({ status: 200, body: { id: made.id, object: 'response', deleted: true } })
    const gone = [404, 'response_not_found', 'response_id']
    expect(await missing(api.get(made.id))).to.deep.equal(gone)
    expect(await missing(api.remove(made.id))).to.deep.equal(gone)
    expect(await missing(api.get(made.id, '/input_items'))).to.deep.equal(gone)
    expect(await missing(api.cancel(made.id))).to.deep.equal(gone)
  })

  it('is stored before its stream says that it is complete', async () => {
    const { response } = await api.stream({ input: 'hello', store: true })
    expect((await api.get(response.id)).body).to.deep.equal(response)
  })

  it('cannot be cancelled or streamed again unless it was made in the background', async () => {
    const { id } = await stored({ input: 'x' })
    expect(await missing(api.cancel(id))).to.deep.equal([400, 'invalid_value', 'response_id'])
    expect(await missing(api.get(id, '?stream=true'))).to.deep.equal([400, 'invalid_value', 'response_id'])
  })

  it('lists its input items, newest first, in pages', async () => {
    const { id } = await stored({ input: [says('user', 'a'), says('assistant', 'b'), says('user', 'c')] })
    const texts = ({ data }: Tree) => data.map(({ content }: Tree) => content[0].text)
    const all = (await api.get(id, '/input_items')).body
    expect(all).to.include({ object: 'list', has_more: false, first_id: all.data[0].id, last_id: all.data[2].id })
    expect(texts(all)).to.deep.equal(['c', 'b', 'a'])
    expect(all.data[0]).to.deep.include({ type: 'message', role: 'user', status: 'completed' })
    const first = (await api.get(id, '/input_items?order=asc&limit=2')).body
    expect([texts(first), first.has_more]).to.deep.equal([['a', 'b'], true])
    const rest = (await api.get(id, `/input_items?order=asc&limit=2&after=${first.last_id}`)).body
    expect([texts(rest), rest.has_more]).to.deep.equal([['c'], false])
    for (const [query, param] of [
      ['limit=0', 'limit'],
      ['limit=x', 'limit'],
      ['order=up', 'order'],
      ['after=nope', 'after'],
    ])
      expect(await missing(api.get(id, `/input_items?${query}`))).to.deep.equal([400, 'invalid_value', param])
  })

  it('can be continued, also twice and with the result of a call; its instructions do not carry over', async () => {
    const first = await stored({ input: '/tool f {"a":"x"}', tools: [fn('f')], instructions: 'be brief' })
    const [call] = first.output
    const result = [{ type: 'function_call_output', call_id: call.call_id, output: 'done' }]
    const next = { previous_response_id: first.id, tools: [fn('f')] }
    const second = await stored({ ...next, input: result })
    expect(textOf(second)).to.include('f answered: done')
    expect([second.previous_response_id, second.instructions]).to.deep.equal([first.id, null])
    expect(textOf(await stored({ input: 'and now?', previous_response_id: second.id }))).to.equal('You said: and now? (turn 2)')
    const branch = await api.respond({ ...next, input: result, store: false })
    expect(textOf(branch.body)).to.equal(textOf(second))
    expect(await missing(api.respond({ ...next, input: [{ ...result[0], call_id: 'other' }] }))).to.deep.equal([
      400,
      'invalid_value',
      'input[0].call_id',
    ])
  })

  it('is a conversation: one for a chain, another for a branch, gone with its last response', async () => {
    const list = async () => (await api.api.get('/api/v1/conversations')).body.conversations as Tree[]
    const read = async (id: string) => (await api.api.get(`/api/v1/conversations/${id}`)).body as Tree
    const before = new Set((await list()).map(({ conversation_id: id }) => id))
    const added = async () => (await list()).filter(({ conversation_id: id }) => !before.has(id))
    const first = await stored({ input: 'one' })
    const second = await stored({ input: 'two', previous_response_id: first.id })
    const [only, ...none] = await added()
    expect(none).to.deep.equal([])
    expect((await read(only!.conversation_id)).messages.map(({ role, content }: Tree) => [role, content])).to.deep.equal([
      ['user', 'one'],
      ['assistant', 'You said: one'],
      ['user', 'two'],
      ['assistant', 'You said: two (turn 2)'],
    ])
    const branch = await stored({ input: 'three', previous_response_id: first.id })
    expect(await added()).to.have.length(2)
    await api.remove(branch.id)
    await api.remove(first.id)
    expect((await added()).map(({ conversation_id: id }) => id)).to.deep.equal([only!.conversation_id])
    await api.remove(second.id)
    expect(await added()).to.deep.equal([])
  })

  it('is gone with its conversation', async () => {
    const made = await stored({ input: 'one' })
    const conversations = api.host.service(Conversations)
    const [latest] = (await conversations.list({ limit: 1 }, ctx)).conversations
    await conversations.delete(latest!.id, ctx)
    expect(await missing(api.respond({ input: 'x', previous_response_id: made.id }))).to.deep.equal([
      404,
      'previous_response_not_found',
      'previous_response_id',
    ])
    expect((await api.get(made.id)).status).to.equal(404)
  })

  it('cannot be continued after it, or one before it, was deleted', async () => {
    const first = await stored({ input: 'one' })
    const second = await stored({ input: 'two', previous_response_id: first.id })
    await api.remove(first.id)
    expect((await missing(api.respond({ input: 'x', previous_response_id: second.id })))[1]).to.equal(
      'previous_response_not_found'
    )
    for (const previous_response_id of ['resp_x', `resp_${'0'.repeat(32)}`, '', '__proto__'])
      expect((await missing(api.respond({ input: 'x', previous_response_id })))[1]).to.equal('previous_response_not_found')
  })

  it('is not made of a request without store: true, and nothing of such a request is kept', async () => {
    const { host } = api
    const kept = async () => {
      const collections = ['openai_responses', 'openai_response_data', 'openai_conversations', 'conversations']
      return Promise.all(
        collections.map(async name => (await host.service(Store).range(name, { limit: 500 }, ctx)).records.length)
      )
    }
    const before = await kept()
    for (const more of [{}, { store: null }, { store: false }]) {
      const { body } = await api.respond({ input: 'secret words', ...more })
      const { response } = await api.stream({ input: 'secret words', ...more })
      for (const { id, store, output } of [body, response]) {
        expect(store).to.equal(false)
        expect((await api.get(id)).status).to.equal(404)
        expect((await missing(api.respond({ input: 'x', previous_response_id: id })))[1]).to.equal('previous_response_not_found')
        const refused = await api.respond({ input: [{ type: 'item_reference', id: output[0].id }] })
        expect([refused.status, refused.body.error.code]).to.deep.equal([404, 'item_not_found'])
        expect(refused.body.error.message).to.contain('send store: true')
      }
    }
    expect(await kept()).to.deep.equal(before)
  })

  it('is not made where items of requests without store are kept for references, nor of those of store: false', async () => {
    await using keeping = await startResponses({ config: { api: { openai: { responses: { keep_items_minutes: 60 } } } } })
    const asked = { input: '/tool f {"a":"x"}', tools: [fn('f')] }
    const open = (await keeping.respond(asked)).body
    expect(open.store).to.equal(false)
    expect((await keeping.get(open.id)).status).to.equal(404)
    expect((await missing(keeping.respond({ input: 'x', previous_response_id: open.id })))[1]).to.equal(
      'previous_response_not_found'
    )
    const [call] = open.output
    const rest = [
      { type: 'item_reference', id: call.id },
      { type: 'function_call_output', call_id: call.call_id, output: 'done' },
    ]
    const next = await keeping.respond({ ...asked, input: [says('user', asked.input), ...rest] })
    expect(textOf(next.body)).to.include('f answered: done')
    const closed = (await keeping.respond({ ...asked, store: false })).body
    const refused = keeping.respond({ ...asked, input: [{ type: 'item_reference', id: closed.output[0].id }] })
    expect(await missing(refused)).to.deep.equal([404, 'item_not_found', 'input[0].id'])
  })
})

describe('stored responses', () => {
  it('are only for their owner: others, also administrators, get the answer for unknown ids', async () => {
    await using api = await startResponses(AUTH)
    const { body } = await api.respond({ input: 'mine', store: true }, as('ann'))
    const background = (await api.respond({ input: 'mine', background: true }, as('ann'))).body
    expect(background.status).to.equal('queued')
    for (const who of ['bob', 'root'])
      for (const { id } of [body, background]) {
        const unknown = `resp_${'1'.repeat(32)}`
        const same = async (ask: (id: string) => Promise<{ status: number; body: Tree }>) => {
          const [other, none] = [await ask(id), await ask(unknown)]
          expect(other.status, `${who} ${String(ask)} ${JSON.stringify(other.body).slice(0, 300)}`).to.equal(404)
          expect(JSON.stringify(other.body).replaceAll(id, unknown)).to.equal(JSON.stringify(none.body))
        }
        await same(it => api.get(it, '', as(who)))
        await same(it => api.get(it, '?stream=true', as(who)))
        await same(it => api.get(it, '/input_items', as(who)))
        await same(it => api.cancel(it, as(who)))
        await same(it => api.remove(it, as(who)))
        await same(it => api.respond({ input: 'x', previous_response_id: it }, as(who)))
      }
    const reference = [{ type: 'item_reference', id: body.output[0].id }]
    expect((await api.respond({ input: reference }, as('bob'))).status).to.equal(404)
    expect((await api.respond({ input: reference }, as('ann'))).status).to.equal(200)
    expect((await api.get(body.id, '', as('ann'))).status).to.equal(200)
    expect((await api.get(body.id)).body.error.code).to.equal('invalid_api_key')
  })

  it('are continued in a chain of 200, all in one conversation', async () => {
    await using api = await startResponses()
    let previous_response_id: string | undefined
    for (let turn = 1; turn <= 200; turn++) {
      const { body } = await api.respond({ input: 'more', store: true, previous_response_id })
      if (turn > 1) expect(textOf(body)).to.equal(`You said: more (turn ${turn})`)
      previous_response_id = body.id
    }
    const { conversations } = await api.host.service(Conversations).list({ limit: 10 }, ctx)
    expect(conversations.map(({ messageCount }) => messageCount)).to.deep.equal([400])
  })

  it('are limited in number and size', async () => {
    await using api = await startResponses({
      ...AUTH,
      config: { ...AUTH.config, api: { openai: { responses: { max_stored: 2, max_size: 2_000 } } } },
    })
    const store = async (who: string, input = 'x') => (await api.respond({ input, store: true }, as(who))).status
    expect([await store('ann'), await store('ann'), await store('ann'), await store('bob')]).to.deep.equal([200, 200, 429, 200])
    const { body } = await api.respond({ input: 'x', store: true }, as('ann'))
    expect(body.error).to.include({ code: 'stored_responses_limit', param: 'store' })
    const large = await api.respond({ input: 'x'.repeat(2_001), store: true }, as('bob'))
    expect([large.status, large.body.error.code]).to.deep.equal([400, 'input_too_large'])
    expect((await api.respond({ input: 'x'.repeat(2_001) }, as('bob'))).status).to.equal(200)
    expect((await api.respond({ input: 'x', store: false }, as('ann'))).status).to.equal(200)
  })

  it('expire, and are then deleted with their conversations', async () => {
    await using api = await startResponses({ config: { api: { openai: { responses: { keep_items_minutes: 60 } } } } })
    const { body } = await api.respond({ input: 'x', store: true })
    await api.respond({ input: 'x' })
    const store = api.host.service(Store)
    const conversations = api.host.service(Conversations)
    const { records } = await store.range('openai_responses', { limit: 10 }, ctx)
    const left = records.map(({ value }) => Math.round(((value as { expires: number }).expires - Date.now()) / 60_000))
    expect(left.toSorted((a, b) => a - b)).to.deep.equal([60, 30 * 24 * 60])
    for (const { key, value } of records) {
      const expired = { ...(value as object), expires: Date.now() - 1 } as Json
      await store.batch([{ op: 'put', collection: 'openai_responses', key, value: expired }], {}, ctx)
    }
    expect((await api.get(body.id)).status).to.equal(404)
    const responses = new ResponseStore({ store, conversations, maxStored: 1, lasting: ctx })
    expect(await responses.sweep()).to.equal(true)
    for (const collection of ['openai_responses', 'openai_response_data', 'openai_conversations', 'conversations'])
      expect((await store.range(collection, { limit: 10 }, ctx)).records).to.deep.equal([])
  })
})

describe('a store that is full', () => {
  it('fails responses that are to be stored, never after they were said to be complete; others are answered', async () => {
    await using api = await startResponses({ config: { store: { max_bytes: 1_048_576, evict: false } } })
    const input = 'x'.repeat(400_000)
    let status = 200
    while (status === 200) status = (await api.respond({ input, store: true })).status
    expect(status).to.be.greaterThan(499)
    const { types, response, events, isDone } = await api.stream({ input, store: true })
    expect([types.at(-1), response.status, isDone]).to.deep.equal(['response.failed', 'failed', true])
    expect(response.error).to.have.keys('code', 'message')
    expect(types).to.not.include('response.completed')
    expect(events.map(({ sequence_number }) => sequence_number)).to.deep.equal(events.map((_, at) => at))
    expect((await api.respond({ input })).status).to.equal(200)
    expect((await api.respond({ input, store: false })).status).to.equal(200)
  })
})
