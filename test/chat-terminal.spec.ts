import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { sideBySide } from './support/side-by-side.ts'
import { configureFew } from './support/tides.ts'
import { makeWorkspace, type Workspace } from '../cli/test/support/svc.ts'
import { terminal } from '../cli/test/support/terminal.ts'
import { lacking, skipBecause } from './support/needs.ts'

const CAREFUL = fileURLToPath(new URL('fixtures/careful', import.meta.url))
const CHOICES = '  careful_note: [y]es / [n]o / [a]lways this tool in this chat: '
const NOTE = '//tool careful_note {"text": "x"}\r'

async function carefulPlace(more: Readonly<Record<string, unknown>> = {}) {
  const workspace = await makeWorkspace()
  await configureFew(workspace.folder, { plugins: [CAREFUL], ...more }, ['tools-time'])
  return workspace
}

/** A chat at its first prompt. */
async function chatting(workspace: Workspace, args: readonly string[] = []) {
  const tty = await terminal(workspace, ['chat', ...args])
  let at = await tty.sees('> ', await tty.sees('/help shows the commands'))
  return {
    /** Types a line and waits for what follows. */
    async says(line: string, ...words: string[]) {
      tty.type(line)
      for (const word of words) at = await tty.sees(word, at)
    },
    async prompted() {
      at = await tty.sees('\u001b[3G', at)
    },
    async ends() {
      tty.type('\u0004')
      return await tty.code()
    },
    tty,
  }
}

