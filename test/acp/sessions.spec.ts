// Not a unit test: it starts processes
import { symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { methods } from '@agentclientprotocol/sdk'
import { expect } from 'chai'
import { errorOf, makeProject, openEditor } from './support/editor.ts'
import { callOf, finish, script, TEXT } from './support/scripted.ts'
import { SCRIPTED } from './support/scripted-config.ts'

describe('svc acp', () => {
  it('says what it offers, and only that', async () => {
    await using project = await makeProject()
    const editor = await openEditor(project)
    expect(editor.initialized.protocolVersion).to.equal(1)
    expect(editor.initialized.authMethods).to.deep.equal([])
    expect(editor.initialized.agentInfo).to.include({ name: 'svc' })
    expect(editor.initialized.agentCapabilities).to.deep.equal({
      loadSession: true,
      promptCapabilities: { image: false, audio: false, embeddedContext: true },
      mcpCapabilities: { http: false, sse: false },
      sessionCapabilities: { list: {}, resume: {}, close: {}, delete: {}, additionalDirectories: {} },
    })
    // a client of a later version gets the version that svc has
    expect(await editor.agent.request(methods.agent.initialize, { protocolVersion: 7 })).to.include({ protocolVersion: 1 })
    expect(await errorOf(editor.agent.request(methods.agent.authenticate, { methodId: 'none' }))).to.include({ code: -32601 })
    await editor.end()
  })

  it('answers a prompt in pieces, and writes only the protocol to its output', async () => {
    await using project = await makeProject({
      'loud.ts':
        "console.log('loud')\nexport default { requires: {}, optional: {}, setup() { process.stdout.write('loud\\n') } }\n",
      'svc.config.yaml': 'plugins: [./loud.ts]\n',
    })
    const editor = await openEditor(project, { args: ['--debug'] })
    const { sessionId } = await editor.newSession()
    expect(await editor.prompt(sessionId, 'hello there')).to.deep.equal({ stopReason: 'end_turn' })
    expect(editor.updates.text(sessionId)).to.equal('You said: hello there')
    expect(editor.updates.of(sessionId, 'agent_message_chunk')).to.have.length.above(1)
    expect(await editor.prompt(sessionId, 'and again')).to.deep.equal({ stopReason: 'end_turn' })
    expect(editor.updates.text(sessionId), 'it is one conversation').to.contain('(turn 2)')
    const { code, out, err } = await editor.end()
    expect(code, err).to.equal(0)
    for (const line of out.trimEnd().split('\n')) expect(JSON.parse(line)).to.include({ jsonrpc: '2.0' })
    expect(err).to.contain('loud').and.contain('plugin')
  })

  it('takes links and embedded text, and refuses what chat does not take', async () => {
    await using project = await makeProject(SCRIPTED)
    const editor = await openEditor(project, { args: ['--model', 'scripted/one'] })
    const { sessionId } = await editor.newSession()
    await editor.agent.request(methods.agent.session.prompt, {
      sessionId,
      prompt: [
        { type: 'text', text: 'Explain ' },
        { type: 'resource_link', uri: 'file:///a/b%20c.ts', name: 'b c.ts' },
        { type: 'text', text: ' with ' },
        { type: 'resource', resource: { uri: 'file:///a/notes.md', text: 'one\n```\ntwo\n```', mimeType: 'text/markdown' } },
        { type: 'resource', resource: { uri: 'file:///a/logo.png', blob: 'AAAA', mimeType: 'image/png' } },
      ],
    })
    expect(editor.updates.text(sessionId)).to.equal(
      'heard: Explain [b c.ts](file:///a/b%20c.ts) with [notes.md](file:///a/notes.md)[logo.png](file:///a/logo.png)\n\n' +
        'Content of file:///a/notes.md:\n````\none\n```\ntwo\n```\n````\n\n' +
        'The content of file:///a/logo.png (image/png) is not text and is left out.'
    )
    const prompt = (block: { type: 'image' | 'audio'; data: string; mimeType: string }) =>
      editor.agent.request(methods.agent.session.prompt, { sessionId, prompt: [block] })
    expect(await errorOf(prompt({ type: 'image', data: 'AAAA', mimeType: 'image/png' }))).to.include({ code: -32602 })
    expect(await errorOf(prompt({ type: 'audio', data: 'AAAA', mimeType: 'audio/wav' }))).to.include({ code: -32602 })
    expect(await errorOf(editor.prompt(sessionId, '  '))).to.include({ code: -32602 })
    await editor.end()
  })

  it('reports why a turn ended', async () => {
    await using project = await makeProject({
      'svc.config.yaml': `${SCRIPTED['svc.config.yaml']}chat: { max_rounds: 3 }\n`,
    })
    const editor = await openEditor(project, { args: ['--model', 'scripted/one'] })
    const { sessionId } = await editor.newSession()
    const reasonOf = async (words: string) => (await editor.prompt(sessionId, words)).stopReason
    expect(await reasonOf(script([TEXT, finish('stop')]))).to.equal('end_turn')
    expect(await reasonOf(script([TEXT, finish('length')]))).to.equal('max_tokens')
    expect(await reasonOf(script([TEXT, finish('content_filter')]))).to.equal('refusal')
    expect(await reasonOf(script([{ type: 'fail', kind: 'content_refused' }]))).to.equal('refusal')
    expect(await reasonOf(script([callOf('facts'), finish('tool_calls')])), 'a model that never stops').to.equal(
      'max_turn_requests'
    )
    const failed = await errorOf(editor.prompt(sessionId, script([{ type: 'fail', kind: 'bad_request' }])))
    expect(failed).to.include({ code: -32603 })
    expect(failed.message).to.contain('as the script says')
    expect(failed.data).to.include({ code: 'MODEL_FAILED' })
    expect(await reasonOf('still here'), 'the session goes on').to.equal('end_turn')
    await editor.end()
  })

  it('serves two sessions at once, and one prompt at a time in each', async () => {
    await using project = await makeProject()
    const editor = await openEditor(project)
    const [one, two] = await Promise.all([editor.newSession(), editor.newSession()])
    const slow = editor.prompt(one.sessionId, 'first words of a long answer\n/pace 200')
    await editor.updates.until(() => editor.updates.text(one.sessionId) !== '')
    expect(await editor.prompt(two.sessionId, 'second')).to.deep.equal({ stopReason: 'end_turn' })
    const refused = await errorOf(editor.prompt(one.sessionId, 'too early'))
    expect(refused).to.include({ code: -32600 })
    expect(refused.message).to.contain('is running')
    expect(await slow).to.deep.equal({ stopReason: 'end_turn' })
    expect(editor.updates.text(two.sessionId)).to.equal('You said: second')
    expect(editor.updates.text(one.sessionId)).to.equal('You said: first words of a long answer')
    expect(await editor.prompt(one.sessionId, 'now')).to.deep.equal({ stopReason: 'end_turn' })
    await editor.end()
  })

  it('loads a session of an earlier process, with its messages and tool calls, and goes on with it', async () => {
    await using project = await makeProject({ 'notes.txt': 'the content' })
    const first = await openEditor(project)
    const { sessionId } = await first.newSession()
    await first.prompt(sessionId, 'read it\n/tool read_file {"path": "notes.txt"}')
    await first.agent.request(methods.agent.session.setMode, { sessionId, modeId: 'plan' })
    await first.end()
    const editor = await openEditor(project)
    const { agent, updates } = editor
    const listed = await agent.request(methods.agent.session.list, { cwd: project.folder })
    expect(listed.sessions).to.have.length(1)
    expect(listed.sessions[0]).to.deep.include({ sessionId, cwd: project.folder })
    expect(listed.sessions[0]!.title).to.match(/^read it/)
    expect((await agent.request(methods.agent.session.list, { cwd: '/elsewhere' })).sessions).to.deep.equal([])
    const loaded = await agent.request(methods.agent.session.load, { sessionId, cwd: project.folder, mcpServers: [] })
    expect(loaded.modes!.currentModeId).to.equal('plan')
    expect(updates.text(sessionId, 'user_message_chunk')).to.match(/^read it\n/)
    expect(updates.text(sessionId)).to.contain('read_file answered')
    expect(updates.call(sessionId).first).to.deep.include({ kind: 'read', status: 'completed', name: 'read_file' })
    expect(JSON.stringify(updates.call(sessionId).first.content)).to.contain('the content')
    const kinds = updates.all.map(({ update }) => update.sessionUpdate)
    expect(kinds.indexOf('user_message_chunk')).to.be.below(kinds.indexOf('tool_call'))
    await editor.prompt(sessionId, 'go on\n/tool read_file {"path": "notes.txt"}')
    expect(updates.text(sessionId)).to.contain('(turn 2)')
    const ids = updates.of(sessionId, 'tool_call').map(({ toolCallId }) => toolCallId)
    expect(new Set(ids).size, 'an id is used once in a session').to.equal(2)
    await editor.end()
  })

  it('resumes a session without replaying messages, closes and deletes sessions, and rejects unknown ones', async () => {
    await using project = await makeProject()
    const editor = await openEditor(project)
    const { agent, updates } = editor
    const { sessionId } = await editor.newSession()
    await editor.prompt(sessionId, 'one')
    await agent.request(methods.agent.session.close, { sessionId })
    expect(await errorOf(editor.prompt(sessionId, 'closed'))).to.deep.include({ code: -32002, data: { sessionId } })
    const before = updates.all.length
    await agent.request(methods.agent.session.resume, { sessionId, cwd: project.folder })
    expect(updates.all.length).to.equal(before)
    expect(await editor.prompt(sessionId, 'two')).to.deep.equal({ stopReason: 'end_turn' })
    expect(updates.text(sessionId)).to.contain('(turn 2)')
    await agent.request(methods.agent.session.delete, { sessionId })
    const load = (id: string) => agent.request(methods.agent.session.load, { sessionId: id, cwd: project.folder, mcpServers: [] })
    for (const id of [sessionId, 'sess_none', '', '../x', '\u0000', 'x'.repeat(5_000), `conv_${'0'.repeat(32)}`])
      expect(await errorOf(load(id)), id.slice(0, 40)).to.include({ code: -32002 })
    expect((await agent.request(methods.agent.session.list, {})).sessions).to.deep.equal([])
    expect(await errorOf(agent.request(methods.agent.session.list, { cursor: 'bad' }))).to.include({ code: -32602 })
    await editor.end()
  })

  it('loads a conversation that another client of svc began', async () => {
    await using project = await makeProject()
    const chat = project.start(['chat', '--local', '--json', 'said elsewhere'])
    const events = (await text(chat.stdout!)).trim().split('\n')
    const { conversation_id: sessionId } = JSON.parse(events[0]!) as { conversation_id: string }
    const editor = await openEditor(project)
    await editor.agent.request(methods.agent.session.load, { sessionId, cwd: project.folder, mcpServers: [] })
    expect(editor.updates.text(sessionId, 'user_message_chunk')).to.equal('said elsewhere')
    expect(editor.updates.text(sessionId)).to.equal('You said: said elsewhere')
    await editor.end()
  })

  it('refuses folders that are not absolute or do not exist', async () => {
    await using project = await makeProject({ 'file.txt': '' })
    const editor = await openEditor(project)
    await symlink(project.folder, join(project.folder, 'link'))
    for (const cwd of ['relative', '', join(project.folder, 'none'), join(project.folder, 'file.txt'), '/\u0000'])
      expect(await errorOf(editor.newSession(cwd)), cwd).to.include({ code: -32602 })
    expect((await editor.newSession(join(project.folder, 'link'))).sessionId).to.match(/^sess_/)
    await editor.end()
  })

  it('does not start with an unknown profile or mode', async () => {
    await using project = await makeProject()
    for (const [flag, name] of [
      ['--mode', 'plann'],
      ['--profile', 'nobody'],
    ] as const) {
      const child = project.start(['acp', flag, name])
      child.stdin!.end()
      const [out, err] = await Promise.all([text(child.stdout!), text(child.stderr!)])
      expect(out).to.equal('')
      expect(err).to.contain('CONFIG_INVALID').and.contain(name)
    }
  })

  it('uses the profile, mode and model of its flags', async () => {
    await using project = await makeProject({
      'svc.config.yaml': `${SCRIPTED['svc.config.yaml']}selection: { profiles_file: profiles.yaml }\n`,
      'profiles.yaml':
        'default: other\nprofiles:\n  other: {}\n  coder: { provider: scripted, model: two, mode: review, system_prompt: Be a coder }\n',
    })
    const editor = await openEditor(project, { args: ['--profile', 'coder'] })
    const { sessionId, modes } = await editor.newSession()
    expect(modes!.currentModeId).to.equal('review')
    await editor.prompt(sessionId, 'hi')
    expect(editor.updates.text(sessionId)).to.equal('heard: hi')
    await editor.end()
    const planned = await openEditor(project, { args: ['--profile', 'coder', '--mode', 'plan', '--model', 'none/such'] })
    const session = await planned.newSession()
    expect(session.modes!.currentModeId).to.equal('plan')
    expect((await errorOf(planned.prompt(session.sessionId, 'hi'))).data).to.include({ code: 'MODEL_NOT_FOUND' })
    await planned.end()
  })

  it('works beside a running server, with the same conversations', async () => {
    await using project = await makeProject()
    const server = project.start(['serve', '--port', '0'])
    let err = ''
    server.stderr!.setEncoding('utf8')
    const url = await new Promise<string>((resolve, reject) => {
      server.stderr!.on('data', (chunk: string) => {
        const found = /listens on (\S+)/.exec((err += chunk))
        if (found) resolve(found[1]!)
      })
      server.once('exit', () => reject(new Error(err)))
    })
    server.stdout!.resume()
    const editor = await openEditor(project)
    const { sessionId } = await editor.newSession()
    await editor.prompt(sessionId, 'shared words')
    const read = async (path: string) => (await fetch(`${url}${path}`, { headers: { connection: 'close' } })).json()
    const { conversations } = (await read('/api/v1/conversations')) as { conversations: { conversation_id: string }[] }
    expect(conversations).to.have.length(1)
    expect(JSON.stringify(await read(`/api/v1/conversations/${conversations[0]!.conversation_id}`))).to.contain('shared words')
    expect((await editor.end()).code).to.equal(0)
  })
})
