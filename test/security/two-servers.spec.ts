import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { findServers } from '@svc/runtime'
import { expect } from 'chai'
import { readProfiles } from '../../plugins/chat/selection/src/profiles.ts'
import { createClient } from '../support/client.ts'
import { runSvc } from '../support/command.ts'
import { CONDITIONS } from '../support/entry.ts'
import { startService } from '../support/service.ts'

const child = (name: string, ...args: readonly string[]) =>
  spawn(process.execPath, [...CONDITIONS, fileURLToPath(new URL(`./children/${name}.ts`, import.meta.url)), ...args], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })

async function conversationAt(url: string): Promise<string> {
  const { body } = await createClient(url, { keepAlive: false }).post('/api/v1/chat', { message: 'a' })
  return (body as { conversation_id: string }).conversation_id
}

describe('several servers and commands that work in one home at the same moment', function () {
  this.timeout(60_000)
  let base: string
  let home: string
  beforeEach(async () => {
    base = await mkdtemp(join(tmpdir(), 'svc-two-'))
    home = join(base, 'home')
    await mkdir(home, { mode: 0o700 })
  })
  afterEach(() => rm(base, { recursive: true, force: true, maxRetries: 5 }))

  for (const [where, name] of [
    ['in the home', 'run'],
    ['outside, because its path is too long', 'r'.repeat(100)],
  ] as const)
    it(`do not treat the control socket of a starting server as a leftover: ${where}`, async () => {
      const place = join(home, name)
      await mkdir(place)
      const said = await Promise.all(
        [100_000, 200_000, 300_000].map(first => text(child('control', place, String(first), '120').stdout!))
      )
      expect(said.flatMap(item => JSON.parse(item) as string[])).to.deep.equal([])
    })

  it('start together in a new home, serve, and are all found', async () => {
    await using all = new AsyncDisposableStack()
    const servers = await Promise.all(Array.from({ length: 4 }, () => startService({ home, cwd: base })))
    for (const server of servers) all.use(server)
    const found = await findServers(home)
    for (const server of found) server[Symbol.dispose]()
    expect(found).to.have.length(4)
    const ids = await Promise.all(servers.map(({ url }) => conversationAt(url)))
    expect(new Set(ids).size).to.equal(4)
    expect((await stat(join(home, 'svc.db'))).mode & 0o077).to.equal(0)
  })

  it('never read a half-written profiles.yaml', async () => {
    const rounds = 300
    const reader = child('reader', home, String(rounds))
    const said = text(reader.stdout!)
    await once(reader.stdout!, 'data')
    for (let at = 0; at < rounds; at++) await readProfiles({ file: join(home, `${at}.yaml`), named: false })
    expect((await said).split('\n').at(-1)).to.equal('[]')
  })

  it('lose no tool server of mcp.yaml', async () => {
    const file = join(home, 'mcp.yaml')
    const adding = ['a', 'b', 'c'].map(prefix => child('add', file, prefix, '12'))
    await Promise.all(adding.map(item => once(item.stdout!, 'data')))
    for (const item of adding) item.stdin!.write('go\n')
    await Promise.all(adding.map(item => once(item, 'exit')))
    expect([...(await readFile(file, 'utf8')).matchAll(/name: "\w+"/g)]).to.have.length(36)
  })

  it('have no tool server of mcp.yaml twice', async () => {
    const add = () => runSvc(['mcp', 'add', 'same', 'http://127.0.0.1:9000/mcp'], { home, cwd: base })
    const ended = await Promise.all([add(), add(), add()])
    expect([...(await readFile(join(home, 'mcp.yaml'), 'utf8')).matchAll(/name: "same"/g)]).to.have.length(1)
    expect(ended.filter(item => item.code === 0)).to.have.length(1)
  })
})
