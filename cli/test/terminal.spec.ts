import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { makePlace } from './support/svc.ts'

const BIN = fileURLToPath(new URL('../bin/svc.js', import.meta.url))
const quoted = (words: readonly string[]) => words.map(word => `'${word}'`).join(' ')

/** A terminal of util-linux' `script`, and a person at it. */
async function terminal(home: string, args: readonly string[]) {
  // `exec`, for a shell that stays takes Ctrl-C for itself as well and ends with 130
  const command = `exec ${quoted([process.execPath, '--conditions=svc-source', BIN, ...args])}`
  // Node takes a terminal without colours for granted where CI is set
  const { CI: _ci, ...env } = process.env
  const child = spawn('script', ['-qefc', command, '/dev/null'], {
    cwd: home,
    env: { ...env, SHELL: '/bin/sh', SVC_HOME: home, TERM: 'xterm' },
  })
  let seen = ''
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (seen += chunk))
  const ended = once(child, 'close')
  return {
    type: (keys: string) => void child.stdin.write(keys),
    async sees(words: string, from = 0): Promise<number> {
      while (!seen.includes(words, from))
        await Promise.race([once(child.stdout, 'data'), ended.then(() => Promise.reject(new Error(`it ended:\n${seen}`)))])
      return seen.indexOf(words, from) + words.length
    },
    code: async () => (await ended)[0] as number,
  }
}

describe('svc on a terminal', () => {
  let home: string
  before(function () {
    if (spawnSync('script', ['--version']).status !== 0) this.skip()
  })
  beforeEach(async () => {
    home = await mkdtemp(join(tmpdir(), 'svc-tty-'))
  })
  afterEach(() => rm(home, { recursive: true, force: true, maxRetries: 5 }))

  it('holds a conversation until Ctrl-D; Ctrl-C aborts only the turn', async () => {
    const tty = await terminal(home, ['chat'])
    await tty.sees('> ')
    tty.type('hello\r')
    const answered = await tty.sees('You said: hello')
    const prompted = await tty.sees('> ', answered)
    tty.type('/pace 5000\r')
    const begun = await tty.sees('Done', prompted)
    tty.type('\u0003')
    const aborted = await tty.sees('> ', begun)
    tty.type('again\r')
    await tty.sees('You said: again', aborted)
    tty.type('\u0004')
    expect(await tty.code()).to.equal(0)
  })

  it('shows the server live on a screen of its own, and gives the terminal back at Ctrl-C', async () => {
    await using place = await makePlace()
    const server = await place.serve()
    const tty = await terminal(place.home, ['status', '--watch', '--interval', '0.2'])
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

  it('writes readable log lines in colour', async () => {
    const tty = await terminal(home, ['serve', '--port', '0'])
    await tty.sees('ends it')
    await tty.sees('\u001b[32minfo')
    tty.type('\u0003')
    expect(await tty.code()).to.equal(0)
  })
})
