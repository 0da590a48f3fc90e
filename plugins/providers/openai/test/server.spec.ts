import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ConfigTree, formatError } from '@svc/core'
import { Providers } from '@svc/core/contracts'
import { type Answerer, openUpstream, testContext } from '@svc/testing'
import { expect } from 'chai'
import { type Preset, type PresetName, PRESETS } from '../src/presets.ts'
import { asks } from './support/requests.ts'
import { ask, failing, KEY, KEY_ENV, openRig, startPlugin } from './support/rig.ts'
import { speak } from './support/wire.ts'

const VECTORS = { tool_calling: false, streaming: false, vision: false, supports: ['embeddings'] }

describe('the servers of provider-openai', () => {
  it('are distinct: each entry has an address, a key and models of its own', async () => {
    process.env[KEY_ENV] = KEY
    await using upstream = await openUpstream(speak)
    await using two = await openUpstream(speak)
    await using host = await startPlugin({
      one: { type: 'openai', base_url: `${upstream.url}/v1`, api_key_env: KEY_ENV, headers: { 'X-Team': 'a' } },
      two: { type: 'openai', base_url: `${two.url}/v1`, models: ['plain', { id: 'tools', context: 8, vision: false }] },
    })
    const [first, second] = ['one', 'two'].map(name => host.slot(Providers).get(name)!)
    await Promise.all([ask(first!, asks('plain')), ask(second!, asks('plain'))])
    expect(upstream.received[0]?.headers).to.include({ authorization: `Bearer ${KEY}`, 'x-team': 'a' })
    expect(two.received[0]?.headers).not.to.have.any.keys('authorization', 'x-team')
    expect((await first!.models(testContext())).open).to.equal(true)
    expect(await second!.models(testContext())).to.deep.equal({
      models: [{ id: 'plain' }, { id: 'tools', context: 8, features: { vision: false } }],
      open: false,
    })
    expect(two.received).to.have.lengthOf(1)
  })

  it('may want the key in another header, and a version in the query', async () => {
    await using rig = await openRig({ preset: 'azure', api_version: '2025-04-01-preview' }, (received, reply) =>
      speak({ ...received, path: received.path.replace(/\?.*/, '') }, reply)
    )
    await ask(rig.provider, asks('plain'))
    await rig.provider.probe(testContext())
    expect(rig.upstream.received.map(request => request.path)).to.deep.equal([
      '/v1/chat/completions?api-version=2025-04-01-preview',
      '/v1/models?api-version=2025-04-01-preview',
    ])
    for (const { headers } of rig.upstream.received) {
      expect(headers['api-key']).to.equal(KEY)
      expect(headers).not.to.have.property('authorization')
    }
  })

  it('tell what their models can do, each in its way, and only those that chat or make embeddings', async () => {
    const data = [
      { id: 'text-embedding-3-small' },
      { id: 'whisper-1' },
      { id: 'bge', type: 'embedding' },
      { id: 'mistral-ocr', capabilities: { completion_chat: false } },
      { id: 'a', context_window: 100, max_completion_tokens: 10 },
      {
        id: 'b',
        context_length: 200,
        top_provider: { max_completion_tokens: null },
        architecture: { input_modalities: ['text', 'image'] },
        supported_parameters: ['tools'],
      },
      { id: 'c', max_context_length: 300, capabilities: { completion_chat: true, function_calling: false, vision: false } },
      { id: 'd', max_model_len: 400 },
      null,
      { id: 7 },
    ]
    for (const list of [{ object: 'list', data }, data]) {
      await using rig = await openRig({}, (_, reply) => reply.json(200, list))
      expect(await rig.provider.models(testContext())).to.deep.equal({
        models: [
          { id: 'a', context: 100, output: 10 },
          {
            id: 'b',
            context: 200,
            // The lists of this server name all that the model supports, but for what they have no word for.
            features: { tool_calling: true, vision: true, supports: ['n', 'strict_tools', 'tool_call_deltas', 'image_urls'] },
            temperature: false,
          },
          { id: 'c', context: 300, features: { tool_calling: false, vision: false } },
          { id: 'd', context: 400 },
          { id: 'text-embedding-3-small', features: VECTORS },
          { id: 'bge', features: VECTORS },
        ],
        open: true,
      })
    }
  })

  it('tell of reasoning models by their names, where those are known', async () => {
    await using rig = await openRig({
      preset: 'openai',
      models: ['o3', 'gpt-4.1', 'gpt-audio', 'text-embedding-3-large', { id: 'mine', embeddings: true }],
    })
    const { models } = await rig.provider.models(testContext())
    const supports = (id: string) => models.find(model => model.id === id)?.features?.supports
    const shown = ['reasoning_effort', 'stop', 'logprobs'] as const
    expect(shown.map(feature => supports('o3')?.includes(feature))).to.deep.equal([true, false, false])
    expect(supports('gpt-4.1')).to.equal(undefined)
    expect(shown.map(feature => rig.provider.features.supports?.includes(feature))).to.deep.equal([false, true, true])
    expect(supports('gpt-audio')).to.include('audio')
    expect([supports('text-embedding-3-large'), supports('mine')]).to.deep.equal([['embeddings'], ['embeddings']])
  })

  it('begin their list with the model that is to be the default', async () => {
    const data = ['gpt-4', 'o3', 'gpt-4o-mini', 'gpt-5-mini'].map(id => ({ id }))
    await using rig = await openRig({ preset: 'openai' }, (_, reply) => reply.json(200, { data }))
    const { models } = await rig.provider.models(testContext())
    expect(models.map(model => model.id)).to.deep.equal(['gpt-5-mini', 'gpt-4', 'o3', 'gpt-4o-mini'])
    expect(models.map(model => model.temperature)).to.deep.equal([false, undefined, false, undefined])
  })

  it('are probed without cost, also those that have no list', async () => {
    for (const status of [200, 404, 405]) {
      await using rig = await openRig({}, (_, reply) => reply.json(status, {}))
      await rig.provider.probe(testContext())
      expect(rig.upstream.received.map(request => `${request.method} ${request.path}`)).to.deep.equal(['GET /v1/models'])
    }
    await using rig = await openRig({}, (_, reply) => reply.json(401, {}))
    expect((await failing(rig.provider.probe(testContext()))).details).to.include({ kind: 'authentication' })
    await using open = await openRig({ preset: 'openrouter' }, (_, reply) => reply.json(200, {}))
    await open.provider.probe(testContext())
    expect(open.upstream.received[0]?.path).to.equal('/v1/key')
  })
})

