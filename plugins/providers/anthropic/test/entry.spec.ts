import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { formatError } from '@svc/core'
import { ask, failureOf, testContext } from '@svc/testing'
import { expect } from 'chai'
import { SUPPORTS } from '../src/traits.ts'
import { openAnthropic, openProviders, to, offered } from './support/anthropic.ts'
import { KEY, openMessagesApi } from './support/messages-api.ts'

const WITHOUT_SAMPLING = SUPPORTS.filter(feature => !['top_p', 'top_k'].includes(feature))

describe('provider-anthropic, its models', () => {
  const page = (ids: readonly string[], has_more: boolean) => ({
    data: ids.map(id => ({ type: 'model', id })),
    has_more,
    last_id: ids.at(-1),
  })
  const listing = async (pages: (at: number) => object) => {
    await using upstream = await openMessagesApi()
    let at = 0
    upstream.answer((_, reply) => reply.json(200, pages(at++)))
    await using opened = await openAnthropic(upstream.url)
    return { list: await opened.provider.models(testContext()), paths: upstream.received.map(request => request.path) }
  }

  it('reads page after page', async () => {
    const { list, paths } = await listing(at => page(at === 0 ? ['a', 'b&c'] : ['d'], at === 0))
    expect(list).to.deep.equal({ models: [{ id: 'a' }, { id: 'b&c' }, { id: 'd' }], open: true })
    expect(paths).to.deep.equal(['/v1/models?limit=1000', '/v1/models?limit=1000&after_id=b%26c'])
  })

  it('stops after ten pages of a list without end', async () => {
    expect((await listing(at => page([`m${at}`], true))).list.models).to.have.lengthOf(10)
  })

  it('takes limits and abilities from the list, and passes by what is no model', async () => {
    const types = { adaptive: { supported: true }, enabled: { supported: false } }
    const capabilities = { image_input: { supported: false }, thinking: { supported: true, types } }
    const data = [{ id: 'a', max_input_tokens: 10, max_tokens: 5, capabilities }, { id: '' }, null, { id: 'b', max_tokens: null }]
    expect((await listing(() => ({ data, has_more: false }))).list.models).to.deep.equal([
      { id: 'a', context: 10, output: 5, features: { vision: false, supports: WITHOUT_SAMPLING }, temperature: false },
      { id: 'b' },
    ])
  })

  it('asks for as many tokens as the model can say, once its list is known', async () => {
    await using upstream = await openMessagesApi()
    await using opened = await openAnthropic(upstream.url)
    await opened.provider.models(testContext())
    await ask(opened.provider, to('plain'))
    expect((upstream.received.at(-1)!.body as { max_tokens: number }).max_tokens).to.equal(64_000)
  })

  it('is probed by its list, never by a call that costs', async () => {
    await using upstream = await openMessagesApi()
    await using opened = await openAnthropic(upstream.url)
    await opened.provider.probe(testContext())
    expect(upstream.received.map(request => `${request.method} ${request.path}`)).to.deep.equal(['GET /v1/models?limit=1'])
  })
})

describe('provider-anthropic, its entry', () => {
  it('takes an address with or without the version, and headers of its own', async () => {
    await using upstream = await openMessagesApi()
    for (const base_url of [upstream.url, `${upstream.url}/`, `${upstream.url}/v1`, `${upstream.url}/v1/`]) {
      await using opened = await openAnthropic(base_url, { headers: { 'Anthropic-Beta': 'x-1' } })
      await ask(opened.provider, to('plain'))
      expect(upstream.received.at(-1)!.headers['anthropic-beta']).to.equal('x-1')
    }
  })

  it('marks the prompt for the cache, unless it says otherwise', async () => {
    await using upstream = await openMessagesApi()
    const marked = async (more: object) => {
      await using opened = await openAnthropic(upstream.url, more)
      await ask(opened.provider, to('plain', { tools: offered }))
      return JSON.stringify(upstream.received.at(-1)!.body).includes('"cache_control":{"type":"ephemeral"}')
    }
    expect([await marked({}), await marked({ prompt_cache: false })]).to.deep.equal([true, false])
  })

  it('stands side by side with others of its kind', async () => {
    await using messagesApi = await openMessagesApi()
    await using other = await openMessagesApi()
    await using opened = await openProviders({
      one: { base_url: messagesApi.url },
      other: { base_url: other.url, models: ['plain'] },
    })
    await ask(opened.named('one'), to('plain'))
    const { message } = await failureOf(ask(opened.named('other'), to('fail-overloaded')))
    expect([messagesApi.received.length, other.received.length]).to.deep.equal([1, 1])
    expect(message).to.match(/^other: /)
  })

  it('wants a key where it asks the real server', async () => {
    const error = await failureOf(openProviders({ anthropic: { api_key_env: 'SVC_TEST_UNSET' } }))
    expect(formatError(error)).to.include('the variable SVC_TEST_UNSET is not set').and.include('api_key_file')
  })

  it('reads the key from a file, and tells it in no error, figure or list', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'svc-anthropic-'))
    await writeFile(join(folder, 'key'), `${KEY}\n`)
    await using upstream = await openMessagesApi()
    await using opened = await openProviders({
      a: { api_key_env: undefined, api_key_file: join(folder, 'key'), base_url: upstream.url },
    })
    const reported: string[] = []
    for (const model of ['fail-authentication', 'fail-bad_request', 'unknown', 'fail-network']) {
      const error = await failureOf(ask(opened.provider, to(model)))
      reported.push(formatError(error), JSON.stringify(error), JSON.stringify(error.details), String(error.stack))
    }
    reported.push(JSON.stringify([await opened.provider.models(testContext()), opened.provider.features]))
    expect(reported.join('\n')).to.not.include(KEY)
    expect(upstream.received.every(request => request.headers['x-api-key'] === KEY && !request.path.includes(KEY))).to.equal(true)
    await rm(folder, { recursive: true })
  })
})
