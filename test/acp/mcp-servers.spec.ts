// Not a unit test: it starts processes
import { fileURLToPath } from 'node:url'
import { type McpServer, methods } from '@agentclientprotocol/sdk'
import { expect } from 'chai'
import { type Editor, makeProject, openEditor } from './support/editor.ts'

const EVERYTHING = fileURLToPath(
  new URL('dist/index.js', import.meta.resolve('@modelcontextprotocol/server-everything/package.json'))
)
const allow = async () => ({ outcome: { outcome: 'selected' as const, optionId: 'allow_once' } })
const everything: McpServer = {
  name: 'every',
  command: process.execPath,
  args: [EVERYTHING, 'stdio'],
  env: [{ name: 'FROM_EDITOR', value: 'yes' }],
}
const last = (editor: Editor, sessionId: string) => {
  const { first } = editor.updates.call(sessionId, editor.updates.of(sessionId, 'tool_call').length - 1)
  const more = editor.updates.of(sessionId, 'tool_call_update').filter(({ toolCallId }) => toolCallId === first.toolCallId)
  return Object.assign({}, first, ...more) as typeof first
}

describe('the MCP servers of the editor', () => {
  it('have tools in their session, which the user allows', async () => {
    await using project = await makeProject()
    const editor = await openEditor(project, { permit: allow })
    const open = (mcpServers: McpServer[]) => editor.agent.request(methods.agent.session.new, { cwd: project.folder, mcpServers })
    const [one, two] = await Promise.all([open([everything]), open([])])
    const echo = '/tool every__echo {"message": "over MCP"}'
    await editor.prompt(one.sessionId, echo)
    expect(JSON.stringify(last(editor, one.sessionId)))
      .to.contain('over MCP')
      .and.contain('"completed"')
    await editor.prompt(two.sessionId, echo)
    expect(JSON.stringify(last(editor, two.sessionId).content)).to.contain('works only in a session')
    // a mode that only reads does not offer them: svc knows nothing of their effects
    await editor.agent.request(methods.agent.session.setMode, { sessionId: one.sessionId, modeId: 'plan' })
    const before = editor.updates.of(one.sessionId, 'tool_call').length
    await editor.prompt(one.sessionId, echo)
    expect(editor.updates.of(one.sessionId, 'tool_call')).to.have.length(before)
    await editor.agent.request(methods.agent.session.close, { sessionId: one.sessionId })
    const calls = editor.updates.of(two.sessionId, 'tool_call').length
    await editor.prompt(two.sessionId, echo)
    expect(editor.updates.of(two.sessionId, 'tool_call'), 'the tool has gone with its session').to.have.length(calls)
    expect((await editor.end()).code).to.equal(0)
  })

  it('that cannot be used are reported, and the session works without them', async () => {
    await using project = await makeProject()
    const editor = await openEditor(project, { capabilities: { session: { notices: {} } } })
    const { sessionId } = await editor.agent.request(methods.agent.session.new, {
      cwd: project.folder,
      mcpServers: [
        { name: 'missing', command: '/no/such/program', args: [], env: [] },
        { name: 'mute', command: process.execPath, args: ['-e', 'process.exit(3)'], env: [] },
        { type: 'http', name: 'remote', url: 'http://127.0.0.1:9/mcp', headers: [] },
      ],
    })
    expect(await editor.prompt(sessionId, 'hello')).to.deep.equal({ stopReason: 'end_turn' })
    const [notice] = editor.updates.of(sessionId, 'notice')
    expect(notice!.description).to.contain('missing: ').and.contain('mute: ').and.contain('remote: svc connects only to local')
    await editor.prompt(sessionId, 'again')
    expect(editor.updates.of(sessionId, 'notice'), 'once').to.have.length(1)
    expect((await editor.end()).err).to.contain('svc does not use some MCP servers of the editor')
  })
})