/** Where each vendor says that its service is (its documentation of the API), and the variable that its own tools read. */
const SERVERS = {
  compatible: [undefined, undefined],
  openai: ['https://api.openai.com/v1', 'OPENAI_API_KEY'],
  azure: [undefined, 'AZURE_OPENAI_API_KEY'],
  ollama: ['http://localhost:11434/v1', undefined],
  lmstudio: ['http://localhost:1234/v1', undefined],
  vllm: ['http://localhost:8000/v1', undefined],
  groq: ['https://api.groq.com/openai/v1', 'GROQ_API_KEY'],
  openrouter: ['https://openrouter.ai/api/v1', 'OPENROUTER_API_KEY'],
  mistral: ['https://api.mistral.ai/v1', 'MISTRAL_API_KEY'],
  deepseek: ['https://api.deepseek.com/v1', 'DEEPSEEK_API_KEY'],
  together: ['https://api.together.xyz/v1', 'TOGETHER_API_KEY'],
} as const satisfies Readonly<Record<PresetName, readonly [string | undefined, string | undefined]>>

describe('the presets of provider-openai', () => {
  for (const [name, [address, variable]] of Object.entries(SERVERS))
    it(`have of ${name} its address and the variable of its key`, () => {
      const { baseUrl, keyEnv, keyRequired }: Preset = PRESETS[name as PresetName]
      expect([baseUrl, keyEnv, keyRequired]).to.deep.equal([address, variable, variable !== undefined])
    })

  for (const [preset, [, variable]] of Object.entries(SERVERS).filter(([, [address, name]]) => address && name))
    it(`want ${variable} for ${preset} where the entry names no other`, async () => {
      const before = process.env[variable!]
      delete process.env[variable!]
      try {
        const reported = formatError(await failing(startPlugin({ main: { type: 'openai', preset } })))
        expect(reported).to.include(`Set ${variable} to the key`)
      } finally {
        if (before !== undefined) process.env[variable!] = before
      }
    })
})

