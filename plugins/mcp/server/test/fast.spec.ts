import { svcError } from '@svc/core'
import { type ContentPart, type Json, type Tool, Tools, type ToolStep } from '@svc/core/contracts'
import { item } from '@svc/testing'
import { expect } from 'chai'
import { plainLegacy, plainModern } from '../src/fast.ts'
import { echo, type McpHost, startMcpHost, toolOf } from './support/host.ts'
import { line } from './support/line.ts'
import { ask, type Asking, back, begin, envelope, type Json as Tree, LEGACY, VERSION } from './support/wire.ts'

const answers = (more: object, content: ContentPart[] = [{ type: 'text', text: 'x' }]): Tool =>
  toolOf(async () => ({ content, ...more }))
const steps: ToolStep[] = [
  { type: 'progress', progress: 1, total: 2, message: 'half' },
  { type: 'log', level: 'warning', data: { hot: true }, logger: 'stove' },
  { type: 'progress', progress: 2, total: 2 },
]

const TOOLS: Readonly<Record<string, Tool>> = {
  echo,
  odd: toolOf(async () => ({ content: [] }), {
    title: 'Ödd "name"',
    effects: ['write'],
    resultSchema: { type: 'object' },
  } as object),
  list: answers({ structured: [1, 'two', { three: 3 }] }),
  object: answers({ structured: { deep: { ä: [null, true, 1e21] } } }),
  failed: answers({ isError: true, structured: { why: 'so' } }),
  parts: answers({}, [
    { type: 'image', data: 'AAAA', mimeType: 'image/png' },
    { type: 'text', text: '"\\\n\t😀' },
  ] as never),
  empty: answers({}, []),
  throws: toolOf(async () => {
    throw new Error('an inner secret')
  }),
  refuses: toolOf(async () => {
    throw svcError('DENIED', 'not you', { hint: 'ask nicely' })
  }),
  steps: {
    ...toolOf(async () => ({ content: [] })),
    async *run() {
      yield* steps
      yield { type: 'result', result: { content: [{ type: 'text', text: 'done' }] } }
    },
  },
  asks: {
    ...toolOf(async () => ({ content: [] })),
    async *run() {
      yield {
        type: 'input',
        requests: {
          where: {
            method: 'elicitation/create',
            params: { mode: 'form', message: 'Where?', requestedSchema: { type: 'object', properties: {} } },
          },
        },
        state: 'kept',
      } as never
    },
  },
}

const call = (name: string, args?: Json, more: Tree = {}) =>
  ['tools/call', { name, ...(args === undefined ? {} : { arguments: args }), ...more } as Tree] as const

/** What is asked, and whether it is answered without the SDK. */
const ASKED: Readonly<Record<string, readonly [request: readonly [method: string, params: Tree], fast: boolean]>> = {
  'a list': [['tools/list', {}], true],
  'a list from a cursor that leads nowhere': [['tools/list', { cursor: 'nowhere' }], true],
  'a list from a cursor that is none': [['tools/list', { cursor: 1 }], false],
  'a call': [call('echo', { text: 'x', deep: {} }), true],
  'a call without arguments': [call('empty'), true],
  'a call with arguments that break the schema': [call('echo', { text: 1, more: true }), true],
  'a call with arguments that are a list': [call('echo', []), false],
  'structured content that is an object': [call('object', {}), true],
  'structured content that is a list': [call('list', {}), true],
  'a failure': [call('failed', {}), true],
  'a failure in its own words': [call('refuses', {}), true],
  'a failure that it throws': [call('throws', {}), true],
  'images and odd texts': [call('parts', {}), true],
  'an unknown tool': [call('nothing', {}), true],
  'a tool with the name of a member of all objects': [call('__proto__', {}), true],
  'no name': [['tools/call', {}], false],
  'a tool that tells its steps, to a caller who does not follow them': [call('steps', {}), true],
  'a tool that asks, of a caller who answers nothing': [call('asks', {}), true],
}

const headersOf = (method: string, params: Tree) => ({
  'mcp-protocol-version': VERSION,
  'mcp-method': method,
  ...(typeof params.name === 'string' && { 'mcp-name': params.name }),
})
const HTTP = { accept: 'application/json, text/event-stream', 'mcp-protocol-version': LEGACY }
const initialize = { protocolVersion: LEGACY, capabilities: {}, clientInfo: { name: 'test', version: '1.0.0' } }

