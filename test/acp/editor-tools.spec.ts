// Not a unit test: it starts processes
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type ClientApp, methods, RequestError, type RequestPermissionRequest } from '@agentclientprotocol/sdk'
import { expect } from 'chai'
import { makeProject, openEditor, type Editor } from './support/editor.ts'

const FILES = { fs: { readTextFile: true, writeTextFile: true } }
const allow = async () => ({ outcome: { outcome: 'selected' as const, optionId: 'allow_once' } })
const call = (tool: string, args: object) => `/tool ${tool} ${JSON.stringify(args)}`
const lastText = (editor: Editor, sessionId: string, at: number) =>
  JSON.stringify(editor.updates.call(sessionId, at).last.content)

/** An editor with buffers that are not saved. */
function withFiles(buffers: Map<string, string>) {
  const asked: string[] = []
  const serve = (app: ClientApp) =>
    app
      .onRequest(methods.client.fs.readTextFile, async ({ params: { path, line, limit } }) => {
        asked.push(path)
        const text = buffers.get(path) ?? (await readFile(path, 'utf8').catch(() => undefined))
        if (text === undefined) throw RequestError.resourceNotFound(path)
        const from = (line ?? 1) - 1
        return {
          content: text
            .split('\n')
            .slice(from, typeof limit === 'number' ? from + limit : undefined)
            .join('\n'),
        }
      })
      .onRequest(methods.client.fs.writeTextFile, async ({ params: { path, content } }) => {
        asked.push(path)
        await writeFile(path, content)
      })
  return { asked, serve }
}

interface FakeTerminal {
  readonly params: { readonly command: string; readonly args?: string[]; readonly cwd?: string | null }
  output: string
  exit: { exitCode: number | null; signal: string | null } | undefined
  readonly ended: PromiseWithResolvers<void>
  state: 'open' | 'killed' | 'released'
}

/** An editor whose terminals end when the test says so. */
function withTerminals(begin: (terminal: FakeTerminal) => void) {
  const terminals: FakeTerminal[] = []
  const terminalOf = (id: string) => terminals[Number(id.slice('term_'.length))]!
  const serve = (app: ClientApp) =>
    app
      .onRequest(methods.client.terminal.create, ({ params }) => {
        const ended = Promise.withResolvers<void>()
        const terminal: FakeTerminal = { params, output: '', exit: undefined, ended, state: 'open' }
        terminals.push(terminal)
        begin(terminal)
        return { terminalId: `term_${terminals.length - 1}` }
      })
      .onRequest(methods.client.terminal.output, ({ params }) => {
        const { output, exit } = terminalOf(params.terminalId)
        return { output, truncated: false, ...(exit ? { exitStatus: exit } : {}) }
      })
      .onRequest(methods.client.terminal.waitForExit, async ({ params, signal }) => {
        const terminal = terminalOf(params.terminalId)
        const aborted = new Promise(resolve => signal.addEventListener('abort', resolve, { once: true }))
        await Promise.race([terminal.ended.promise, aborted])
        if (!terminal.exit) throw RequestError.requestCancelled()
        return terminal.exit
      })
      .onRequest(methods.client.terminal.kill, ({ params }) => {
        const terminal = terminalOf(params.terminalId)
        terminal.state = 'killed'
        terminal.exit = { exitCode: null, signal: 'SIGKILL' }
        terminal.ended.resolve()
      })
      .onRequest(methods.client.terminal.release, ({ params }) => {
        const terminal = terminalOf(params.terminalId)
        terminal.state = 'released'
        terminal.ended.resolve()
      })
  return { terminals, serve }
}

