// Not a unit test: it starts processes
import { once } from 'node:events'
import { expect } from 'chai'
import { errorOf, makeProject, openEditor } from './support/editor.ts'
import { callOf, finish, script } from './support/scripted.ts'
import { SCRIPTED } from './support/scripted-config.ts'
import { INITIALIZE, openWire } from './support/wire.ts'

describe('an editor that breaks the protocol', () => {
  it('gets an error for each invalid line, and the session continues', async () => {
    await using project = await makeProject()
    const wire = openWire(project)
    expect((await wire.ask('session/new', { cwd: project.folder, mcpServers: [] })).error, 'before initialize').to.include({
      code: -32600,
    })
    await wire.ask('initialize', INITIALIZE)
    const deep = `{"jsonrpc":"2.0","id":8,"method":"session/new","params":${'{"a":'.repeat(50_000)}1${'}'.repeat(50_000)}}`
    const bad: [line: string, code: number, id: number | string | null][] = [
      ['{"no json', -32700, null],
      ['\u0000', -32700, null],
      ['[{"jsonrpc":"2.0","id":1,"method":"initialize"}]', -32600, null],
      ['7', -32600, null],
      ['null', -32600, null],
      ['{}', -32600, null],
      ['{"jsonrpc":"1.0","id":5,"method":"initialize"}', -32600, 5],
      ['{"jsonrpc":"2.0","id":6,"method":6}', -32600, 6],
      ['{"jsonrpc":"2.0","id":{},"method":"initialize"}', -32600, null],
      [deep, -32600, 8],
    ]
    for (const [line, code, id] of bad) {
      const before = wire.lines.length
      wire.write(`${line}\n`)
      const answer = await wire.find(item => wire.lines.indexOf(item) >= before)
      expect([answer.error?.code, answer.id], line.slice(0, 60)).to.deep.equal([code, id])
    }
    expect((await wire.ask('session/steal', {})).error).to.include({ code: -32601 })
    expect((await wire.ask('session/new', { cwd: 7 })).error).to.include({ code: -32602 })
    expect((await wire.ask('session/prompt', { sessionId: 'sess_none', prompt: [] })).error).to.include({ code: -32002 })
    expect((await wire.ask('session/prompt', { sessionId: 'sess_none', prompt: [{ type: 'smell' }] })).error).to.include({
      code: -32602,
    })
    expect((await wire.ask('session/set_mode', { sessionId: '__proto__', modeId: 'build' })).error).to.include({ code: -32002 })
    wire.write('\n\r\n')
    wire.send({ method: 'unknown/notification', params: {} })
    wire.send({ id: 999, result: {} })
    wire.send({ method: 'session/cancel', params: { sessionId: 7 } })
    expect((await wire.ask('session/new', { cwd: project.folder, mcpServers: [] })).result).to.have.property('sessionId')
    wire.process.stdin!.end()
    expect(await wire.closed).to.deep.equal([0, null])
  })

  it('can send long lines, up to a limit', async () => {
    await using project = await makeProject()
    const wire = openWire(project)
    await wire.ask('initialize', INITIALIZE)
    const { result } = await wire.ask('session/new', { cwd: project.folder, mcpServers: [] })
    const prompt = (text: string) => ({ sessionId: result!.sessionId, prompt: [{ type: 'text', text }] })
    expect((await wire.ask('session/prompt', prompt('x'.repeat(9_000_000)))).error, 'longer than a message of chat').to.include({
      code: -32602,
    })
    const before = wire.lines.length
    wire.send({ id: 70, method: 'session/prompt', params: prompt('x'.repeat(11 * 1_048_576)) })
    const tooLong = await wire.find(item => wire.lines.indexOf(item) >= before)
    expect(tooLong.error).to.include({ code: -32600 })
    expect(tooLong.error!.message).to.contain('10485760 bytes')
    expect((await wire.ask('session/prompt', prompt('short'))).result).to.deep.equal({ stopReason: 'end_turn' })
    // a line without an end
    const chunk = Buffer.alloc(1_048_576, 'x')
    const gone = once(wire.process, 'exit')
    for (let at = 0; at < 400 && wire.process.exitCode === null; at++)
      if (!wire.process.stdin!.write(chunk)) await Promise.race([once(wire.process.stdin!, 'drain').catch(() => {}), gone])
    expect(await wire.closed).to.deep.equal([0, null])
  })

  it('does not fill the memory when it reads no answers', async () => {
    await using project = await makeProject()
    const wire = openWire(project)
    await wire.ask('initialize', INITIALIZE)
    wire.process.stdout!.pause()
    const line = `${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'none', params: { text: 'x'.repeat(1_000) } })}\n`.repeat(500)
    let isBlocked = false
    // svc stops reading long before all of this is written: 250 MB
    for (let at = 0; at < 500 && !isBlocked; at++)
      if (!wire.process.stdin!.write(line))
        isBlocked = await Promise.race([
          once(wire.process.stdin!, 'drain').then(() => false),
          new Promise<boolean>(resolve => setTimeout(resolve, 3_000, true)),
        ])
    expect(isBlocked).to.equal(true)
    wire.process.kill('SIGKILL')
    await wire.closed
  })
})

describe('an editor that dies', () => {
  for (const how of ['closes its end', 'SIGTERM', 'SIGINT'] as const)
    it(`ends the process and its turns: ${how}`, async () => {
      await using project = await makeProject(SCRIPTED)
      const editor = await openEditor(project, { args: ['--model', 'scripted/one'] })
      const { sessionId } = await editor.newSession()
      await editor.prompt(sessionId, 'first')
      const turn = errorOf(editor.prompt(sessionId, script([callOf('wait_for', { name: 'never' }), finish('tool_calls')])))
      await editor.updates.until(() => editor.updates.of(sessionId, 'tool_call').length === 1)
      if (how === 'closes its end') {
        editor.process.stdin!.destroy()
        editor.process.stdout!.destroy()
        editor.process.stderr!.destroy()
        expect(await once(editor.process, 'exit')).to.deep.equal([0, null])
      } else {
        editor.process.kill(how)
        expect(await editor.closed).to.deep.equal([0, null])
      }
      await turn
      // the conversation is free at once, and can be continued
      const next = await openEditor(project, { args: ['--model', 'scripted/one'] })
      await next.agent.request('session/load', { sessionId, cwd: project.folder, mcpServers: [] })
      expect(next.updates.text(sessionId)).to.contain('heard: first')
      expect(await next.prompt(sessionId, 'second')).to.deep.equal({ stopReason: 'end_turn' })
      await next.end()
    })
})
