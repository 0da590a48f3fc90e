import { svcError } from '@svc/core'
import type { Tool } from '@svc/core/contracts'
import { expect } from 'chai'
import { echo, type McpHost, startMcpHost, refusal, toolOf } from './support/host.ts'

const words = (text: string) => ({ content: [{ type: 'text' as const, text }] })
const throwing = (error: () => unknown) =>
  toolOf(async () => {
    throw error()
  })
const upstream = (kind: string) => () =>
  svcError('MCP_CALL_FAILED', `it is ${kind}`, { details: { server: 'files', class: kind, retryable: true } })

const strange: Tool['parameters'] = {
  type: 'object',
  $defs: { size: { enum: ['S', 'L'] } },
  properties: { size: { $ref: '#/$defs/size' }, either: { anyOf: [{ type: 'string' }, { type: 'null' }] } },
  'x-unknown': { kept: true },
}

const TOOLS: Readonly<Record<string, Tool>> = {
  echo,
  'a b/c': toolOf(async () => words('found')),
  strange: toolOf(async () => words('strange'), { description: 'Strange', parameters: strange }),
  bare: toolOf(async () => words('bare'), { parameters: { type: 'object' } }),
  failing: toolOf(async () => ({ ...words('no such file'), isError: true })),
  throwing: throwing(() => svcError('FILE_MISSING', 'there is no x', { hint: 'make it' })),
  reasoned: throwing(() => svcError('SCRIPT_FAILED', 'too much', { details: { reason: 'memory_limit' } })),
  own_limit: throwing(() => svcError('TIMEOUT', 'the script took 5 s')),
  broken: throwing(() => 'a bare word'),
  asking: toolOf(async () => words('never'), {
    async *run() {
      yield { type: 'input', requests: { name: { method: 'elicitation/create', params: { message: 'Who?' } } } }
    },
  }),
  large: toolOf(async () => words('x'.repeat(11 * 1_048_576))),
  schemaless: toolOf(async () => words('never'), { parameters: { type: 'no type' } }),
  files__gone: throwing(upstream('connection_refused')),
  files__locked: throwing(upstream('authentication_failed')),
  files__slow: throwing(upstream('timeout')),
  files__dropped: throwing(upstream('tool_not_found')),
  files__failed: throwing(upstream('tool_error')),
}

