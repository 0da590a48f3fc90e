// Not a unit test: it starts processes
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { methods, type RequestPermissionRequest } from '@agentclientprotocol/sdk'
import { expect } from 'chai'
import { errorOf, makeProject, openEditor } from './support/editor.ts'
import { callOf, finish, script, TEXT } from './support/scripted.ts'
import { SCRIPTED } from './support/scripted-config.ts'

const SCRIPTED_MODEL = ['--model', 'scripted/one']
const selected = (optionId: string) => ({ outcome: { outcome: 'selected' as const, optionId } })
const thenSay = (...calls: ReturnType<typeof callOf>[]) => script([...calls, finish('tool_calls')], [TEXT, finish()])

describe('tool calls of svc in an editor', () => {
  it('have a title, a kind, files, their input and their output', async () => {
    await using project = await makeProject({ ...SCRIPTED, 'notes.txt': 'the content' })
    const editor = await openEditor(project)
    const { sessionId } = await editor.newSession()
    await editor.prompt(sessionId, '/tool read_file {"path": "notes.txt"}\n/tool facts\n/tool read_file {"path": "none.txt"}')
    const read = editor.updates.call(sessionId, 0)
    expect(read.first).to.deep.include({
      kind: 'read',
      status: 'in_progress',
      name: 'read_file',
      locations: [{ path: join(project.folder, 'notes.txt') }],
      rawInput: { path: 'notes.txt' },
    })
    expect(read.first.title).to.contain('notes.txt')
    expect(read.last.status).to.equal('completed')
    expect(JSON.stringify(read.last.content)).to.contain('the content')
    expect(JSON.stringify(read.last.rawOutput)).to.contain('the content')
    const facts = editor.updates.call(sessionId, 1)
    expect(facts.last.rawOutput).to.deep.equal({ a: 1, b: [true] })
    const failed = editor.updates.call(sessionId, 2)
    expect(failed.last.status).to.equal('failed')
    expect(failed.first.locations).to.deep.equal([])
    expect(JSON.stringify(failed.last.content)).to.match(/does not exist|missing|no file/i)
    const kinds = editor.updates.all.map(({ update }) => update.sessionUpdate)
    expect(kinds.lastIndexOf('tool_call_update')).to.be.below(kinds.indexOf('agent_message_chunk'))
    await editor.end()
  })

  it('ask the user, who allows one call, all calls of a tool in the session, or denies', async () => {
    await using project = await makeProject(SCRIPTED)
    const asked: RequestPermissionRequest[] = []
    const answers = ['reject_once', 'allow_once', 'allow_always', 'nonsense']
    const permit = async (request: RequestPermissionRequest) => {
      asked.push(request)
      return selected(answers[asked.length - 1]!)
    }
    const editor = await openEditor(project, { args: SCRIPTED_MODEL, permit })
    const [one, two] = [await editor.newSession(), await editor.newSession()]
    for (let turn = 0; turn < 4; turn++) await editor.prompt(one.sessionId, thenSay(callOf('launch', { name: `${turn}` })))
    const statuses = [0, 1, 2, 3].map(at => editor.updates.call(one.sessionId, at).last.status)
    expect(statuses).to.deep.equal(['failed', 'completed', 'completed', 'completed'])
    expect(asked, 'the fourth call is not asked for').to.have.length(3)
    expect(asked[0]!.options.map(({ kind }) => kind)).to.deep.equal(['allow_once', 'allow_always', 'reject_once'])
    expect(asked[0]!.sessionId).to.equal(one.sessionId)
    expect(asked[0]!.toolCall).to.deep.include({
      toolCallId: editor.updates.call(one.sessionId).first.toolCallId,
      kind: 'edit',
      status: 'pending',
      rawInput: { name: '0' },
    })
    expect(editor.updates.call(one.sessionId, 0).more.map(({ status }) => status)).to.deep.equal(['failed'])
    expect(editor.updates.call(one.sessionId, 1).more.map(({ status }) => status)).to.deep.equal(['in_progress', 'completed'])
    // neither another session nor another tool is allowed
    await editor.prompt(two.sessionId, thenSay(callOf('launch')))
    expect(asked).to.have.length(4)
    expect(editor.updates.call(two.sessionId).last.status, 'an unknown option is a denial').to.equal('failed')
    await editor.end()
  })

  it('are denied when the editor fails to ask, or the user does not answer', async () => {
    await using project = await makeProject({
      'svc.config.yaml': `${SCRIPTED['svc.config.yaml']}chat: { ask_timeout_ms: 700 }\n`,
    })
    const deaf = await openEditor(project, { args: SCRIPTED_MODEL })
    const { sessionId } = await deaf.newSession()
    expect(await deaf.prompt(sessionId, thenSay(callOf('launch')))).to.deep.equal({ stopReason: 'end_turn' })
    expect(JSON.stringify(deaf.updates.call(sessionId).last.content)).to.contain('could not ask')
    await deaf.end()

    const withdrawn = Promise.withResolvers<void>()
    const silent = await openEditor(project, {
      args: SCRIPTED_MODEL,
      permit: (_request, signal) =>
        new Promise(() => signal.addEventListener('abort', () => withdrawn.resolve(), { once: true })),
    })
    const session = await silent.newSession()
    expect(await silent.prompt(session.sessionId, thenSay(callOf('launch')))).to.deep.equal({ stopReason: 'end_turn' })
    expect(JSON.stringify(silent.updates.call(session.sessionId).last.content)).to.contain('did not answer in time')
    await withdrawn.promise
    expect(await silent.prompt(session.sessionId, script([TEXT, finish()]))).to.deep.equal({ stopReason: 'end_turn' })
    expect((await silent.end()).code).to.equal(0)
  })

  it('do not change anything in a mode that only reads, from the moment of the switch on', async () => {
    await using project = await makeProject(SCRIPTED)
    const editor = await openEditor(project, { args: SCRIPTED_MODEL })
    const { agent, updates } = editor
    const { sessionId } = await editor.newSession()
    const setMode = (modeId: string) => agent.request(methods.agent.session.setMode, { sessionId, modeId })
    expect(await errorOf(setMode('plann'))).to.include({ code: -32602 })
    for (const mode of ['plan', 'review', 'explore']) {
      await setMode(mode)
      expect(updates.of(sessionId, 'current_mode_update').at(-1)).to.deep.include({ currentModeId: mode })
      await editor.prompt(sessionId, thenSay(callOf('touch_file', { name: mode })))
      expect(existsSync(join(project.folder, mode))).to.equal(false)
      expect(updates.of(sessionId, 'tool_call_update').at(-1)).to.include({ status: 'failed' })
    }
    await setMode('build')
    await editor.prompt(sessionId, thenSay(callOf('touch_file', { name: 'built' })))
    expect(await project.read('built')).to.equal('touched')
    // the user switches while the turn runs
    const turn = editor.prompt(
      sessionId,
      script(
        [callOf('wait_for', { name: 'go' }), finish('tool_calls')],
        [callOf('touch_file', { name: 'late' }), finish('tool_calls')],
        [TEXT, finish()]
      )
    )
    await updates.until(() => updates.of(sessionId, 'tool_call').at(-1)!.name === 'wait_for')
    await setMode('plan')
    await project.write('go', '')
    expect(await turn).to.deep.equal({ stopReason: 'end_turn' })
    expect(existsSync(join(project.folder, 'late'))).to.equal(false)
    expect(JSON.stringify(updates.of(sessionId, 'tool_call_update').at(-1))).to.contain('has switched to the mode plan')
    await editor.end()
  })
})

