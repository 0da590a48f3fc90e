import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, constants, openSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import type { Command } from '@oclif/core'
import { expect } from 'chai'
import { sideBySide } from '../../test/support/side-by-side.ts'
import { makeWorkspace, type Workspace } from './support/svc.ts'
import { SVC } from './support/entry.ts'

/** The write end of a real pipe whose reader has gone. */
function brokenPipe({ folder }: Workspace): { readonly end: number } & Disposable {
  const pipe = join(folder, 'pipe')
  execFileSync('mkfifo', [pipe])
  const reader = openSync(pipe, constants.O_RDONLY | constants.O_NONBLOCK)
  const end = openSync(pipe, constants.O_WRONLY)
  closeSync(reader)
  return { end, [Symbol.dispose]: () => closeSync(end) }
}

function start({ folder, home }: Workspace, args: readonly string[], stdout: number) {
  const env = { PATH: process.env.PATH, SVC_HOME: home }
  return spawn(process.execPath, [...SVC, ...args], {
    cwd: folder,
    env,
    stdio: ['ignore', stdout, 'pipe'],
  })
}

describe('svc writing to a pipe whose reader has gone', () => {
  const it = sideBySide()
  for (const args of [
    ['--help'],
    ['doctor', '--help'],
    ['serve', '--help'],
    ['doctor'],
    ['config', 'show', '--json'],
    ['tools', 'list'],
  ])
    it(`ends quietly with 0: svc ${args.join(' ')}`, async () => {
      await using workspace = await makeWorkspace()
      using pipe = brokenPipe(workspace)
      const child = start(workspace, args, pipe.end)
      const [err, [code, signal]] = await Promise.all([text(child.stderr!), once(child, 'exit')])
      expect({ err, code, signal }).to.deep.equal({ err: '', code: 0, signal: null })
    })

  it('says what is wrong with the command line and ends with 2 all the same', async () => {
    await using workspace = await makeWorkspace()
    using pipe = brokenPipe(workspace)
    const child = start(workspace, ['nonsense'], pipe.end)
    const [err, [code]] = await Promise.all([text(child.stderr!), once(child, 'exit')])
    expect(err).to.match(/^COMMAND_LINE_INVALID/)
    expect(code).to.equal(2)
  })

  it('serves on: svc serve, which logs each request to it', async () => {
    await using workspace = await makeWorkspace()
    using pipe = brokenPipe(workspace)
    const child = start(workspace, ['serve', '--port', '0', '--json'], pipe.end)
    try {
      child.stderr!.resume()
      const url = await urlOf(workspace, child)
      for (let n = 0; n < 3; n++) expect((await fetch(`${url}/health`)).status).to.equal(200)
      const ended = once(child, 'exit')
      child.kill('SIGTERM')
      expect(await ended).to.deep.equal([0, null])
    } finally {
      child.kill('SIGKILL')
    }
  })
})

/** Where the server of a home listens, once it does. */
async function urlOf(workspace: Workspace, server: ChildProcess): Promise<string> {
  while (server.exitCode === null) {
    const { code, out } = await workspace.svc(['status', '--json'])
    if (code === 0) return (JSON.parse(out) as { url: string }).url
  }
  throw new Error(`the server ended with ${server.exitCode}`)
}

describe('the standard input', () => {
  const it = sideBySide()
  it('is no argument of a command that does not ask for it', async () => {
    await using workspace = await makeWorkspace()
    const { code, out } = await workspace.svc(['config', 'show'], { input: 'chat' })
    expect([code, out]).to.deep.equal([0, (await workspace.svc(['config', 'show'])).out])
  })

  it('is never read by the parser of the command line, which loses what comes after 10 ms', async () => {
    const files = ['../src/commands.ts', '../../plugins/admin/plugin-manager/src/commands.ts']
    const modules = await Promise.all(files.map(file => import(new URL(file, import.meta.url).href)))
    const commands = modules.flatMap(({ COMMANDS }) => Object.values<Command.Class>(COMMANDS))
    const args = commands.flatMap(command => Object.entries(command.args ?? {}))
    expect(args.length).to.be.greaterThan(10)
    for (const [name, arg] of args) expect(arg.ignoreStdin, name).to.equal(true)
  })
})
