import { expect } from 'chai'
import { startApi, type Tree } from './support/api.ts'

describe('the models', () => {
  let api: Awaited<ReturnType<typeof startApi>>
  before(async () => {
    api = await startApi()
  })
  after(() => api[Symbol.asyncDispose]())

  it('are listed in the forms of OpenAI, Anthropic and Codex', async () => {
    const { status, body } = await api.get('/v1/models?client_version=1&limit=5')
    expect(status).to.equal(200)
    const ids = body.data.map(({ id }: Tree) => id)
    expect(ids).to.include.members(['local/local-1', 'up/m', 'up/org/m:1', 'fast', 'profile:coder'])
    expect(body).to.deep.include({ object: 'list', has_more: false, first_id: ids[0], last_id: ids.at(-1), models: [] })
    const find = (id: string) => body.data.find((model: Tree) => model.id === id)
    expect(find('local/local-1')).to.deep.equal({
      id: 'local/local-1',
      object: 'model',
      created: 0,
      owned_by: 'local',
      type: 'model',
      display_name: 'local/local-1',
      created_at: '1970-01-01T00:00:00Z',
      context_length: 1_048_576,
      max_input_tokens: 1_048_576,
      max_tokens: 4096,
    })
    expect(find('fast')).to.include({ owned_by: 'local', max_tokens: 1024 })
    expect(find('profile:coder')).to.include({ owned_by: 'svc:profile', description: 'writes code' })
  })

  it('can be read one by one, with slashes and colons in their ids, encoded or not', async () => {
    for (const id of ['local/local-1', 'up/org/m:1', 'fast', 'profile:coder', 'agent:coder', 'local-small'])
      for (const path of [id, encodeURIComponent(id), `${id}?beta=true`]) {
        const { status, body } = await api.get(`/v1/models/${path}`)
        expect([status, body.object, body.type], path).to.deep.equal([200, 'model', 'model'])
        expect(body.id).to.equal(id.replace('agent:', 'profile:'))
      }
    for (const path of ['nope', 'a/b/c', 'local/', 'x/%ff', '%2f', 'a//b', `${'x'.repeat(3_000)}/y`]) {
      const { status, body } = await api.get(`/v1/models/${path}`)
      expect([status, body.error.code], path.slice(0, 20)).to.deep.equal([404, 'model_not_found'])
    }
  })
})

describe('embeddings', () => {
  let api: Awaited<ReturnType<typeof startApi>>
  before(async () => {
    api = await startApi()
  })
  after(() => api[Symbol.asyncDispose]())
  const embed = (body: Tree) => api.post('/v1/embeddings', { model: 'local/local-1', ...body })

  it('are in the order of the input, as numbers or base64, with their usage', async () => {
    const input = ['one', 'two words', 'one']
    const { status, body } = await embed({ input, dimensions: 8 })
    expect(status).to.equal(200)
    expect(body).to.include({ object: 'list', model: 'local/local-1' })
    expect(body.usage.prompt_tokens).to.equal(body.usage.total_tokens).and.be.greaterThan(2)
    const [one, two, again] = body.data as Tree[]
    expect(body.data.map(({ index, object }: Tree) => `${index} ${object}`)).to.deep.equal([
      '0 embedding',
      '1 embedding',
      '2 embedding',
    ])
    expect(one!.embedding).to.have.length(8).and.deep.equal(again!.embedding)
    expect(one!.embedding).to.not.deep.equal(two!.embedding)

    const packed = (await embed({ input, dimensions: 8, encoding_format: 'base64' })).body.data as Tree[]
    const bytes = Buffer.from(packed[0]!.embedding, 'base64')
    const numbers = Array.from({ length: 8 }, (_, at) => bytes.readFloatLE(at * 4))
    expect(bytes).to.have.length(32)
    numbers.forEach((number, at) => expect(number).to.be.closeTo(one!.embedding[at], 1e-6))
  })

  it('take a text, token ids, and lists of both', async () => {
    for (const [input, count] of [
      ['x', 1],
      [[1, 2, 3], 1],
      [[[1, 2], [3]], 2],
      [['a', [1]], 2],
    ] as const)
      expect((await embed({ input })).body.data).to.have.length(count)
    expect((await embed({ input: 'x', user: 'u' })).headers.get('x-svc-dropped')).to.equal('user')
  })

  it('refuse other input, other fields, and models that make none', async () => {
    const refused = async (body: Tree) => {
      const got = await embed(body)
      expect(got.status, got.text).to.equal(400)
      return [got.body.error.code, got.body.error.param]
    }
    for (const input of ['', [], 5, null, [[]], [''], [{}], ['a', 5], Array.from({ length: 2_049 }, () => 'x')])
      expect((await refused({ input }))[1], JSON.stringify(input).slice(0, 20)).to.match(/^input/)
    expect(await refused({})).to.deep.equal(['missing_required_parameter', 'input'])
    expect(await refused({ input: 'x', encoding_format: 'int8' })).to.deep.equal(['invalid_value', 'encoding_format'])
    expect(await refused({ input: 'x', dimensions: 0 })).to.deep.equal(['invalid_value', 'dimensions'])
    expect(await refused({ input: 'x', input_type: 'query' })).to.deep.equal(['unsupported_parameter', 'input_type'])
    expect(await refused({ input: 'x', model: 'profile:coder' })).to.deep.equal(['unsupported_parameter', 'embeddings'])
  })
})