describe('the tools over plain HTTP', () => {
  let mcpHost: McpHost
  before(async () => {
    mcpHost = await startMcpHost({ tools: TOOLS })
  })
  after(() => mcpHost.host.close())
  const call = (name: string, body: unknown = {}) => mcpHost.ask.post(`/tools/${encodeURIComponent(name)}/call`, body)

  it('are listed in the order of their names, with their number, and with schemas that always have `type`, `properties` and `required`', async () => {
    const { status, headers, body } = await mcpHost.ask.get('/tools')
    expect([status, headers.get('content-type')]).to.deep.equal([200, 'application/json; charset=utf-8'])
    const tools = body.tools as unknown as { name: string }[]
    expect(tools.map(({ name }) => name)).to.deep.equal(Object.keys(TOOLS).sort())
    expect(body.count).to.equal(tools.length)
    expect(tools.find(({ name }) => name === 'strange')).to.deep.equal({
      name: 'strange',
      description: 'Strange',
      parameters: { ...strange, required: [] },
    })
  })

  it('have an empty list of required parameters if they need none, and keep their own list', async () => {
    const { body } = await mcpHost.ask.get('/tools/bare')
    expect(body.parameters).to.deep.equal({ type: 'object', properties: {}, required: [] })
    expect((await mcpHost.ask.get('/tools/echo')).body.parameters).to.deep.equal(echo.parameters)
  })

  it('are returned one by one, with any name', async () => {
    const { status, body } = await mcpHost.ask.get('/tools/echo')
    expect([status, body]).to.deep.equal([200, { name: 'echo', description: echo.description, parameters: echo.parameters }])
    expect((await mcpHost.ask.get('/tools/a%20b%2Fc')).body.name).to.equal('a b/c')
  })

  it('are called with arguments; the answer has content, data and time', async () => {
    const { status, body } = await call('echo', { arguments: { text: 'hi', deep: {} }, timeout: 5, more: 'ignored' })
    const { duration_ms, ...rest } = body
    expect([status, rest]).to.deep.equal([
      200,
      {
        success: true,
        tool: 'echo',
        content: [{ type: 'text', text: 'hi' }],
        structured_content: { text: 'hi', deep: {} },
        is_error: false,
      },
    ])
    expect(duration_ms).to.satisfy(Number.isInteger)
    expect((await call('a b/c')).body)
      .to.deep.include({ content: words('found').content })
      .and.not.have.property('structured_content')
  })

  it('take no arguments, null and no body at all for the same', async () => {
    for (const body of [{}, { arguments: null }, { arguments: {} }, ''])
      expect((await call('strange', body)).body.content).to.deep.equal(words('strange').content)
  })

  for (const name of ['nothing', '__proto__', 'constructor', 'ECHO'])
    it(`are not found under a name that none has: ${name}`, async () => {
      expect((await mcpHost.ask.get(`/tools/${name}`)).body).to.include({ error_code: 'TOOL_NOT_FOUND', success: false })
      expect(refusal(await call(name)).slice(0, 2)).to.deep.equal([404, 'TOOL_NOT_FOUND'])
    })

  for (const [what, body, field] of [
    ['a missing one', { arguments: {} }, 'arguments.text'],
    ['a missing one where there are none', {}, 'arguments.text'],
    ['one of a wrong type', { arguments: { text: 1 } }, 'arguments.text'],
    ['a deep one of a wrong type', { arguments: { text: '', deep: { n: 'x' } } }, 'arguments.deep.n'],
    ['one that the tool does not know', { arguments: { text: '', more: 1 } }, 'arguments.more'],
    ['bare ones, without guessing', { text: 'hi' }, 'arguments.text'],
    ['a list', { arguments: [] }, 'arguments'],
    ['a text', { arguments: 'text' }, 'arguments'],
  ] as const)
    it(`refuse arguments that break the schema: ${what}`, async () => {
      const { status, body: reported } = await call('echo', body)
      const { field: named, reason } = reported.details as { field: string; reason: string }
      expect([status, reported.error_code, named]).to.deep.equal([400, 'INVALID_VALUE', field])
      expect(reason).to.be.a('string').and.not.equal('')
    })

  for (const timeout of [0, -1, null, '5', 3_601])
    it(`refuse a timeout of ${JSON.stringify(timeout)}`, async () => {
      const { status, body } = await call('echo', { arguments: { text: 'hi' }, timeout })
      expect([status, body.error_code, (body.details as { field: string }).field]).to.deep.equal([
        400,
        'INVALID_VALUE',
        'timeout',
      ])
    })

  it('that say that they failed are 500 with what they answered', async () => {
    expect(refusal(await call('failing'))).to.deep.equal([
      500,
      'TOOL_EXECUTION_FAILED',
      { tool: 'failing', reason: 'no such file', content: words('no such file').content },
    ])
  })

  it('that throw are reported with their message and hint; their own reason wins', async () => {
    const thrown = 'there is no x; make it'
    expect(refusal(await call('throwing'))).to.deep.equal([
      500,
      'TOOL_EXECUTION_FAILED',
      { tool: 'throwing', reason: thrown, content: words(thrown).content },
    ])
    expect(refusal(await call('reasoned'))).to.deep.equal([
      500,
      'TOOL_EXECUTION_FAILED',
      { tool: 'reasoned', reason: 'memory_limit', content: words('too much').content },
    ])
    expect(refusal(await call('broken'))[2]).to.deep.include({ reason: 'a bare word' })
  })

  it('that need an answer of their caller fail on this route', async () => {
    const [status, code, details] = refusal(await call('asking'))
    expect([status, code]).to.deep.equal([500, 'TOOL_EXECUTION_FAILED'])
    expect(details).to.have.property('reason').that.contains('answer')
  })

  it('whose schema is none cannot be called', async () => {
    expect(refusal(await call('schemaless'))).to.deep.equal([
      500,
      'TOOL_EXECUTION_FAILED',
      { tool: 'schemaless', reason: 'broken schema' },
    ])
  })

  it('that answer more than 10 MiB fail, and say so', async () => {
    const { status, body } = await call('large')
    expect([status, body.error_code]).to.deep.equal([500, 'TOOL_EXECUTION_FAILED'])
    expect(JSON.stringify(body).length).to.be.below(1_000)
    expect(body.error).to.contain('10485760 bytes')
  })

  for (const name of ['files__gone', 'files__locked'])
    it(`of a server that does not do its part are 503 with its name: ${name}`, async () => {
      expect(refusal(await call(name))).to.deep.equal([503, 'PROVIDER_ERROR', { server: 'files', retryable: true }])
    })

  it('of a server that removed them, that is late, or whose tool failed, are reported like tools of svc', async () => {
    const reported = await Promise.all(
      ['files__dropped', 'files__slow', 'files__failed'].map(async name => refusal(await call(name)))
    )
    expect(reported.map(([status, code]) => [status, code])).to.deep.equal([
      [404, 'TOOL_NOT_FOUND'],
      [504, 'TIMEOUT'],
      [500, 'TOOL_EXECUTION_FAILED'],
    ])
    // the same as if this server had counted the time
    expect(refusal(await call('files__slow', { arguments: {}, timeout: 5 }))).to.deep.equal([
      504,
      'TIMEOUT',
      { tool: 'files__slow', timeout_ms: 5_000 },
    ])
    expect(refusal(await call('own_limit'))).to.deep.equal([504, 'TIMEOUT', { tool: 'own_limit' }])
  })

  it('take bodies of up to 4 MiB, more than other routes', async () => {
    const text = 'x'.repeat(3 * 1_048_576)
    expect((await call('echo', { arguments: { text } })).status).to.equal(200)
    expect(refusal(await call('echo', { arguments: { text: text.repeat(2) } }))).to.deep.equal([
      413,
      'PAYLOAD_TOO_LARGE',
      { limit: 4 * 1_048_576 },
    ])
  })

  for (const [what, body, headers, status] of [
    ['malformed JSON', '{"arguments":', {}, 400],
    ['no object', '[]', {}, 400],
    ['another media type', '{}', { 'content-type': 'text/plain' }, 415],
  ] as const)
    it(`refuse a body that is ${what}`, async () => {
      expect((await mcpHost.ask.post('/tools/echo/call', body, headers)).status).to.equal(status)
    })
})
