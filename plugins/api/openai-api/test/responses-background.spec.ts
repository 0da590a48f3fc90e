import { setTimeout as sleep } from 'node:timers/promises'
import { systemContext } from '@svc/core'
import { Jobs, type Provider, Providers } from '@svc/core/contracts'
import { item } from '@svc/testing'
import { expect } from 'chai'
import { startApi, type Tree } from './support/api.ts'
import { fn, says, startResponses, textOf } from './support/responses.ts'

/** A provider whose model has no strict tools, and a limit. */
const PLAIN: Provider = {
  features: { streaming: true, tool_calling: true, vision: false },
  models: async () => ({ models: [{ id: 'p', output: 100 }], open: false }),
  async *chat() {
    yield { type: 'text', text: 'x' }
    yield { type: 'usage', usage: { input: 1, output: 1 } }
    yield { type: 'finish', reason: 'stop' }
  },
  countTokens: async () => 1,
  probe: async () => undefined,
}

type Started = Awaited<ReturnType<typeof startResponses>>
const SLOW = 'one two three four five six seven eight nine ten\n/pace 60000'
const ctx = systemContext(new AbortController().signal, 'test')

describe('a response in the background', () => {
  let api: Started
  before(async () => {
    api = await startResponses({ give: [item(Providers, 'plain', PLAIN)] })
  })
  after(() => api[Symbol.asyncDispose]())
  const queued = async (body: Tree) => {
    const { status, body: made, text } = await api.respond({ background: true, ...body })
    expect(status, text).to.equal(200)
    return made
  }
  const until = async (id: string, isThere: (body: Tree) => boolean) => {
    for (;;) {
      const { body } = await api.get(id)
      if (isThere(body)) return body
      await sleep(50)
    }
  }
  const ended = (id: string) => until(id, ({ status }) => status !== 'queued' && status !== 'in_progress')

  it('is queued, can be polled, and ends like any other', async () => {
    const made = await queued({ input: 'hello', metadata: { a: 'b' }, tools: [fn('f')] })
    expect(made).to.deep.include({ status: 'queued', background: true, store: true, output: [], usage: null })
    const done = await ended(made.id)
    expect(done).to.deep.include({ status: 'completed', metadata: { a: 'b' }, id: made.id, created_at: made.created_at })
    expect(textOf(done)).to.equal('You said: hello')
    expect(done.usage.total_tokens).to.be.greaterThan(0)
    const next = await api.respond({ input: 'more', previous_response_id: made.id })
    expect(textOf(next.body)).to.equal('You said: more (turn 2)')
    expect((await api.get(made.id, '/input_items')).body.data).to.have.length(1)
  })

  it('continues another one, and takes references to items', async () => {
    const first = (await api.respond({ input: '/tool f {"a":"x"}', tools: [fn('f')], store: true })).body
    const [call] = first.output
    const result = { type: 'function_call_output', call_id: call.call_id, output: 'done' }
    const chained = await ended((await queued({ input: [result], tools: [fn('f')], previous_response_id: first.id })).id)
    expect([chained.error, textOf(chained)]).to.deep.equal([null, 'f answered: done\nDone.'])
    const input = [says('user', '/tool f {"a":"x"}'), { type: 'item_reference', id: call.id }, result]
    const { id } = await queued({ input, tools: [fn('f')] })
    expect(textOf(await ended(id))).to.equal(textOf(chained))
    const items = (await api.get(id, '/input_items?order=asc')).body.data
    expect(items.map(({ type }: Tree) => type)).to.deep.equal(['message', 'function_call', 'function_call_output'])
  })

  it('streams its events, and again from any of them', async () => {
    const stream = await api.stream({ input: 'hello', background: true })
    expect(stream.types.slice(0, 3)).to.deep.equal(['response.created', 'response.queued', 'response.in_progress'])
    expect([stream.types.at(-1), stream.isDone]).to.deep.equal(['response.completed', true])
    expect(stream.events.map(({ sequence_number }) => sequence_number)).to.deep.equal(stream.events.map((_, at) => at))
    const { id } = stream.response
    expect((await api.again(id)).events).to.deep.equal(stream.events)
    expect((await api.again(id, '&starting_after=4')).events).to.deep.equal(stream.events.slice(5))
    const past = await api.again(id, '&starting_after=100000')
    expect([past.status, past.events.length, past.isDone]).to.deep.equal([200, 0, true])
    const bad = await api.get(id, '?stream=true&starting_after=-1')
    expect([bad.status, bad.body.error.param]).to.deep.equal([400, 'starting_after'])
    expect((await api.get(id)).body).to.deep.equal(stream.response)
  })

  it('can be read while it is made', async () => {
    const { id } = await queued({ input: SLOW.replace('60000', '100') })
    await until(id, ({ status }) => status === 'in_progress')
    const { events, response } = await api.again(id)
    expect(events.map(({ sequence_number }) => sequence_number)).to.deep.equal(events.map((_, at) => at))
    expect(response.status).to.equal('completed')
  })

  it('is cancelled while it runs, and stays so; a reader learns of it', async () => {
    const { id } = await queued({ input: SLOW })
    await until(id, ({ status }) => status === 'in_progress')
    const reading = api.again(id)
    const { status, body } = await api.cancel(id)
    expect([status, body.status, body.error]).to.deep.equal([200, 'cancelled', null])
    const { types, response, isDone } = await reading
    expect([types.at(-1), response.status, isDone]).to.deep.equal(['response.failed', 'cancelled', true])
    expect((await api.get(id)).body.status).to.equal('cancelled')
    expect((await api.cancel(id)).body.status).to.equal('cancelled')
    expect((await api.respond({ input: 'x', previous_response_id: id })).status).to.equal(404)
  })

  it('is unchanged by a cancel after its end', async () => {
    const { id } = await queued({ input: 'hello' })
    const done = await ended(id)
    expect(await api.cancel(id)).to.deep.include({ status: 200, body: done })
  })

  it('can be deleted while it runs, with its job', async () => {
    const { id } = await queued({ input: SLOW })
    await until(id, ({ status }) => status === 'in_progress')
    expect((await api.remove(id)).status).to.equal(200)
    expect((await api.get(id)).status).to.equal(404)
    const [job] = (await api.host.service(Jobs).list({ limit: 1 }, ctx)).jobs
    expect(job!.state).to.equal('cancelled')
  })

  it('fails with the error of the model', async () => {
    const { id } = await queued({ input: 'one two\n/fail network after 2' })
    const failed = await ended(id)
    expect([failed.status, failed.error.code, textOf(failed)]).to.deep.equal(['failed', 'upstream_error', 'You said'])
    expect((await api.again(id)).types.at(-1)).to.equal('response.failed')
  })

  it('has failed if its job has ended without it', async () => {
    const { id } = await queued({ input: SLOW })
    await until(id, ({ status }) => status === 'in_progress')
    const jobs = api.host.service(Jobs)
    const [job] = (await jobs.list({ limit: 1 }, ctx)).jobs
    await jobs.cancel(job!.id, ctx)
    expect((await api.get(id)).body.status).to.equal('cancelled')
  })

  it('lists the fields that its model does not get when it is queued, as one in the foreground does', async () => {
    const tools = [fn('f', { strict: true })]
    const body = { input: 'x', user: 'u', max_output_tokens: 5_000, tools }
    const dropped = async (more: Tree) => {
      const { status, headers, text } = await api.respond({ ...body, ...more })
      expect(status, text).to.equal(200)
      return headers.get('x-svc-dropped')
    }
    for (const [model, expected] of [
      ['plain/p', 'max_output_tokens, tools.strict, user'],
      ['local/local-1', 'max_output_tokens, user'],
      ['fast', 'max_output_tokens, user'],
      ['profile:default', 'max_output_tokens, user'],
    ]) {
      expect(await dropped({ model, background: true }), model).to.equal(expected)
      expect(await dropped({ model, store: false }), model).to.equal(expected)
    }
    expect((await api.stream({ ...body, model: 'plain/p', background: true })).headers.get('x-svc-dropped')).to.equal(
      'max_output_tokens, tools.strict, user'
    )
    expect((await api.respond({ input: 'x', background: true })).headers.get('x-svc-dropped')).to.equal(null)
  })

  it('is refused at once if the request is not valid', async () => {
    const refused = async (more: Tree) => {
      const { status, body } = await api.respond({ input: 'x', background: true, ...more })
      return [status, body.error.code, body.error.param]
    }
    expect(await refused({ store: false })).to.deep.equal([400, 'invalid_value', 'background'])
    expect(await refused({ model: 'nope' })).to.deep.equal([404, 'model_not_found', 'model'])
    expect(await refused({ frequency_penalty: 1 })).to.deep.equal([400, 'unsupported_parameter', 'frequency_penalty'])
    expect(await refused({ model: 'profile:default', top_logprobs: 1 })).to.deep.equal([
      400,
      'unsupported_parameter',
      'top_logprobs',
    ])
    expect(await refused({ temperature: 9 })).to.deep.equal([400, 'invalid_value', 'temperature'])
    const result = { type: 'function_call_output', call_id: 'c', output: '' }
    expect(await refused({ input: [result] })).to.deep.equal([400, 'invalid_value', 'input[0].call_id'])
  })
})

it('a server without jobs refuses background responses by name', async () => {
  await using api = await startApi()
  const { status, body } = await api.post('/v1/responses', { model: 'local/local-1', input: 'x', background: true })
  expect([status, body.error.code, body.error.param]).to.deep.equal([400, 'unsupported_parameter', 'background'])
  expect((await api.post('/v1/responses', { model: 'local/local-1', input: 'x', store: true })).status).to.equal(200)
})