describe('a cancelled prompt', () => {
  it('ends at once, while the model speaks, a tool runs, or the user is asked', async () => {
    await using project = await makeProject(SCRIPTED)
    const asked = Promise.withResolvers<void>()
    const withdrawn = Promise.withResolvers<void>()
    const editor = await openEditor(project, {
      args: SCRIPTED_MODEL,
      permit: (_request, signal) => {
        asked.resolve()
        return new Promise(() => signal.addEventListener('abort', () => withdrawn.resolve(), { once: true }))
      },
    })
    const { agent, updates } = editor
    const { sessionId } = await editor.newSession()
    const cancel = async (turn: Promise<{ stopReason: string }>) => {
      const begun = performance.now()
      await agent.notify(methods.agent.session.cancel, { sessionId })
      expect(await turn).to.deep.equal({ stopReason: 'cancelled' })
      expect(performance.now() - begun).to.be.below(5_000)
    }
    const running = editor.prompt(sessionId, script([callOf('wait_for', { name: 'never' }), finish('tool_calls')]))
    await updates.until(() => updates.of(sessionId, 'tool_call').length === 1)
    await cancel(running)
    expect(updates.call(sessionId).last.status).to.equal('failed')
    // a tool that does not end
    const stuck = editor.prompt(sessionId, script([callOf('stubborn', { name: 'stuck' }), finish('tool_calls')]))
    await updates.until(() => updates.of(sessionId, 'tool_call').length === 2)
    await cancel(stuck)
    const waiting = editor.prompt(sessionId, script([callOf('launch'), finish('tool_calls')]))
    await asked.promise
    await cancel(waiting)
    await withdrawn.promise
    expect(await editor.prompt(sessionId, 'go on'), 'the session goes on').to.deep.equal({ stopReason: 'end_turn' })
    // the cancellation follows the prompt at once
    const early = editor.prompt(sessionId, script([callOf('wait_for', { name: 'never' }), finish('tool_calls')]))
    await cancel(early)
    await agent.notify(methods.agent.session.cancel, { sessionId })
    await agent.notify(methods.agent.session.cancel, { sessionId: 'sess_none' })
    expect(await editor.prompt(sessionId, 'again')).to.deep.equal({ stopReason: 'end_turn' })
    expect((await editor.end()).code).to.equal(0)
  })

  it('keeps what was said, and sends nothing more', async () => {
    await using project = await makeProject()
    const editor = await openEditor(project)
    const { sessionId } = await editor.newSession()
    const words = 'a long answer of many words that takes a while to be said\n/pace 100'
    const turn = editor.prompt(sessionId, words)
    await editor.updates.until(() => editor.updates.of(sessionId, 'agent_message_chunk').length >= 3)
    await editor.agent.notify(methods.agent.session.cancel, { sessionId })
    expect(await turn).to.deep.equal({ stopReason: 'cancelled' })
    const said = editor.updates.text(sessionId)
    expect(await editor.prompt(sessionId, 'next')).to.deep.equal({ stopReason: 'end_turn' })
    expect(editor.updates.text(sessionId)).to.equal(`${said}You said: next (turn 2)`)
    await editor.end()
  })

  it('can be cancelled as a request', async () => {
    await using project = await makeProject(SCRIPTED)
    const editor = await openEditor(project, { args: SCRIPTED_MODEL })
    const { sessionId } = await editor.newSession()
    const stop = new AbortController()
    const prompt = [{ type: 'text' as const, text: script([callOf('wait_for', { name: 'never' }), finish('tool_calls')]) }]
    const turn = editor.agent.request(methods.agent.session.prompt, { sessionId, prompt }, { cancellationSignal: stop.signal })
    await editor.updates.until(() => editor.updates.of(sessionId, 'tool_call').length === 1)
    stop.abort()
    expect(await turn).to.deep.equal({ stopReason: 'cancelled' })
    await editor.end()
  })
})
