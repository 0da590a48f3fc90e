import { svcError } from '@svc/core'
import { type Prompt, Prompts, type Resource, Resources, Tools } from '@svc/core/contracts'
import { item } from '@svc/testing'
import { expect } from 'chai'
import { echo, startMcpHost, toolOf } from './support/host.ts'
import { later } from './support/later.ts'
import { asked, begin } from './support/wire.ts'

const resource = (read: Resource['read'], more: Partial<Resource> = {}): Resource => ({ uri: 'test://one', read, ...more })
const withResource = (entry: Resource) => startMcpHost({ give: [item(Resources, 'one', entry)] })
const read = async (url: string, uri = 'test://one') => (await asked(url, 'resources/read', { uri })).body

describe('resources', () => {
  it('that do not exist are reported as unknown', async () => {
    const gone = resource(
      async uri => {
        throw svcError('RESOURCE_UNKNOWN', `no ${uri}`)
      },
      { uriTemplate: 'test://{id}' }
    )
    await using mcpHost = await withResource({ ...gone, uri: undefined } as never)
    for (const uri of ['test://7', 'other://7'])
      expect((await read(mcpHost.url, uri)).error).to.deep.equal({ code: -32602, message: 'Resource not found', data: { uri } })
  })

  it('that fail, or are larger than 10 MiB, are reported as an error without internal details', async () => {
    const fails = resource(async () => {
      throw new Error("EACCES: permission denied, open '/srv/somebody/key.pem'")
    })
    await using mcpHost = await withResource(fails)
    expect((await read(mcpHost.url)).error).to.include({ code: -32603, message: 'EACCES: permission denied' })
    const text = 'x'.repeat(11_000_000)
    await using two = await withResource(resource(async uri => [{ uri, text }]))
    expect((await read(two.url)).error?.message).to.equal('the resource is larger than 10485760 characters')
  })

  it('are read by the address itself before any template', async () => {
    const named = (text: string, more: Partial<Resource>) => ({ ...resource(async uri => [{ uri, text }]), ...more })
    const { uri: _none, ...template } = named('template', { uriTemplate: 'test://{id}' })
    await using mcpHost = await startMcpHost({
      give: [item(Resources, 'a', template as Resource), item(Resources, 'b', named('itself', { uri: 'test://one' }))],
    })
    const textOf = async (uri: string) => (await read(mcpHost.url, uri)).result?.contents
    expect(await textOf('test://one')).to.deep.equal([{ uri: 'test://one', text: 'itself' }])
    expect(await textOf('test://two')).to.deep.equal([{ uri: 'test://two', text: 'template' }])
    expect(await textOf('test://two/three')).to.equal(undefined)
  })
})

describe('prompts', () => {
  const prompt: Prompt = {
    arguments: [{ name: 'whom', required: true }, { name: 'how' }],
    get: async ({ whom }) => ({ messages: [{ role: 'user', content: { type: 'text', text: `Greet ${whom}` } }] }),
    complete: async () => ({ values: Array.from({ length: 150 }, (_, at) => `name ${at}`), total: 400 }),
  }

  it('are made when all is there that they need, and not before', async () => {
    await using mcpHost = await startMcpHost({ give: [item(Prompts, 'greeting', prompt)] })
    const get = async (name: string, args: object) => (await asked(mcpHost.url, 'prompts/get', { name, arguments: args })).body
    expect((await get('greeting', { whom: 'Ada' })).result).to.have.nested.property('messages[0].content.text', 'Greet Ada')
    expect((await get('greeting', { how: 'warmly' })).error).to.include({ code: -32602, message: 'Missing arguments: whom' })
    expect((await get('none', {})).error).to.include({ code: -32602, message: 'Unknown prompt: none' })
  })

  it('complete to 100 values, and report how many more there are', async () => {
    await using mcpHost = await startMcpHost({ give: [item(Prompts, 'greeting', prompt)] })
    const ref = { type: 'ref/prompt', name: 'greeting' }
    const { body } = await asked(mcpHost.url, 'completion/complete', { ref, argument: { name: 'whom', value: '' } })
    const { completion } = body.result as { completion: { values: string[] } }
    const { values, ...more } = completion
    expect(values).to.have.length(100)
    expect(more).to.deep.equal({ total: 400, hasMore: true })
    const none = await asked(mcpHost.url, 'completion/complete', {
      ref: { ...ref, name: 'none' },
      argument: { name: 'whom', value: '' },
    })
    expect(none.body.error).to.include({ code: -32602 })
  })
})

describe('the list of tools', () => {
  it('has data of any kind for the era that knows it, and for sessions where it is an object', async () => {
    const list = toolOf(async () => ({ content: [], structured: [1, 2] }), {
      result: { type: 'array', items: { type: 'integer' } },
    })
    await using mcpHost = await startMcpHost({ tools: { list, echo } })
    const session = await begin(mcpHost.url)
    const [now, before] = [await asked(mcpHost.url, 'tools/list'), await session.request('tools/list')]
    const schemaIn = ({ body }: typeof now) => (body.result as { tools: { outputSchema?: object }[] }).tools[1]?.outputSchema
    expect(schemaIn(now)).to.deep.equal({ type: 'array', items: { type: 'integer' } })
    expect(schemaIn(before)).to.equal(undefined)
    const params = { name: 'list', arguments: {} }
    const text = [{ type: 'text', text: '[1,2]' }]
    expect((await asked(mcpHost.url, 'tools/call', params)).body.result).to.deep.include({
      structuredContent: [1, 2],
      content: text,
    })
    expect((await session.request('tools/call', params)).body.result).to.deep.equal({ content: text })
  })

  it('has what stands under a name now', async () => {
    const { gift, add } = later()
    await using mcpHost = await startMcpHost({ give: [gift] })
    const described = async () => {
      const { result } = (await asked(mcpHost.url, 'tools/list')).body
      return (result as { tools: { name: string; description: string }[] }).tools.find(tool => tool.name === 'it')?.description
    }
    const remove = add(
      Tools,
      'it',
      toolOf(async () => ({ content: [] }), { description: 'the first' })
    )
    expect(await described()).to.equal('the first')
    remove()
    add(
      Tools,
      'it',
      toolOf(async () => ({ content: [] }), { description: 'the second' })
    )
    expect(await described()).to.equal('the second')
  })

  it('comes in parts of a thousand, each tool once, though the first part is asked for again and again', async () => {
    const tools = Object.fromEntries(Array.from({ length: 2_500 }, (_, at) => [`tool_${String(at).padStart(4, '0')}`, echo]))
    await using mcpHost = await startMcpHost({
      tools: { echo },
      give: Object.entries(tools).map(([name, tool]) => item(Tools, name, tool)),
    })
    const session = await begin(mcpHost.url)
    for (const list of [
      async (params: object) => (await asked(mcpHost.url, 'tools/list', params as never)).body.result,
      async (params: object) => (await session.request('tools/list', params as never)).body.result,
    ]) {
      const names: string[] = []
      const sizes: number[] = []
      let cursor: string | undefined
      do {
        const result = (await list(cursor === undefined ? {} : { cursor })) as { tools: { name: string }[]; nextCursor?: string }
        names.push(...result.tools.map(tool => tool.name))
        sizes.push(result.tools.length)
        cursor = result.nextCursor
      } while (cursor !== undefined)
      expect(sizes).to.deep.equal([1_000, 1_000, 501])
      expect(names).to.deep.equal(['echo', ...Object.keys(tools)])
    }
  })
})