describe('the configuration of provider-openai', () => {
  let folder: string
  before(async () => (folder = await mkdtemp(join(tmpdir(), 'svc-openai-'))))
  after(() => rm(folder, { recursive: true }))
  const start = (entry: ConfigTree, name = 'main') => startPlugin({ [name]: { type: 'openai', ...entry } })
  const refusal = async (entry: ConfigTree, name?: string) => formatError(await failing(start(entry, name)))

  it('refuses a preset that it does not know, and names those it does', async () => {
    expect(await refusal({ preset: 'grok' }))
      .to.include('providers.main.preset')
      .and.to.include('"groq", "openrouter"')
  })

  for (const [what, entry, words] of [
    ['an unknown key', { base_ulr: 'x' }, /base_ulr/],
    ['an address without a scheme', { base_url: 'localhost:11434' }, /http:\/\/localhost:11434\/v1/],
    ['an address with a password', { base_url: 'https://a:b@c.example' }, /api_key_env/],
    ['no address where there must be one', { preset: 'azure' }, /openai\.azure\.com/],
    ['a version for a server that has none', { preset: 'groq', api_version: '1' }, /azure/],
    ['a key that is not there', { preset: 'openai', api_key_env: 'SVC_TEST_ABSENT' }, /Set SVC_TEST_ABSENT/],
  ] as const)
    it(`refuses ${what}, with the hint`, async () => {
      expect(await refusal(entry)).to.match(words)
    })

  it('reads the key from a file', async () => {
    const file = join(folder, 'key')
    await writeFile(file, `${KEY}\n`)
    await using rig = await openRig({ api_key_env: undefined, api_key_file: file } as ConfigTree)
    await ask(rig.provider, asks('plain'))
    expect(rig.upstream.received[0]?.headers.authorization).to.equal(`Bearer ${KEY}`)
  })

  it('sends the key of a vendor to no other server', async () => {
    process.env.OPENAI_API_KEY = KEY
    try {
      await using upstream = await openUpstream(speak)
      await using host = await start({ base_url: `${upstream.url}/v1` }, 'openai')
      await ask(host.slot(Providers).get('openai')!, asks('plain'))
      expect(upstream.received[0]?.headers).not.to.have.property('authorization')
    } finally {
      delete process.env.OPENAI_API_KEY
    }
  })

  it('takes the name of an entry for its preset', async () => {
    expect(await refusal({}, 'mistral')).to.include('MISTRAL_API_KEY')
    await using host = await start({}, 'ollama')
    expect(host.slot(Providers).has('ollama')).to.equal(true)
  })
})

describe('a key of provider-openai', () => {
  it('is in no error, no list, no probe, no report and no line of the log', async () => {
    const lines: string[] = []
    const telling: Answerer = ({ headers, path }, reply) =>
      reply.json(path.includes('models') ? 401 : 400, {
        error: { message: `You sent ${JSON.stringify(headers)}`, code: headers.authorization },
      })
    const log = { level: 'debug', destination: { write: (line: string) => void lines.push(line) } } as const
    await using rig = await openRig({ headers: { 'X-Auth-Token': 'canary-of-a-header' } }, telling, log)
    const errors = [
      await failing(ask(rig.provider, asks('plain'))),
      await failing(rig.provider.models(testContext())),
      await failing(rig.provider.probe(testContext())),
    ]
    for (const error of errors) rig.host.log.error({ err: error }, 'it failed')
    const reported = errors.flatMap(error => [
      formatError(error),
      JSON.stringify(error),
      String(error.stack),
      String(error.cause),
    ])
    const words = [...reported, ...lines, JSON.stringify(rig.host.report())].join('\n')
    expect(words.match(/You sent/g)).to.have.lengthOf.above(5)
    for (const secret of [KEY, 'canary-of-a-header']) expect(words).not.to.include(secret)
  })
})
