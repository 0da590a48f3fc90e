import { mkdtempSync, statSync } from 'node:fs'
import { mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { createdFiles } from '@svc/runtime'
import { setTimeout } from 'node:timers/promises'
import { expect } from 'chai'
import { until } from '../../test/support/wait.ts'
import { begunHere, createWatching } from '@svc/runtime/watching'
import { makeWorkspace } from './support/svc.ts'

/** Rounds as they come. */
function createRounds() {
  let next = Promise.withResolvers<readonly string[]>()
  return {
    next: () => next.promise,
    changed(files: readonly string[]) {
      const current = next
      next = Promise.withResolvers()
      current.resolve(files)
    },
  }
}

describe('svc serve --watch', () => {
  it('reloads when a file changes that the configuration imports, one through the other, a new one of them too', async function () {
    this.timeout(60_000)
    await using workspace = await makeWorkspace()
    const limits = (limit: number) => workspace.write('parts/limits.mts', `export const message_limit = ${limit}\n`)
    await workspace.write('svc.config.mts', "import { chat } from './parts/chat.mts'\nexport default { chat }\n")
    await workspace.write(
      'parts/chat.mts',
      "import { message_limit } from './limits.mts'\nexport const chat = { message_limit }\n"
    )
    await limits(5)
    await symlink(workspace.folder, join(workspace.folder, '..', 'link'))
    const server = await workspace.serve(['--watch', '-c', '../link/svc.config.mts'])
    const limitOf = async () => {
      const body = JSON.stringify({ message: 'x'.repeat(1000) })
      const headers = { 'content-type': 'application/json', connection: 'close' }
      const answer = await fetch(`${server.url}/api/v1/chat`, { method: 'POST', headers, body })
      return ((await answer.json()) as { details: { limit?: number } }).details.limit
    }
    const reloads = (count: number) => server.said(new RegExp(`(reloaded: a new worker serves[^]*){${count}}`))
    expect(await limitOf()).to.equal(5)
    await limits(6)
    await reloads(1)
    expect(await limitOf()).to.equal(6)
    await workspace.write('parts/base.mts', 'export const base = 7\n')
    await workspace.write('parts/limits.mts', "import { base } from './base.mts'\nexport const message_limit = base\n")
    await reloads(2)
    await workspace.write('parts/base.mts', 'export const base = 8\n')
    await reloads(3)
    expect(await limitOf()).to.equal(8)
    expect((await server.end()).code).to.equal(0)
  })

  it('ignores a file that svc created, and reports each later change of it', async function () {
    this.timeout(60_000)
    await using workspace = await makeWorkspace()
    const profiles = join(workspace.home, 'profiles.yaml')
    const server = await workspace.serve(['--watch'])
    const reloaded = (count: number) => server.said(new RegExp(`(reloaded: a new worker serves[^]*){${count}}`))
    const reasons = () =>
      [...server.err().matchAll(/reloading \((.*)\)/g)].flatMap(([, why = '']) => why.split(', ').map(file => basename(file)))
    await workspace.write('svc.config.yaml', 'chat: { message_limit: 5 }\n')
    await reloaded(1)
    await writeFile(profiles, 'profiles: { default: {}, other: {} }\n')
    await reloaded(2)
    await rm(profiles)
    await reloaded(3)
    await workspace.write('svc.config.yaml', 'chat: { message_limit: 6 }\n')
    await reloaded(4)
    expect(reasons()).to.deep.equal(['svc.config.yaml', 'profiles.yaml', 'profiles.yaml', 'svc.config.yaml'])
    expect((await server.end()).code).to.equal(0)
  })
})

describe('what is watched', () => {
  let folder = ''
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'svc-watching-'))
    await mkdir(join(folder, 'plugin', 'src'), { recursive: true })
  })
  afterEach(() => rm(folder, { recursive: true, force: true }))
  const write = (...path: string[]) => writeFile(join(folder, ...path), 'text')

  it('of a plugin is its code and its manifest, of the configuration the files themselves; not what a plugin writes', async () => {
    const { next, changed } = createRounds()
    using watching = createWatching(changed)
    watching.look([join(folder, 'plugin'), join(folder, 'svc.config.yaml')])
    const round = next()
    await write('plugin', 'state.json')
    await write('plugin', 'src', 'state.yaml')
    await write('other.yaml')
    const seen = [['plugin', 'package.json'], ['plugin', 'src', 'a.ts'], ['svc.config.yaml']]
    for (const path of seen) await write(...path)
    expect(await round).to.deep.equal(seen.map(path => join(folder, ...path)))
  })

  it('is not a folder that comes and goes in the place of a file, as a sandbox makes it', async () => {
    const { next, changed } = createRounds()
    using watching = createWatching(changed)
    watching.look(['svc.config.ts', 'svc.config.yaml'].map(name => join(folder, name)))
    const round = next()
    await mkdir(join(folder, 'svc.config.ts'))
    await rm(join(folder, 'svc.config.ts'), { recursive: true })
    await write('svc.config.yaml')
    expect(await round).to.deep.equal([join(folder, 'svc.config.yaml')])
  })

  it('is seen too when it was saved after it was read and before the watch began', async () => {
    const { next, changed } = createRounds()
    await write('plugin', 'src', 'old.ts')
    const { ctimeMs } = statSync(join(folder, 'plugin', 'src', 'old.ts'))
    const since = await until(
      async () => Date.now(),
      now => now > ctimeMs + 20
    )
    await write('plugin', 'src', 'a.ts')
    await write('plugin', 'state.json')
    await write('svc.config.yaml')
    using watching = createWatching(changed)
    const round = next()
    watching.look([join(folder, 'plugin'), join(folder, 'svc.config.yaml')], since)
    expect(await round).to.deep.equal([join(folder, 'plugin', 'src', 'a.ts'), join(folder, 'svc.config.yaml')])
  })

  it('is not seen while it is empty, because an editor may be writing it', async () => {
    const reported: string[] = []
    const files = ['svc.config.yaml', 'svc.config.json'].map(name => join(folder, name)) as [string, string]
    using watching = createWatching(round => void reported.push(...round), 1)
    watching.look(files)
    const isReported = (file: string) =>
      until(
        async () => reported,
        all => all.includes(file)
      )
    await writeFile(files[0], '')
    await setTimeout(50)
    await writeFile(files[1], '{}')
    await isReported(files[1])
    expect(reported).to.not.include(files[0])
    await writeFile(files[0], 'chat: {}')
    await isReported(files[0])
  })

  it('is not what svc itself has begun after it was read, until another program writes it', async () => {
    const { next, changed } = createRounds()
    const [own, other] = ['profiles.yaml', 'svc.config.yaml'].map(name => join(folder, name)) as [string, string]
    await writeFile(own, 'default: default\n')
    await writeFile(other, 'chat: {}\n')
    for (const file of [own, other]) createdFiles.set(file, statSync(file))
    const begun = begunHere()
    for (const file of [own, other]) createdFiles.delete(file)
    await write('svc.config.yaml')
    using watching = createWatching(changed)
    const first = next()
    watching.look([own, other], 0, begun)
    expect(await first).to.deep.equal([other])
    const second = next()
    await write('profiles.yaml')
    expect(await second).to.deep.equal([own])
  })

  it('is seen each time that a file is saved by putting a new one in its place', async () => {
    const { next, changed } = createRounds()
    await write('plugin', 'src', 'a.ts')
    using watching = createWatching(changed)
    watching.look([join(folder, 'plugin')])
    for (let times = 0; times < 3; times++) {
      const round = next()
      await write('plugin', 'src', 'a.tmp')
      await rename(join(folder, 'plugin', 'src', 'a.tmp'), join(folder, 'plugin', 'src', 'a.ts'))
      expect(await round).to.deep.equal([join(folder, 'plugin', 'src', 'a.ts')])
    }
  })

  it('and changes while a round is dealt with is reported once, afterwards', async () => {
    const { next, changed } = createRounds()
    const done = Promise.withResolvers<void>()
    let running = 0
    using watching = createWatching(async files => {
      expect(++running, 'rounds at a time').to.equal(1)
      changed(files)
      await done.promise
      running--
    })
    watching.look([join(folder, 'plugin')])
    const first = next()
    await write('plugin', 'a.js')
    await first
    const second = next()
    await write('plugin', 'b.js')
    await write('plugin', 'c.js')
    done.resolve()
    expect(await second).to.deep.equal(['b.js', 'c.js'].map(name => join(folder, 'plugin', name)))
  })
})
