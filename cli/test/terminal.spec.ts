import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { expect } from 'chai'
import { makeWorkspace } from './support/svc.ts'
import { terminal } from './support/terminal.ts'
import { lacking, skipBecause } from '../../test/support/needs.ts'

describe('svc on a terminal', () => {
  let home: string
  before(function () {
    skipBecause(this, lacking('terminal'))
  })
  beforeEach(async () => {
    home = await mkdtemp(join(tmpdir(), 'svc-tty-'))
  })
  afterEach(() => rm(home, { recursive: true, force: true, maxRetries: 5 }))

  it('holds a conversation until Ctrl-D; Ctrl-C aborts only the turn', async () => {
    const tty = await terminal({ home, folder: home }, ['chat'])
    await tty.sees('> ')
    tty.type('hello\r')
    const answered = await tty.sees('You said: hello')
    const prompted = await tty.sees('> ', answered)
    tty.type('//pace 5000\r')
    const begun = await tty.sees('Done', prompted)
    tty.type('\u0003')
    const aborted = await tty.sees('> ', begun)
    tty.type('again\r')
    await tty.sees('You said: again', aborted)
    tty.type('\u0004')
    expect(await tty.code()).to.equal(0)
  })

  it('shows the server live on a screen of its own, and gives the terminal back at Ctrl-C', async () => {
    await using workspace = await makeWorkspace()
    const server = await workspace.serve()
    const tty = await terminal(workspace, ['status', '--watch', '--interval', '0.2'])
    await tty.sees('\u001b[?1049h\u001b[?25l')
    const first = await tty.sees(server.url)
    await fetch(`${server.url}/api/v1/modes`)
    const second = await tty.sees('GET /api/v1/modes', first)
    await tty.sees('\u001b[J\u001b[H', second)
    tty.type('\u0003')
    await tty.sees('\u001b[?25h\u001b[?1049l', second)
    expect(await tty.code()).to.equal(0)
    expect((await server.end()).code).to.equal(0)
  })

  it('shows live what plugins take and do a second, and gives the terminal back at Ctrl-C', async () => {
    await using workspace = await makeWorkspace()
    const server = await workspace.serve()
    const tty = await terminal(workspace, ['plugins', 'top', '--interval', '0.2', '--sort', 'calls'])
    await tty.sees('\u001b[?1049h\u001b[?25l')
    const first = await tty.sees('every 0.2 s, by calls; press Ctrl-C to stop')
    expect(tty.seen()).to.not.contain('tools-time')
    const body = JSON.stringify({ message: '/tool current_time {}' })
    // often enough for a place among the first: a terminal shows 24 lines
    for (let times = 0; times < 20; times++)
      await fetch(`${server.url}/api/v1/chat`, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
    const shown = await tty.sees('tools-time', await tty.sees('BUSY', first))
    tty.type('\u0003')
    await tty.sees('\u001b[?25h\u001b[?1049l', shown)
    expect(await tty.code()).to.equal(0)
    expect((await server.end()).code).to.equal(0)
  })

  it('writes readable log lines in colour, one a request', async () => {
    const tty = await terminal({ home, folder: home }, ['serve', '--port', '0'])
    await tty.sees('press Ctrl-C to stop')
    await tty.sees('\u001b[32minfo')
    const [url] = /http:\/\/127\.0\.0\.1:\d+/.exec(tty.seen()) ?? []
    await (await fetch(`${url}/openapi.json?private=1`, { headers: { 'x-request-id': 'r-7' } })).text()
    const ended = await tty.sees('r-7')
    const line = stripVTControlCharacters(tty.seen().slice(tty.seen().lastIndexOf('\n', ended) + 1, ended))
    expect(line)
      .to.match(/info.*request.*GET.*\/openapi\.json.*200/)
      .and.not.include('private')
    tty.type('\u0003')
    expect(await tty.code()).to.equal(0)
  })
})
