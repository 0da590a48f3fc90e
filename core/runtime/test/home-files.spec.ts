import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { holdFile, replaceFile } from '@svc/runtime/home-files'
import { expect } from 'chai'

describe('a file of the home', () => {
  let folder: string
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'svc-home-'))
  })
  afterEach(() => rm(folder, { recursive: true, force: true }))

  it('is replaced as a whole, for its owner only, and leaves no other file', async () => {
    const file = join(folder, 'deep', 'a.yaml')
    await replaceFile(file, 'first')
    await replaceFile(file, 'second')
    expect(await readFile(file, 'utf8')).to.equal('second')
    expect((await stat(file)).mode & 0o777).to.equal(0o600)
    expect(await readdir(join(folder, 'deep'))).to.deep.equal(['a.yaml'])
  })

  it('has one holder at a time', async () => {
    const file = join(folder, 'a.lock')
    const first = await holdFile(file, 0)
    const BUSY = 5
    expect(await holdFile(file, 10).catch((error: { errcode?: number }) => error.errcode)).to.equal(BUSY)
    first[Symbol.dispose]()
    using _second = await holdFile(file, 0)
  })

  it('is held by one after the other in one process, which does not stand still meanwhile', async () => {
    const file = join(folder, 'b.lock')
    let holders = 0
    const most: number[] = []
    const hold = async () => {
      using _held = await holdFile(file, 10_000)
      most.push(++holders)
      await setTimeout(5)
      holders--
    }
    await Promise.all(Array.from({ length: 10 }, hold))
    expect(most).to.deep.equal(Array.from({ length: 10 }, () => 1))
  })
})
