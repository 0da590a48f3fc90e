import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { changeYaml, holdFile, readVersioned, replaceFile } from '@svc/runtime/home-files'
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

describe('a change of a YAML file', () => {
  const accept = async () => {}
  const inFolder = async (run: (file: string) => Promise<void>) => {
    const folder = await mkdtemp(join(tmpdir(), 'svc-yaml-'))
    try {
      await run(join(folder, 'a.yaml'))
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  }

  it('keeps comments, order and quotes, and replaces the file for its owner only', () =>
    inFolder(async file => {
      await writeFile(file, '# top\na:\n  b: "1" # one\n  c: 2\n\n# last\nd: [x, y]\n', { mode: 0o644 })
      const { version } = await readVersioned(file)
      const changed = await changeYaml(file, {
        ifVersion: version,
        values: { a: { b: '3', e: { f: null, g: true } }, d: null },
        accept,
      })
      expect(changed.text).to.equal('# top\na:\n  b: "3" # one\n  c: 2\n  e:\n    g: true\n')
      expect(changed.version).to.not.equal(version)
      expect((await stat(file)).mode & 0o777).to.equal(0o600)
    }))

  it('begins a file that does not exist, whose version is none', () =>
    inFolder(async file => {
      expect(await readVersioned(file)).to.deep.equal({ version: 'none' })
      const { text } = await changeYaml(file, { ifVersion: 'none', first: '# new\n', values: { a: { b: 1 } }, accept })
      expect(text).to.include('# new').and.include('b: 1')
    }))

  it('writes nothing when another version is there, or the check throws', () =>
    inFolder(async file => {
      await writeFile(file, 'a: 1\n')
      const refused = async (change: Partial<Parameters<typeof changeYaml>[1]>) =>
        changeYaml(file, { values: { a: 2 }, accept, ...change }).then(
          () => 'changed',
          (error: unknown) => (error as { code?: string }).code
        )
      expect(await refused({ ifVersion: 'another' })).to.equal('PRECONDITION_FAILED')
      const no = Object.assign(new Error('no'), { code: 'NO' })
      expect(await refused({ accept: () => Promise.reject(no) })).to.equal('NO')
      await writeFile(file, 'a: [\n')
      expect(await refused({})).to.equal('YAML_INVALID')
      await writeFile(file, 'x: &x { b: 1 }\na: *x\n')
      expect(await refused({ values: { a: { b: 2 } } })).to.equal('YAML_ALIASED')
      expect(await refused({ values: { x: { b: 2 } } })).to.equal('YAML_ALIASED')
      expect(await readFile(file, 'utf8')).to.equal('x: &x { b: 1 }\na: *x\n')
    }))

  it('happens once for each version, however many ask at the same time', () =>
    inFolder(async file => {
      await writeFile(file, 'a: 0\n')
      const { version } = await readVersioned(file)
      const asked = Array.from({ length: 20 }, (_, at) => changeYaml(file, { ifVersion: version, values: { a: at + 1 }, accept }))
      const done = await Promise.allSettled(asked)
      expect(done.filter(({ status }) => status === 'fulfilled')).to.have.length(1)
      // without a version all happen, one after the other
      await Promise.all(Array.from({ length: 20 }, (_, at) => changeYaml(file, { values: { [`k${at}`]: at }, accept })))
      expect((await readFile(file, 'utf8')).match(/k\d+: \d+/g)).to.have.length(20)
    }))
})
