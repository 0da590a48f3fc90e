import { once } from 'node:events'
import { connect } from 'node:net'
import { expect } from 'chai'
import { echo, type McpHost, startMcpHost, toolOf } from './support/host.ts'
import { asked, type Back, back, begin, envelope, post, VERSION } from './support/wire.ts'

const fault = ({ status, body, headers }: Back) => {
  expect(headers.get('content-type')).to.equal('application/json')
  expect(body).to.include({ jsonrpc: '2.0' })
  return [status, body.error?.code]
}
const sent = async (mcpHost: McpHost, body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}) =>
  back(await post(mcpHost.url, body, { headers }))

const list = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} })
const MIB = 1_048_576

describe('a bad message to /mcp', () => {
  it('that is no JSON-RPC is refused as such', async () => {
    await using mcpHost = await startMcpHost()
    const bodies: [string, number, number][] = [
      ['', 400, -32700],
      ['{"jsonrpc":"2.0",', 400, -32700],
      ['\u0000', 400, -32700],
      ['7', 400, -32600],
      ['"tools/list"', 400, -32600],
      ['null', 400, -32600],
      ['{}', 400, -32600],
      ['{"jsonrpc":"1.0","id":1,"method":"tools/list"}', 400, -32600],
      ['{"jsonrpc":"2.0","id":1,"method":7}', 400, -32000],
      ['{"jsonrpc":"2.0","id":1}', 400, -32000],
      ['[]', 400, -32000],
      [`[${list},${list}]`, 400, -32000],
    ]
    for (const [body, ...expected] of bodies) expect(fault(await sent(mcpHost, body)), body).to.deep.equal(expected)
    const invalid = Uint8Array.from([...Buffer.from('{"jsonrpc":"2.0","id":"'), 0xff, ...Buffer.from('"}')])
    expect(fault(await sent(mcpHost, invalid))).to.deep.equal([400, -32700])
  })

  it('of the stateless era that is not whole is refused by the code for it', async () => {
    await using mcpHost = await startMcpHost()
    const version = { 'mcp-protocol-version': VERSION }
    const of = (params: object, method = 'tools/list') => JSON.stringify({ jsonrpc: '2.0', id: 'a', method, params })
    const whole = { ...version, 'mcp-method': 'tools/list' }
    const { 'io.modelcontextprotocol/clientCapabilities': _none, ...halfEnvelope } = envelope()
    const cases: [string, string, Record<string, string>, number, number][] = [
      ['no envelope', of({}), whole, 400, -32602],
      ['half an envelope', of({ _meta: halfEnvelope }), whole, 400, -32602],
      ['no header of the version', of({ _meta: envelope() }), { 'mcp-method': 'tools/list' }, 400, -32020],
      [
        'another version in the header',
        of({ _meta: envelope() }),
        { ...whole, 'mcp-protocol-version': '2026-07-29' },
        400,
        -32020,
      ],
      [
        'an unknown version',
        of({ _meta: { ...envelope(), 'io.modelcontextprotocol/protocolVersion': '2099-01-01' } }),
        { ...whole, 'mcp-protocol-version': '2099-01-01' },
        400,
        -32022,
      ],
      ['no header of the method', of({ _meta: envelope() }), version, 400, -32020],
      ['another method in the header', of({ _meta: envelope() }), { ...version, 'mcp-method': 'tools/call' }, 400, -32020],
      ['an unknown method', of({ _meta: envelope() }, 'tools/none'), { ...version, 'mcp-method': 'tools/none' }, 404, -32601],
      ['a batch', `[${of({ _meta: envelope() })}]`, whole, 400, -32600],
    ]
    for (const [what, body, headers, ...expected] of cases)
      expect(fault(await sent(mcpHost, body, headers)), what).to.deep.equal(expected)
  })

  it('whose Mcp-Name is missing or another is refused, and the tool is not called', async () => {
    let calls = 0
    const count = toolOf(async () => {
      calls++
      return { content: [] }
    })
    await using mcpHost = await startMcpHost({ tools: { count, echo } })
    const call = { name: 'count', arguments: {} }
    for (const name of ['echo', '', '=?base64?!?='])
      expect(fault(await asked(mcpHost.url, 'tools/call', call, { headers: { 'mcp-name': name } })), name).to.deep.equal([
        400, -32020,
      ])
    expect(calls).to.equal(0)
    const encoded = `=?base64?${Buffer.from('count').toString('base64')}?=`
    await asked(mcpHost.url, 'tools/call', call, { headers: { 'mcp-name': encoded } })
    expect(calls).to.equal(1)
  })

  it('whose Mcp-Param header is missing, another or not to be read is refused', async () => {
    const region = toolOf(async ({ region: at }) => ({ content: [{ type: 'text', text: at as string }] }), {
      parameters: {
        type: 'object',
        properties: { region: { type: 'string', 'x-mcp-header': 'Region' }, n: { type: 'integer', 'x-mcp-header': 'N' } },
      },
    })
    await using mcpHost = await startMcpHost({ tools: { region } })
    const call = (args: object, headers: Record<string, string>, meta = {}) =>
      asked(mcpHost.url, 'tools/call', { name: 'region', arguments: args }, { headers, meta })
    for (const headers of [{}, { 'mcp-param-region': 'eu' }, { 'mcp-param-region': '=?base64?dXM?=' }]) {
      // on the short way and on the long one
      expect(fault(await call({ region: 'us' }, headers as Record<string, string>))).to.deep.equal([400, -32020])
      expect(fault(await call({ region: 'us' }, headers as Record<string, string>, { progressToken: 1 }))).to.deep.equal([
        400, -32020,
      ])
    }
    for (const [args, headers] of [
      [{ region: 'us' }, { 'mcp-param-region': 'us' }],
      [{ region: 'us' }, { 'mcp-param-region': '=?base64?dXM=?=' }],
      [{ n: 42 }, { 'mcp-param-n': '42.0' }],
      [{}, {}],
    ] as const)
      expect((await call(args, headers as Record<string, string>)).status).to.equal(200)
  })

  it('of another media type, or compressed, is refused with 415', async () => {
    await using mcpHost = await startMcpHost()
    const wrong: Record<string, string>[] = [
      { 'content-type': 'text/plain' },
      { 'content-type': 'application/jsonp' },
      { 'content-encoding': 'gzip' },
    ]
    for (const headers of wrong) expect(fault(await sent(mcpHost, list, headers))).to.deep.equal([415, -32000])
  })

  it('of a session that does not take both forms of an answer is refused with 406', async () => {
    await using mcpHost = await startMcpHost()
    const session = await begin(mcpHost.url)
    const reported = await back(await session.send({ id: 1, method: 'tools/list' }, { headers: { accept: 'application/json' } }))
    expect(fault(reported)).to.deep.equal([406, -32000])
  })

  it('without a session, with an unknown session or version gets an error that says what to do', async () => {
    await using mcpHost = await startMcpHost()
    expect(fault(await sent(mcpHost, list))).to.deep.equal([400, -32000])
    for (const id of ['none', 'x'.repeat(5_000), `${Buffer.from('other').toString('base64url')}.${crypto.randomUUID()}`])
      expect(fault(await sent(mcpHost, list, { 'mcp-session-id': id }))).to.deep.equal([404, -32001])
    const session = await begin(mcpHost.url)
    const headers = { 'mcp-protocol-version': '1999-01-01' }
    expect(fault(await back(await session.send({ id: 1, method: 'tools/list' }, { headers })))).to.deep.equal([400, -32000])
  })

  it('of a method of HTTP that the protocol has not, or to no address of it, is refused', async () => {
    await using mcpHost = await startMcpHost()
    const put = await back(await fetch(`${mcpHost.url}/mcp`, { method: 'PUT', body: list }))
    expect(fault(put)).to.deep.equal([405, -32000])
    expect(put.headers.get('allow')).to.equal('GET, POST, DELETE')
    expect(fault(await back(await fetch(`${mcpHost.url}/mcp`)))).to.deep.equal([400, -32000])
    expect(fault(await back(await post(mcpHost.url, list, { path: '/mcp/none' })))).to.deep.equal([404, -32601])
  })

  it('of 5 MiB is refused with 413, whether it says so before or not', async () => {
    await using mcpHost = await startMcpHost()
    const large = JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'echo', arguments: { text: 'x'.repeat(5 * MIB) } },
    })
    expect(fault(await sent(mcpHost, large))).to.deep.equal([413, -32000])
    const { hostname, port } = new URL(mcpHost.url)
    const socket = connect(Number(port), hostname).setEncoding('utf8')
    let text = ''
    socket.on('data', chunk => (text += chunk)).on('error', () => {})
    socket.write('POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n')
    const chunk = `100000\r\n${'x'.repeat(MIB)}\r\n`
    for (let at = 0; at < 5; at++) socket.write(chunk)
    socket.write('0\r\n\r\n')
    await once(socket, 'close')
    expect(text).to.match(/^HTTP\/1\.1 413 /)
    expect((await asked(mcpHost.url, 'tools/list')).status).to.equal(200)
  })

  it('of 4 MiB but for a little is taken', async () => {
    await using mcpHost = await startMcpHost()
    const text = 'x'.repeat(4 * MIB - 1_000)
    const { body } = await asked(mcpHost.url, 'tools/call', { name: 'echo', arguments: { text } })
    expect(body.result).to.have.nested.property('content[0].text').that.equals(text)
  })

  it('that is nested without end is refused, in arguments and everywhere else', async () => {
    await using mcpHost = await startMcpHost()
    const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`
    for (const params of [`{"name":"echo","arguments":{"text":${deep}}}`, `{"_meta":${deep}}`, deep]) {
      const body = `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":${params}}`
      const reported = await sent(mcpHost, body)
      expect(fault(reported)).to.deep.equal([400, -32600])
      expect(reported.body).to.include({ id: 5 })
    }
    expect(fault(await sent(mcpHost, deep))).to.deep.equal([400, -32600])
  })

  it('calls no tool that is not published: unknown names are -32602, names of prototypes too', async () => {
    await using mcpHost = await startMcpHost()
    for (const name of ['none', '__proto__', 'constructor', 'toString'])
      expect((await asked(mcpHost.url, 'tools/call', { name, arguments: {} })).body.error?.code, name).to.equal(-32602)
  })

  it('with arguments that do not match the schema gets a result that says so', async () => {
    await using mcpHost = await startMcpHost()
    const session = await begin(mcpHost.url)
    for (const args of [{}, { text: 7 }, { text: 'x', more: 1 }, { text: 'x', deep: { n: 'one' } }]) {
      const call = { name: 'echo', arguments: args }
      for (const { status, body } of [await asked(mcpHost.url, 'tools/call', call), await session.request('tools/call', call)]) {
        expect([status, body.result?.isError]).to.deep.equal([200, true])
        expect(JSON.stringify(body.result?.content)).to.contain('The arguments do not match the schema')
      }
    }
  })

  it('with a cursor that leads nowhere is refused', async () => {
    await using mcpHost = await startMcpHost()
    for (const cursor of ['', 'not a name', 'x'.repeat(1_000)])
      expect((await asked(mcpHost.url, 'tools/list', { cursor })).body.error?.code).to.equal(-32602)
  })
})