describe('the files of the editor', () => {
  it('are read and written as tools, with the change shown to the user', async () => {
    await using project = await makeProject({ 'a.txt': 'saved' })
    const path = join(project.folder, 'a.txt')
    const files = withFiles(new Map([[path, 'one\ntwo\nthree']]))
    const permissions: RequestPermissionRequest[] = []
    const permit = async (request: RequestPermissionRequest) => {
      permissions.push(request)
      return allow()
    }
    const editor = await openEditor(project, { capabilities: FILES, serve: files.serve, permit })
    const { sessionId } = await editor.newSession()
    await editor.prompt(sessionId, call('editor_read_file', { path: 'a.txt' }))
    expect(lastText(editor, sessionId, 0)).to.contain('one\\ntwo\\nthree')
    expect(editor.updates.call(sessionId, 0).first).to.deep.include({ kind: 'read', locations: [{ path }] })
    await editor.prompt(sessionId, call('editor_read_file', { path, line: 2, limit: 1 }))
    expect(editor.updates.call(sessionId, 1).last.content).to.deep.equal([
      { type: 'content', content: { type: 'text', text: 'two' } },
    ])
    expect(files.asked).to.deep.equal([path, path])
    expect(permissions).to.deep.equal([])
    await editor.prompt(sessionId, call('editor_write_file', { path: 'a.txt', content: 'new' }))
    const diff = { type: 'diff', path, oldText: 'one\ntwo\nthree', newText: 'new' }
    expect(permissions[0]!.toolCall.kind).to.equal('edit')
    expect(permissions[0]!.toolCall.content).to.deep.include(diff)
    const written = editor.updates.call(sessionId, 2).last
    expect(written).to.deep.include({ status: 'completed', content: [diff], locations: [{ path }] })
    expect(await project.read('a.txt')).to.equal('new')
    await mkdir(join(project.folder, 'sub'))
    await editor.prompt(sessionId, call('editor_write_file', { path: 'sub/b.txt', content: 'fresh' }))
    expect(permissions[1]!.toolCall.content).to.deep.include({
      type: 'diff',
      path: join(project.folder, 'sub/b.txt'),
      oldText: null,
      newText: 'fresh',
    })
    expect(await project.read('sub/b.txt')).to.equal('fresh')
    await editor.end()
  })

  it('stay within the folders of the session, and leave protected files alone', async () => {
    await using project = await makeProject({ 'in/a.txt': 'inside', 'out.txt': 'outside', 'more/m.txt': 'more' })
    const inside = join(project.folder, 'in')
    await symlink(join(project.folder, 'out.txt'), join(inside, 'link.txt'))
    await symlink(project.folder, join(inside, 'up'))
    await mkdir(join(inside, '.git/hooks'), { recursive: true })
    const files = withFiles(new Map())
    const editor = await openEditor(project, { capabilities: FILES, serve: files.serve, permit: allow })
    const { sessionId } = await editor.newSession(inside)
    const outside = [
      '../out.txt',
      join(project.folder, 'out.txt'),
      'link.txt',
      'up/out.txt',
      '/etc/passwd',
      '../in2/x',
      '../more/m.txt',
      'a\u0000.txt',
    ]
    let at = 0
    for (const path of outside)
      for (const tool of [call('editor_read_file', { path }), call('editor_write_file', { path, content: 'x' })]) {
        await editor.prompt(sessionId, tool)
        expect(editor.updates.call(sessionId, at++).last.status, tool).to.equal('failed')
      }
    for (const path of ['.git/hooks/pre-commit', 'svc.config.yaml', '.git/config']) {
      await editor.prompt(sessionId, call('editor_write_file', { path, content: 'x' }))
      expect(lastText(editor, sessionId, at++), path).to.contain('read-only')
    }
    expect(files.asked, 'the editor was never asked').to.deep.equal([])
    expect(await project.read('out.txt')).to.equal('outside')
    await editor.prompt(sessionId, call('editor_read_file', { path: 'a.txt' }))
    expect(lastText(editor, sessionId, at)).to.contain('inside')
    const wide = await editor.agent.request(methods.agent.session.new, {
      cwd: inside,
      additionalDirectories: [join(project.folder, 'more')],
      mcpServers: [],
    })
    await editor.prompt(wide.sessionId, call('editor_read_file', { path: '../more/m.txt' }))
    expect(lastText(editor, wide.sessionId, 0)).to.contain('more')
    await editor.prompt(wide.sessionId, call('editor_read_file', { path: 'a.txt' }))
    expect(lastText(editor, wide.sessionId, 1)).to.contain('inside')
    await editor.end()
  })

  it('are not written in a mode that only reads', async () => {
    await using project = await makeProject({ 'a.txt': 'old' })
    const files = withFiles(new Map())
    const editor = await openEditor(project, {
      args: ['--mode', 'plan'],
      capabilities: { ...FILES, terminal: true },
      serve: files.serve,
      permit: allow,
    })
    const { sessionId } = await editor.newSession()
    await editor.prompt(
      sessionId,
      `${call('editor_write_file', { path: 'a.txt', content: 'x' })}\n${call('editor_run_command', { command: 'ls' })}`
    )
    expect(editor.updates.of(sessionId, 'tool_call'), 'they are not offered').to.deep.equal([])
    expect(files.asked).to.deep.equal([])
    await editor.prompt(sessionId, call('editor_read_file', { path: 'a.txt' }))
    expect(lastText(editor, sessionId, 0)).to.contain('old')
    await editor.end()
  })

  it('are tools only if the editor has them and the configuration allows it', async () => {
    await using project = await makeProject({ 'a.txt': 'old' })
    const run = async (capabilities: object, more: string = '') => {
      if (more) await project.write('svc.config.yaml', more)
      const editor = await openEditor(project, { capabilities })
      const { sessionId } = await editor.newSession()
      await editor.prompt(sessionId, call('editor_read_file', { path: 'a.txt' }))
      const calls = editor.updates.of(sessionId, 'tool_call').length
      await editor.end()
      return calls
    }
    expect(await run({})).to.equal(0)
    expect(await run({ fs: { readTextFile: false, writeTextFile: true } })).to.equal(0)
    expect(await run({ fs: { readTextFile: true } })).to.equal(1)
    expect(await run({ fs: { readTextFile: true } }, 'acp: { editor_tools: false }\n')).to.equal(0)
  })

  it('report what an editor answers wrongly, or not at all', async () => {
    await using project = await makeProject({ 'a.txt': 'old', 'svc.config.yaml': 'chat: { tool_timeout_ms: 700 }\n' })
    let answer: () => unknown = () => ({ content: 5 })
    const serve = (app: ClientApp) => app.onRequest(methods.client.fs.readTextFile, () => answer() as { content: string })
    const editor = await openEditor(project, { capabilities: FILES, serve })
    const { sessionId } = await editor.newSession()
    const answers: [() => unknown, RegExp][] = [
      [() => ({ content: 5 }), /answer is invalid/],
      [() => null, /answer is invalid/],
      [() => Promise.reject(new RequestError(-32002, 'no such buffer')), /no such buffer/],
      [() => new Promise(() => {}), /did not end|time|timeout/i],
    ]
    for (const [at, [next, pattern]] of answers.entries()) {
      answer = next
      expect(await editor.prompt(sessionId, call('editor_read_file', { path: 'a.txt' }))).to.deep.equal({
        stopReason: 'end_turn',
      })
      expect(lastText(editor, sessionId, at)).to.match(pattern)
    }
    await editor.end()
  })
})

