import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { formatError } from '@svc/core'
import { ask, failureOf, testContext } from '@svc/testing'
import { expect } from 'chai'
import { KEY, openGeminiApi } from './support/gemini-api.ts'
import { openGoogle, openProviders, to } from './support/google.ts'

describe('provider-google, its models', () => {
  const listing = async (pages: (at: number) => object) => {
    await using upstream = await openGeminiApi()
    let at = 0
    upstream.answer((_, reply) => reply.json(200, pages(at++)))
    await using opened = await openGoogle(upstream.url)
    return { list: await opened.provider.models(testContext()), paths: upstream.received.map(request => request.path) }
  }

  it('are those that generate content or make embeddings, with their limits', async () => {
    await using upstream = await openGeminiApi()
    await using opened = await openGoogle(upstream.url)
    expect(await opened.provider.models(testContext())).to.deep.equal({
      models: [
        { id: 'plain', context: 1_048_576, output: 65_536 },
        {
          id: 'embedding-1',
          context: 2048,
          output: 1,
          features: { tool_calling: false, streaming: false, vision: false, supports: ['embeddings'] },
        },
      ],
      open: false,
    })
  })

  it('come page after page, ten at most', async () => {
    const { list, paths } = await listing(at => ({ models: [{ name: `models/m${at}` }, null, {}], nextPageToken: 'a&b' }))
    expect(list.models.map(model => model.id)).to.deep.equal(Array.from({ length: 10 }, (_, at) => `m${at}`))
    expect(paths.slice(0, 2)).to.deep.equal(['/v1beta/models?pageSize=1000', '/v1beta/models?pageSize=1000&pageToken=a%26b'])
  })

  it('are asked for their thoughts once the list says that they think', async () => {
    await using upstream = await openGeminiApi()
    await using opened = await openGoogle(upstream.url)
    const settings = async () => {
      await ask(opened.provider, to('plain'))
      return (upstream.received.at(-1)!.body as { generationConfig?: unknown }).generationConfig
    }
    expect(await settings()).to.equal(undefined)
    await opened.provider.models(testContext())
    expect(await settings()).to.deep.equal({ thinkingConfig: { includeThoughts: true } })
  })

  it('are the probe, never a call that costs', async () => {
    await using upstream = await openGeminiApi()
    await using opened = await openGoogle(upstream.url)
    await opened.provider.probe(testContext())
    expect(upstream.received.map(request => `${request.method} ${request.path}`)).to.deep.equal(['GET /v1beta/models?pageSize=1'])
  })
})

function restore(variables: Readonly<Record<string, string | undefined>>): void {
  for (const [name, value] of Object.entries(variables))
    if (value === undefined) delete process.env[name]
    else process.env[name] = value
}

describe('provider-google, its entry', () => {
  it('takes an address with or without the version, and another version', async () => {
    await using upstream = await openGeminiApi()
    for (const base_url of [upstream.url, `${upstream.url}/`, `${upstream.url}/v1beta`, `${upstream.url}/v1beta/`]) {
      await using opened = await openGoogle(base_url)
      await ask(opened.provider, to('plain'))
    }
    await using other = await openGoogle(`${upstream.url}/v1`)
    await failureOf(ask(other.provider, to('plain')))
    expect(upstream.received.at(-1)!.path).to.match(/^\/v1\/models\/plain:/)
  })

  it('stands side by side with others of its kind', async () => {
    await using geminiApi = await openGeminiApi()
    await using other = await openGeminiApi()
    await using opened = await openProviders({
      one: { base_url: geminiApi.url },
      other: { base_url: other.url, models: ['plain'] },
    })
    await ask(opened.named('one'), to('plain'))
    const { message } = await failureOf(ask(opened.named('other'), to('fail-overloaded')))
    expect([geminiApi.received.length, other.received.length]).to.deep.equal([1, 1])
    expect(message).to.match(/^other: /)
  })

  it('wants a key where it asks the real server', async () => {
    const error = await failureOf(openProviders({ google: { api_key_env: 'SVC_TEST_UNSET' } }))
    expect(formatError(error)).to.include('the variable SVC_TEST_UNSET is not set').and.include('api_key_file')
  })

  it('finds the key in GEMINI_API_KEY, else in GOOGLE_API_KEY', async () => {
    await using upstream = await openGeminiApi()
    const { GEMINI_API_KEY, GOOGLE_API_KEY } = process.env
    try {
      for (const [gemini, google] of [
        [KEY, 'other'],
        ['', KEY],
      ] as const) {
        Object.assign(process.env, { GEMINI_API_KEY: gemini, GOOGLE_API_KEY: google })
        await using opened = await openProviders({ google: { api_key_env: undefined, base_url: upstream.url } })
        await ask(opened.provider, to('plain'))
      }
    } finally {
      restore({ GEMINI_API_KEY, GOOGLE_API_KEY })
    }
  })

  it('reads the key from a file, and tells it in no error, figure or list', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'svc-google-'))
    await writeFile(join(folder, 'key'), `${KEY}\n`)
    await using upstream = await openGeminiApi()
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
    expect(upstream.received.every(request => request.headers['x-goog-api-key'] === KEY && !request.path.includes(KEY))).to.equal(
      true
    )
    await rm(folder, { recursive: true })
  })
})