describe('svc chat on a terminal', () => {
  const it = sideBySide()
  before(function () {
    skipBecause(this, lacking('terminal'))
  })

  it('asks about a tool that wants it: yes once, no with a reason for the model, always until /new', async () => {
    await using workspace = await carefulPlace()
    const chat = await chatting(workspace)
    await chat.says(
      NOTE,
      '→ careful_note {"text":"x"}',
      '? careful_note {"text":"x"}',
      'May the tool "careful_note" run?',
      CHOICES
    )
    await chat.says('y\r', '✓ careful_note', 'noted {"text":"x"}')
    await chat.prompted()
    await chat.says(NOTE, CHOICES)
    await chat.says('maybe\r', CHOICES)
    await chat.says('n, take the other book\r', '✗ careful_note', 'Not allowed: take the other book')
    await chat.prompted()
    await chat.says(NOTE, CHOICES)
    await chat.says('a\r', '✓ careful_note')
    await chat.prompted()
    await chat.says(NOTE, 'careful_note is allowed in this chat', '✓ careful_note')
    await chat.prompted()
    await chat.says('/new\r', 'a new conversation')
    await chat.says(NOTE, CHOICES)
    await chat.says('n\r', 'the user did not allow it')
    expect(await chat.ends()).to.equal(0)
  })

  it('asks about the tool calls of one model step one at a time, also through a server', async () => {
    await using workspace = await carefulPlace()
    const server = await workspace.serve(['--workers', '2'])
    await server.said(/worker \d+ is ready/)
    const chat = await chatting(workspace)
    await chat.says(NOTE, CHOICES)
    await chat.says('y\r', '✓ careful_note')
    expect(await chat.ends()).to.equal(0)
    const both = await terminal(workspace, ['chat', '/tool careful_note {"text": "one"}\n/tool careful_note {"text": "two"}'])
    const first = await both.sees(CHOICES)
    expect(both.seen()).to.not.contain('? careful_note {"text":"two"}')
    both.type('y\r')
    const second = await both.sees(CHOICES, await both.sees('? careful_note {"text":"two"}', first))
    both.type('no\r')
    const done = await both.sees('✓ careful_note', second)
    await both.sees('✗ careful_note', done)
    expect(await both.code()).to.equal(0)
    await server.end()
  })

  it('cancels the turn at Ctrl-C during a question: no tool runs, and the chat continues', async () => {
    await using workspace = await carefulPlace()
    const chat = await chatting(workspace)
    await chat.says(NOTE, CHOICES)
    await chat.says('\u0003', '> ')
    await chat.says('hello\r', 'You said: hello')
    expect(chat.tty.seen()).to.not.contain('noted')
    expect(await chat.ends()).to.equal(0)
    const once = await terminal(workspace, ['chat', '/tool careful_note {"text": "one"}'])
    await once.sees(CHOICES)
    once.type('\u0003')
    expect(await once.code()).to.equal(130)
  })

  it('ends with 130 at Ctrl-C at the prompt', async () => {
    await using workspace = await makeWorkspace()
    const chat = await chatting(workspace)
    chat.tty.type('\u0003')
    expect(await chat.tty.code()).to.equal(130)
  })

  it('stops asking when the answer does not come in time', async () => {
    await using workspace = await carefulPlace({ chat: { ask_timeout_ms: 300 } })
    const chat = await chatting(workspace)
    await chat.says(NOTE, CHOICES, '✗ careful_note', 'did not answer in time')
    await chat.prompted()
    await chat.says('hello\r', 'You said: hello')
    expect(await chat.ends()).to.equal(0)
    const slow = await terminal(workspace, ['chat', '/tool careful_note {"text": "one"}\n/pace 50'])
    const denied = await slow.sees('✗ careful_note', await slow.sees(CHOICES))
    await slow.sees('Done.', denied)
    expect(slow.seen().slice(denied)).to.not.contain('[y]es')
    expect(await slow.code()).to.equal(0)
  })

  it('keeps typed lines in the history, except answers, duplicates and lines that begin with a space', async () => {
    await using workspace = await carefulPlace()
    const chat = await chatting(workspace)
    await chat.says(NOTE, CHOICES)
    await chat.says('y\r', '✓ careful_note')
    await chat.prompted()
    await chat.says('hello\r', 'You said: hello')
    await chat.prompted()
    await chat.says('hello\r', 'You said: hello')
    await chat.prompted()
    await chat.says(' a secret\r', 'You said:')
    expect(await chat.ends()).to.equal(0)
    const file = join(workspace.home, 'history')
    expect(await readFile(file, 'utf8')).to.equal(`${NOTE.trimEnd()}\nhello\n`)
    expect((await stat(file)).mode & 0o777).to.equal(0o600)
    const next = await chatting(workspace)
    await next.says('\u001b[A\u001b[A', 'careful_note {"text": "x"}')
    await next.says('\r', CHOICES)
    await next.says('n\r', '✗ careful_note')
    await next.prompted()
    await next.says('\u001b[A', 'careful_note {"text": "x"}')
    expect(await next.says('\u0015bye\r', 'You said: bye')).to.equal(undefined)
    expect(await next.ends()).to.equal(0)
  })

  it('has commands: /help, /model for this chat, /mode and /profile of its own host, /exit', async () => {
    await using workspace = await carefulPlace()
    await workspace.write('../home/profiles.yaml', 'default: plain\nprofiles:\n  plain: {}\n  small: { model: local-small }\n')
    const chat = await chatting(workspace)
    await chat.says('/help\r', '/model [[provider/]model]', '/exit')
    await chat.says('/model\r', 'this chat uses local/local-1 (profile plain)', 'local-1, local-small')
    await chat.says('/model local/local-small\r', 'this chat uses local/local-small')
    await chat.says('hello\r', 'You said: hello', 'local/local-small, ')
    await chat.says('/model local-smal\r', 'which no provider lists; did you mean "local-small"?')
    await chat.says('hello\r', 'MODEL_NOT_FOUND')
    await chat.says('/model -\r', 'the profile chooses the model')
    await chat.says('/profile\r', 'profiles: plain (now), small; asks local/local-1')
    await chat.says('/profile small\r', 'profiles: plain, small (now); asks local/local-small')
    await chat.says('/mode nope\r', 'INVALID_VALUE', 'one of: ')
    await chat.says('/mode plan\r', 'plan (now)')
    await chat.says('/modle\r', 'there is no /modle', 'Did you mean "/model"?')
    await chat.says('//help\r', 'You said: /help')
    await chat.says('/tmp/file is a path\r', 'You said: /tmp/file is a path')
    await chat.says('/exit\r')
    expect(await chat.tty.code()).to.equal(0)
  })

  it('goes on after a first turn that failed before there was any output', async () => {
    await using workspace = await carefulPlace({ chat: { start_after_ms: 0 } })
    const chat = await chatting(workspace)
    await chat.says('//fail bad_request\r', 'PROVIDER_ERROR')
    await chat.says('hello\r', 'You said: hello')
    expect(await chat.ends()).to.equal(0)
  })

  it('starts a new conversation, with a note, if its conversation no longer exists', async () => {
    await using workspace = await makeWorkspace()
    const server = await workspace.serve()
    const chat = await chatting(workspace)
    await chat.says('one\r', 'You said: one')
    await chat.prompted()
    const all = (await (await fetch(`${server.url}/api/v1/conversations`)).json()) as {
      conversations: { conversation_id: string }[]
    }
    for (const { conversation_id: id } of all.conversations)
      await fetch(`${server.url}/api/v1/conversations/${id}`, { method: 'DELETE' })
    await chat.says('two\r', 'conversation_id not found', 'The next message starts a new one')
    await chat.says('three\r', 'You said: three')
    expect(await chat.ends()).to.equal(0)
    await server.end()
  })

  it('switches a server only after a warning that this affects all its clients', async () => {
    await using workspace = await makeWorkspace()
    const server = await workspace.serve()
    const mode = async () => ((await (await fetch(`${server.url}/api/v1/modes`)).json()) as { active: string }).active
    const chat = await chatting(workspace)
    await chat.says('/mode plan\r', `switches the server at ${server.url} for all its clients`)
    await chat.says('n\r', 'the mode stays')
    expect(await mode()).to.equal('build')
    await chat.says('/mode plan\r', 'for all its clients')
    await chat.says('y\r', 'plan (now)')
    expect(await mode()).to.equal('plan')
    expect(await chat.ends()).to.equal(0)
    await server.end()
  })

  it('executes no terminal control sequence from a model', async () => {
    await using workspace = await makeWorkspace()
    const tty = await terminal(workspace, ['chat', 'red \u001b[31m alert \u009b2J'])
    await tty.sees('You said: red [31m alert 2J')
    expect(await tty.code()).to.equal(0)
  })
})