describe('the terminals of the editor', () => {
  it('run a command that the user allows, and show it while it runs', async () => {
    await using project = await makeProject()
    await mkdir(join(project.folder, 'sub'))
    const { terminals, serve } = withTerminals(terminal => {
      terminal.output = 'all tests passed'
      terminal.exit = { exitCode: 0, signal: null }
      terminal.ended.resolve()
    })
    const asked: RequestPermissionRequest[] = []
    const permit = async (request: RequestPermissionRequest) => {
      asked.push(request)
      return allow()
    }
    const editor = await openEditor(project, { capabilities: { terminal: true }, serve, permit })
    const { sessionId } = await editor.newSession()
    await editor.prompt(sessionId, call('editor_run_command', { command: 'npm', args: ['test'], cwd: 'sub' }))
    expect(asked[0]!.toolCall).to.include({ kind: 'execute', title: 'Run in the editor: npm test' })
    expect(terminals[0]!.params).to.deep.include({ command: 'npm', args: ['test'], cwd: join(project.folder, 'sub') })
    const { last } = editor.updates.call(sessionId)
    expect(last).to.deep.include({ status: 'completed', content: [{ type: 'terminal', terminalId: 'term_0' }] })
    expect(JSON.stringify(last.rawOutput)).to.contain('exit code 0').and.contain('all tests passed')
    expect(terminals[0]!.state).to.equal('released')
    await editor.prompt(sessionId, call('editor_run_command', { command: 'ls', cwd: '..' }))
    expect(editor.updates.call(sessionId, 1).last.status, 'another folder').to.equal('failed')
    expect(terminals).to.have.length(1)
    await editor.end()
  })

  it('let a command run on, whose output the model reads and which it stops', async () => {
    await using project = await makeProject()
    const { terminals, serve } = withTerminals(terminal => (terminal.output = 'listening'))
    const editor = await openEditor(project, { capabilities: { terminal: true }, serve, permit: allow })
    const { sessionId } = await editor.newSession()
    await editor.prompt(sessionId, call('editor_run_command', { command: 'serve', wait_s: 0 }))
    expect(JSON.stringify(editor.updates.call(sessionId, 0).last.rawOutput))
      .to.contain('still running')
      .and.contain('term_0')
    terminals[0]!.output = 'listening, one request'
    await editor.prompt(sessionId, call('editor_command_output', { id: 'term_0' }))
    expect(lastText(editor, sessionId, 1)).to.contain('one request')
    const other = await editor.newSession()
    await editor.prompt(other.sessionId, call('editor_command_output', { id: 'term_0' }))
    expect(lastText(editor, other.sessionId, 0), 'of another session').to.contain('there is no running command')
    await editor.prompt(sessionId, call('editor_stop_command', { id: 'term_0' }))
    expect(lastText(editor, sessionId, 2)).to.contain('stopped')
    expect(terminals[0]!.state).to.equal('released')
    await editor.prompt(sessionId, call('editor_stop_command', { id: 'term_0' }))
    expect(lastText(editor, sessionId, 3)).to.contain('there is no running command')
    await editor.end()
  })

  it('end with a cancelled prompt and with a closed session', async () => {
    await using project = await makeProject()
    const begun = Promise.withResolvers<void>()
    const { terminals, serve } = withTerminals(() => begun.resolve())
    const editor = await openEditor(project, { capabilities: { terminal: true }, serve, permit: allow })
    const { agent, updates } = editor
    const { sessionId } = await editor.newSession()
    const turn = editor.prompt(sessionId, call('editor_run_command', { command: 'sleep', args: ['100'] }))
    await begun.promise
    await updates.until(() => updates.of(sessionId, 'tool_call_update').some(({ content }) => content?.[0]?.type === 'terminal'))
    await agent.notify(methods.agent.session.cancel, { sessionId })
    expect(await turn).to.deep.equal({ stopReason: 'cancelled' })
    await terminals[0]!.ended.promise
    expect(terminals[0]!.state).to.equal('released')
    await editor.prompt(sessionId, call('editor_run_command', { command: 'serve', wait_s: 0 }))
    await agent.request(methods.agent.session.close, { sessionId })
    expect(terminals[1]!.state).to.equal('released')
    await editor.end()
  })
})