/** Answers over HTTP, where the fast path is, and over a line, where the SDK answers alone. */
async function both(mcpHost: McpHost, era: 'stateless' | 'session') {
  const client = line(mcpHost)
  if (era === 'stateless')
    return {
      client,
      isPlain: (method: string, params: Tree) =>
        plainModern(headersOf(method, params), { jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: envelope() } }) !==
        undefined,
      http: async (method: string, params: Tree, asking: Asking = {}) => back(await ask(mcpHost.url, method, params, asking)),
      sdk: (method: string, params: Tree, meta: Tree = {}) => client.ask(method, { ...params, _meta: envelope({}, meta) }),
    }
  const session = await begin(mcpHost.url)
  await client.ask('initialize', initialize)
  client.say({ method: 'notifications/initialized' })
  return {
    client,
    isPlain: (method: string, params: Tree) => plainLegacy(HTTP, { jsonrpc: '2.0', id: 1, method, params }) !== undefined,
    http: (method: string, params: Tree) => session.request(method, params),
    async sdk(method: string, params: Tree) {
      let heard = await client.ask(method, params)
      // without a level the SDK sends a session all that is logged; the fast path nothing, so that the answer is one piece of JSON
      while (params._meta === undefined && heard.method === 'notifications/message') heard = await client.hear()
      return heard
    },
  }
}

for (const era of ['stateless', 'session'] as const)
  describe(`what is answered without the SDK, as a ${era} request,`, () => {
    let mcpHost: McpHost
    before(async () => {
      mcpHost = await startMcpHost({ tools: TOOLS })
    })
    after(() => mcpHost[Symbol.asyncDispose]())

    for (const [what, [[method, params], fast]] of Object.entries(ASKED))
      it(`is what the SDK answers: ${what}`, async () => {
        const { http, sdk, isPlain } = await both(mcpHost, era)
        expect(isPlain(method, params)).to.equal(fast)
        const { body } = await http(method, params)
        expect(body).to.deep.equal(await sdk(method, params))
        expect('result' in body || 'error' in body).to.equal(true)
      })

    it('is what the SDK answers: a tool that sends its steps to a caller that wants them', async () => {
      const { http, client, sdk } = await both(mcpHost, era)
      const [method, params] = call('steps', {})
      const meta = { progressToken: 7 }
      const { events } =
        era === 'stateless' ? await http(method, params, { meta }) : await http(method, { ...params, _meta: meta })
      const reported: unknown[] = [
        era === 'stateless' ? await sdk(method, params, meta) : await sdk(method, { ...params, _meta: meta }),
      ]
      while (reported.length < events.length) reported.push(await client.hear())
      expect(reported).to.deep.equal(events)
      expect(events.filter(event => event.method === 'notifications/progress')).to.have.length(2)
    })
  })

describe('lists of several pages', () => {
  it('are page by page what the SDK answers', async () => {
    const names = Array.from({ length: 1_001 }, (_, at) => `tool_${String(at).padStart(4, '0')}`)
    await using mcpHost = await startMcpHost({ tools: { echo }, give: names.map(name => item(Tools, name, echo)) })
    for (const era of ['stateless', 'session'] as const) {
      const { http, sdk } = await both(mcpHost, era)
      const first = (await http('tools/list', {})).body
      expect(first).to.deep.equal(await sdk('tools/list', {}))
      const cursor = first.result?.nextCursor as string
      const second = (await http('tools/list', { cursor })).body
      expect(second).to.deep.equal(await sdk('tools/list', { cursor }))
      expect(second.result?.tools).to.have.length(2)
    }
  })
})

describe('a call that its session cancels', () => {
  it('is answered with nothing, as by the SDK', async () => {
    let begun = Promise.withResolvers<void>()
    const endless = toolOf(async (_args, { signal }) => {
      begun.resolve()
      await new Promise(resolve => signal.addEventListener('abort', resolve, { once: true }))
      throw signal.reason
    })
    await using mcpHost = await startMcpHost({ tools: { endless } })
    const session = await begin(mcpHost.url)
    const [method, params] = call('endless', {})
    const answer = session.request(method, params, 7)
    await begun.promise
    await session.send({ method: 'notifications/cancelled', params: { requestId: 7 } })
    expect((await answer).body).to.deep.equal({})
    begun = Promise.withResolvers<void>()
    const client = line(mcpHost)
    await client.ask('initialize', initialize)
    client.say({ id: 7, method, params })
    await begun.promise
    client.say({ method: 'notifications/cancelled', params: { requestId: 7 } })
    expect(await client.ask('ping', {}, 8)).to.deep.equal({ jsonrpc: '2.0', id: 8, result: {} })
  })
})
