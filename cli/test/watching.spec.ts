import { mkdtempSync } from 'node:fs'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { createWatching } from '../src/watching.ts'

/** Rounds as they come. */
function createRounds() {
  let next = Promise.withResolvers<readonly string[]>()
  return {
    next: () => next.promise,
    tell(files: readonly string[]) {
      const told = next
      next = Promise.withResolvers()
      told.resolve(files)
    },
  }
}

describe('what is watched', () => {
  let folder = ''
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'svc-watching-'))
    await mkdir(join(folder, 'plugin', 'src'), { recursive: true })
  })
  afterEach(() => rm(folder, { recursive: true, force: true }))
  const write = (...path: string[]) => writeFile(join(folder, ...path), '')

  it('of a plugin is its code and its manifest, of the configuration the files themselves; not what a plugin writes', async () => {
    const { next, tell } = createRounds()
    using watching = createWatching(tell)
    watching.look([join(folder, 'plugin'), join(folder, 'svc.config.yaml')])
    const round = next()
    await write('plugin', 'state.json')
    await write('plugin', 'src', 'state.yaml')
    await write('other.yaml')
    const seen = [['plugin', 'package.json'], ['plugin', 'src', 'a.ts'], ['svc.config.yaml']]
    for (const path of seen) await write(...path)
    expect(await round).to.deep.equal(seen.map(path => join(folder, ...path)))
  })

  it('and changes while a round is dealt with is told once, after it', async () => {
    const { next, tell } = createRounds()
    const done = Promise.withResolvers<void>()
    let running = 0
    using watching = createWatching(async files => {
      expect(++running, 'rounds at a time').to.equal(1)
      tell(files)
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
