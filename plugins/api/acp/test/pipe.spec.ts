import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough, Readable, Writable } from 'node:stream'
import { client, type ClientCapabilities, methods, ndJsonStream, type SessionUpdate } from '@agentclientprotocol/sdk'
import { systemContext } from '@svc/core'
import { Pipes, Tools } from '@svc/core/contracts'
import { testHost } from '@svc/testing'
import { expect } from 'chai'
import { pluginFolder } from '../../../../test/support/plugin-folder.ts'

const PLUGINS = ['acp', 'chat', 'conversations', 'selection', 'modes', 'model-calls', 'provider-local', 'store-memory']
const EDITOR_TOOLS = [
  'editor_command_output',
  'editor_read_file',
  'editor_run_command',
  'editor_stop_command',
  'editor_write_file',
]

/** A host whose calls all cross a process boundary, as the kit makes them. */
async function startHost(acp: object = {}) {
  const home = mkdtempSync(join(tmpdir(), 'svc-acp-'))
  writeFileSync(join(home, 'profiles.yaml'), 'default: one\nprofiles: { one: {} }\n')
  const host = await testHost(PLUGINS.map(pluginFolder), {
    config: { acp, providers: { local: {} }, selection: { profiles_file: join(home, 'profiles.yaml') } },
    version: '1.2.3',
  })
  return {
    host,
    home,
    names: () => host.slot(Tools).names().toSorted(),
    async [Symbol.asyncDispose]() {
      await host.close()
      rmSync(home, { recursive: true })
    },
  }
}

/** An editor at the other end of a pair of streams. */
function connect({ host }: Awaited<ReturnType<typeof startHost>>, clientCapabilities: ClientCapabilities = {}) {
  const [input, output] = [new PassThrough(), new PassThrough()]
  const ending = new AbortController()
  const served = host.slot(Pipes).get('acp')!.serve(input, output, systemContext(ending.signal, 'editor'))
  const updates: SessionUpdate[] = []
  const connection = client()
    .onNotification(methods.client.session.update, ({ params }) => void updates.push(params.update))
    .connect(
      ndJsonStream(
        Writable.toWeb(input) as WritableStream<Uint8Array>,
        Readable.toWeb(output) as unknown as ReadableStream<Uint8Array>
      )
    )
  const { agent } = connection
  return {
    agent,
    served,
    ending,
    input,
    output,
    updates,
    initialize: () => agent.request(methods.agent.initialize, { protocolVersion: 1, clientCapabilities }),
    prompt: (sessionId: string, text: string) =>
      agent.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: 'text', text }] }),
  }
}

describe('the pipe of the editor', () => {
  it('serves an editor, and ends with its input', async () => {
    await using acp = await startHost()
    const editor = connect(acp)
    expect((await editor.initialize()).agentInfo).to.deep.equal({ name: 'svc', title: 'svc', version: '1.2.3' })
    const { sessionId } = await editor.agent.request(methods.agent.session.new, { cwd: acp.home, mcpServers: [] })
    expect(await editor.prompt(sessionId, 'hello')).to.deep.equal({ stopReason: 'end_turn' })
    expect(editor.updates.every(({ sessionUpdate }) => sessionUpdate === 'agent_message_chunk')).to.equal(true)
    editor.input.end()
    await editor.served
  })

  it('adds the tools of the editor for as long as it is connected', async () => {
    await using acp = await startHost()
    expect(acp.names()).to.deep.equal([])
    const editor = connect(acp, { fs: { readTextFile: true, writeTextFile: true }, terminal: true })
    await editor.initialize()
    expect(acp.names()).to.deep.equal(EDITOR_TOOLS)
    await editor.initialize()
    expect(acp.names(), 'a repeated initialize').to.deep.equal(EDITOR_TOOLS)
    // only a turn of one of its sessions can call them
    const ctx = systemContext(new AbortController().signal, 'other')
    const error = await acp.host
      .slot(Tools)
      .get('editor_read_file')!
      .call({ path: 'a' }, ctx)
      .catch((reason: unknown) => reason)
    expect(error).to.include({ code: 'EDITOR_MISSING' })
    editor.input.end()
    await editor.served
    expect(acp.names()).to.deep.equal([])
  })

  it('ends its turns when the host stops serving', async () => {
    await using acp = await startHost()
    const editor = connect(acp)
    await editor.initialize()
    const { sessionId } = await editor.agent.request(methods.agent.session.new, { cwd: acp.home, mcpServers: [] })
    const failed = editor.prompt(sessionId, 'a long answer of many words\n/pace 200').catch((error: unknown) => error)
    while (editor.updates.length === 0) await new Promise(resolve => setTimeout(resolve, 10))
    editor.ending.abort()
    await editor.served
    editor.output.end()
    expect(await failed).to.be.instanceOf(Error)
  })

  it('opens a limited number of sessions', async () => {
    await using acp = await startHost()
    const editor = connect(acp)
    await editor.initialize()
    const open = () => editor.agent.request(methods.agent.session.new, { cwd: acp.home, mcpServers: [] })
    await Promise.all(Array.from({ length: 256 }, open))
    const error = await open().catch((reason: unknown) => reason)
    expect(error).to.include({ code: -32600 })
    editor.input.end()
    await editor.served
  })

  it('handles a cancellation after the prompt that precedes it, and before the one that follows', async () => {
    await using acp = await startHost()
    const editor = connect(acp)
    await editor.initialize()
    const { sessionId } = await editor.agent.request(methods.agent.session.new, { cwd: acp.home, mcpServers: [] })
    const first = editor.prompt(sessionId, 'one two three four five\n/delay 60000')
    void editor.agent.notify(methods.agent.session.cancel, { sessionId })
    expect(await first).to.deep.equal({ stopReason: 'cancelled' })
    void editor.agent.notify(methods.agent.session.cancel, { sessionId })
    expect(await editor.prompt(sessionId, 'two')).to.deep.equal({ stopReason: 'end_turn' })
    editor.input.end()
    await editor.served
  })
})
