import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { toNodeHandler } from '@modelcontextprotocol/node'
import { type CallToolResult, createMcpHandler, ProtocolError, Server } from '@modelcontextprotocol/server'
import type { ToolStep } from '@svc/core/contracts'
import type { McpClient } from '@svc/plugin-mcp-client/client'
import { expect } from 'chai'
import { forever, remote, steps } from './support/client.ts'

const PAGE = 40
const TOOLS = Array.from({ length: 2 * PAGE + 1 }, (_, at) => ({
  name: `tool_${at}`,
  title: `Tööl "${at}"`,
  description: 'Does one thing.\nOr two.',
  inputSchema: { type: 'object' as const, properties: { at: { type: 'integer', default: at } }, additionalProperties: false },
  annotations: { readOnlyHint: at % 2 === 0 },
}))
const RESULTS: Readonly<Record<string, CallToolResult>> = {
  text: { content: [{ type: 'text', text: 'ä "quoted" \\ 😀' }] },
  structured: { content: [{ type: 'text', text: '{}' }], structuredContent: { deep: [{ a: null }, 1e21, true] } },
  parts: {
    content: [
      { type: 'image', data: 'AAAA', mimeType: 'image/png' },
      { type: 'resource_link', uri: 'file:///a', name: 'a' },
      { type: 'resource', resource: { uri: 'file:///b', text: 'b' } },
    ],
  },
  empty: { content: [] },
  failed: { content: [{ type: 'text', text: 'no luck' }], isError: true },
  annotated: { content: [{ type: 'text', text: 'x', annotations: { audience: ['user'] } }], _meta: { 'example/own': { a: 1 } } },
}

/** One server for both clients: what it lists and answers, and whom it saw leave. */
async function openServer() {
  const aborted: string[] = []
  const begun: PromiseWithResolvers<void>[] = []
  const handler = createMcpHandler(() => {
    const server = new Server({ name: 'one', version: '1.0.0' }, { capabilities: { tools: {} } })
    server.setRequestHandler('tools/list', ({ params }) => {
      const from = Number(params?.cursor ?? 0)
      return { tools: TOOLS.slice(from, from + PAGE), ...(from + PAGE < TOOLS.length && { nextCursor: String(from + PAGE) }) }
    })
    server.setRequestHandler('tools/call', async ({ params: { name, arguments: args } }, { mcpReq }) => {
      if (name === 'echo') return { content: [{ type: 'text', text: JSON.stringify(args) }] }
      if (name === 'unknown') throw new ProtocolError(-32602, 'Unknown tool: unknown')
      if (name === 'broken') throw new ProtocolError(-32603, 'it broke')
      if (name === 'endless') {
        const over = new Promise(resolve => mcpReq.signal.addEventListener('abort', resolve, { once: true }))
        begun.shift()?.resolve()
        await over
        aborted.push(name)
        throw mcpReq.signal.reason
      }
      const progressToken = mcpReq._meta?.progressToken
      if (name === 'steps' && progressToken !== undefined)
        for (const progress of [1, 2])
          await mcpReq.notify({
            method: 'notifications/progress',
            params: { progressToken, progress, total: 2, message: `${progress}` },
          })
      return RESULTS[name] ?? { content: [] }
    })
    return server
  })
  const http = createServer(toNodeHandler(handler))
  await once(http.listen(0, '127.0.0.1'), 'listening')
  return {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`,
    aborted,
    /** Resolves when the next endless call runs. */
    runs() {
      begun.push(Promise.withResolvers<void>())
      return begun.at(-1)!.promise
    },
    async [Symbol.asyncDispose]() {
      http.closeAllConnections()
      http.close()
    },
  }
}

for (const mode of ['auto', 'legacy'] as const)
  describe(`tools/list and tools/call past the SDK, of a server of the ${mode === 'auto' ? 'stateless' : 'older'} era,`, () => {
    let server: Awaited<ReturnType<typeof openServer>>
    let ours: McpClient
    let sdk: Client
    before(async () => {
      server = await openServer()
      ours = remote(server.url, mode === 'legacy' ? { known: { era: 'legacy', since: Date.now() } } : {})
      sdk = new Client({ name: 'svc', version: '0.1.0' }, { versionNegotiation: { mode } })
      await sdk.connect(new StreamableHTTPClientTransport(new URL(server.url)))
    })
    after(async () => {
      await ours.close()
      await sdk.close()
      await server[Symbol.asyncDispose]()
    })

    it("give the SDK's list, of all pages", async () => {
      const { tools, problems } = await ours.listTools()
      expect(problems).to.deep.equal([])
      // beside the server's words: what was taken out of them, and what follows from them
      const words = tools.map(({ hash: _hash, stripped, paramHeaders: _headers, ...tool }) => {
        expect(stripped).to.deep.equal([])
        return tool
      })
      expect(words).to.deep.equal((await sdk.listTools()).tools)
      expect(tools).to.have.length(TOOLS.length)
    })

    for (const name of [...Object.keys(RESULTS), 'echo'])
      it(`give the SDK's result: ${name}`, async () => {
        const args = { a: [1, 'ä', null], b: { c: true } }
        const { content, structuredContent, isError, _meta = {} } = await sdk.callTool({ name, arguments: args })
        const step = (await steps(ours.call(name, args, {}, forever()))).at(-1) as ToolStep & { type: 'result' }
        const meta = Object.entries(_meta).filter(([key]) => !key.startsWith('io.modelcontextprotocol/'))
        expect(step).to.deep.equal({
          type: 'result',
          result: {
            content,
            ...(structuredContent !== undefined && { structured: structuredContent }),
            ...(isError === true && { isError }),
            ...(meta.length > 0 && { meta: Object.fromEntries(meta) }),
          },
        })
      })

    it("give the SDK's error, and a class of their own where there is no such tool", async () => {
      const errorOf = (name: string) =>
        sdk.callTool({ name, arguments: {} }).catch((error: unknown) => error as { code: number; message: string })
      expect(await errorOf('broken')).to.include({ code: -32603, message: 'it broke' })
      expect((await ours.callTool('broken', {})).error?.message).to.contain('it broke')
      expect(await errorOf('unknown')).to.include({ code: -32602 })
      expect((await ours.callTool('unknown', {})).error?.class).to.equal('tool_not_found')
    })

    it("give the SDK's progress", async () => {
      const theirs: object[] = []
      await sdk.callTool({ name: 'steps', arguments: {} }, { onprogress: progress => void theirs.push(progress) })
      const received = await steps(ours.call('steps', {}, {}, forever()))
      expect(received.slice(0, -1)).to.deep.equal(theirs.map(their => ({ type: 'progress', ...their })))
      expect(theirs).to.have.length(2)
    })

    // a stateless server of the SDK does not hear of it from a client of the older era
    if (mode === 'auto')
      it('are cancelled at the server as by the SDK', async () => {
        const [before, leaving] = [server.aborted.length, new AbortController()]
        for (const call of [
          () => sdk.callTool({ name: 'endless', arguments: {} }, { signal: leaving.signal }),
          () => steps(ours.call('endless', {}, {}, { signal: leaving.signal })),
        ]) {
          const running = server.runs()
          void call().catch(() => {})
          await running
        }
        leaving.abort(new Error('enough'))
        while (server.aborted.length < before + 2) await new Promise(resolve => setImmediate(resolve))
      })
  })
