import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readdir, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import {
  claim,
  compileGlob,
  createLocks,
  newWalkStats,
  openFileIn,
  openFolder,
  openFolderIn,
  openForTarget,
  openRoots,
  putFile,
  readWhole,
  realOf,
  walk,
} from '@svc/safe-fs'
import { expect } from 'chai'
import { describeWith } from '../../../test/support/needs.ts'

const { signal } = new AbortController()

async function ground(files: Record<string, string>) {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'svc-roots-')))
  const at = (...parts: string[]) => join(folder, ...parts)
  for (const [path, text] of Object.entries({ 'root/.keep': '', 'beside/secret': 'secret', ...files })) {
    await mkdir(dirname(at(path)), { recursive: true })
    await writeFile(at(path), text)
  }
  const roots = await openRoots([at('root')], 'roots')
  return { at, roots, [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }) }
}
const codeOf = (work: Promise<unknown>): Promise<string | undefined> =>
  work.then(
    () => 'none',
    (error: { code?: string }) => error.code
  )

describe('the svc home within a root', () => {
  const inHome = () => ground({ 'root/home/svc.db': 'tokens', 'root/home/work/a.txt': 'a', 'root/b.txt': 'b' })

  it('is closed: nothing in it is found, walked through, made or moved', async () => {
    await using workspace = await inHome()
    await symlink('home/svc.db', workspace.at('root', 'link'))
    const roots = await openRoots([workspace.at('root')], 'roots', { home: workspace.at('root', 'home') })
    for (const path of ['home', 'home/svc.db', 'link', './home/work/a.txt'])
      expect(await codeOf(roots.find(path)), path).to.equal('PATH_OUTSIDE')
    for (const path of ['home', 'home/new', 'home/a/b']) expect(await codeOf(roots.target(path)), path).to.equal('PATH_OUTSIDE')
    expect([roots.stays(workspace.at('root', 'home')), roots.stays(workspace.at('root', 'b.txt'))]).to.deep.equal([true, false])
    const seen: string[] = []
    for await (const { shown } of walk(roots, await roots.find('.'), { signal, ignored: true, entries: 100 }, newWalkStats()))
      seen.push(shown)
    expect(seen).to.deep.equal(['.keep', 'b.txt', 'link'])
  })

  it('is open where a root lies in it, and no further', async () => {
    await using workspace = await inHome()
    const roots = await openRoots([workspace.at('root', 'home', 'work')], 'roots', { home: workspace.at('root', 'home') })
    expect((await roots.find('a.txt')).shown).to.equal('a.txt')
    expect(await codeOf(roots.find('../svc.db'))).to.equal('PATH_OUTSIDE')
    const same = await openRoots([workspace.at('root', 'home')], 'roots', { home: workspace.at('root', 'home') })
    expect(await codeOf(same.find('svc.db'))).to.equal('PATH_OUTSIDE')
  })
})

describe('roots', () => {
  it('find what exists, and say where something may be put', async () => {
    await using own = await ground({ 'root/a/b': '' })
    expect(await own.roots.find('a/../a/b')).to.deep.equal({ real: own.at('root/a/b'), shown: 'a/b' })
    const target = await own.roots.target('a/new/deep/c')
    expect(target).to.deep.equal({
      folder: { real: own.at('root/a'), shown: 'a/new/deep' },
      steps: ['new', 'deep'],
      name: 'c',
      shown: 'a/new/deep/c',
    })
    expect(realOf(target)).to.equal(own.at('root/a/new/deep/c'))
    expect(await codeOf(own.roots.target('.'))).to.equal('PATH_PROTECTED')
    expect(await codeOf(own.roots.target('a/b/c'))).to.equal('PATH_KIND')
  })

  it('reach what lies in an open folder though its path leads elsewhere by then', async () => {
    await using own = await ground({ 'root/a/secret': 'mine' })
    await using folder = await openFolder(own.roots, await own.roots.find('a'))
    await rm(own.at('root/a'), { recursive: true })
    await symlink(own.at('beside'), own.at('root/a'))
    expect(await codeOf(openFileIn(folder, 'secret', 'a/secret'))).to.equal('PATH_MISSING')
    expect(await codeOf(openFolder(own.roots, { real: own.at('root/a'), shown: 'a' }))).to.equal('PATH_OUTSIDE')
  })

  it('refuse a folder whose way was bent after it was found', async () => {
    await using own = await ground({ 'root/a/inner/x': '', 'beside/inner/x': '' })
    const place = await own.roots.find('a/inner')
    await rm(own.at('root/a'), { recursive: true })
    await symlink(own.at('beside'), own.at('root/a'))
    expect(await codeOf(openFolder(own.roots, place))).to.equal('PATH_OUTSIDE')
  })

  it('follow no link within an open folder', async () => {
    await using own = await ground({})
    await symlink(own.at('beside'), own.at('root/link'))
    await using folder = await openFolder(own.roots, await own.roots.find('.'))
    expect(await codeOf(openFolderIn(folder, 'link', 'link'))).to.equal('PATH_OUTSIDE')
  })

  it('read a file whole, or not at all where it is larger than it may be', async () => {
    await using own = await ground({ 'root/a': 'x'.repeat(100_000), 'root/empty': '' })
    await using folder = await openFolder(own.roots, await own.roots.find('.'))
    await using file = await openFileIn(folder, 'a', 'a')
    expect((await readWhole(file, 100_000, signal))?.length).to.equal(100_000)
    expect(await readWhole(file, 99_999, signal)).to.equal(undefined)
    await writeFile(own.at('root/a'), 'y'.repeat(300_000))
    expect((await readWhole(file, 400_000, signal))?.length).to.equal(300_000)
    expect(await readWhole(file, 200_000, signal)).to.equal(undefined)
    await using empty = await openFileIn(folder, 'empty', 'empty')
    expect((await readWhole(empty, 10, signal))?.length).to.equal(0)
  })

  it('leave nothing behind when a check stops the writing', async () => {
    await using own = await ground({ 'root/a': 'old' })
    await using folder = await openForTarget(own.roots, await own.roots.target('a'), signal)
    const check = () => Promise.reject(new Error('changed'))
    await putFile(folder, 'a', { bytes: Buffer.from('new'), instead: { mode: 0o644, uid: 0, gid: 0 }, check }, signal).catch(
      () => {}
    )
    expect(await readFile(own.at('root/a'), 'utf8')).to.equal('old')
    expect(await readdir(own.at('root'))).to.have.members(['.keep', 'a'])
    expect(await codeOf(claim(own.at('root/.keep'), own.at('root/a')))).to.equal('EEXIST')
  })

  it('do works of one key one after the other, also after one that failed', async () => {
    const alone = createLocks()
    const order: number[] = []
    const work = (at: number) =>
      alone('key', async () => {
        order.push(at)
        await new Promise(setImmediate)
        order.push(at)
        if (at === 1) throw new Error('one')
      }).catch(() => {})
    await Promise.all([1, 2, 3].map(work))
    expect(order).to.deep.equal([1, 1, 2, 2, 3, 3])
  })
})

describe('walk', () => {
  it('lets others work while it goes through the names of one folder', async () => {
    await using found = await ground({ 'root/a': '', 'root/b': '', 'root/c': '', 'root/d': '' })
    let turns = 0
    const seen: number[] = []
    const count = () => {
      turns++
      if (seen.length < 5) setImmediate(count)
    }
    for await (const _ of walk(
      found.roots,
      await found.roots.find('.'),
      { signal, ignored: true, entries: 100 },
      newWalkStats()
    )) {
      if (seen.length === 0) setImmediate(count)
      seen.push(turns)
      // who looks at the names takes its time
      for (const since = performance.now(); performance.now() - since < 10; );
    }
    expect(new Set(seen).size).to.equal(5)
  })
})

describe('compileGlob', () => {
  const CASES: [pattern: string, fits: string[], not: string[]][] = [
    ['*.ts', ['a.ts', 'x/y/a.ts', '.ts'], ['a.tsx', 'a.ts/b']],
    ['a/*.ts', ['a/b.ts'], ['a/b/c.ts', 'x/a/b.ts']],
    ['a/**', ['a/b', 'a/b/c'], ['a', 'ab/c']],
    ['a/**/b', ['a/b', 'a/x/b', 'a/x/y/b'], ['a/xb', 'ab']],
    ['**/{a,b*}.{js,ts}', ['a.js', 'x/bc.ts'], ['c.js', 'a.jsx']],
    ['{**/a,b/**}', ['a', 'x/a', 'b/c'], ['c']],
    ['[a-c]?', ['a1', 'c/bx'.slice(2)], ['d1', 'a']],
    ['[!a]', ['b'], ['a', '/']],
    ['\\*(x)+$^|.', ['*(x)+$^|.'], ['a(x)+$^|.']],
    ['a,b', ['a,b'], ['a']],
    ['文*', ['文字', 'x/文'], ['字']],
  ]
  for (const [pattern, fits, not] of CASES)
    it(`understands ${pattern}`, async () => {
      const test = await compileGlob(pattern)
      expect(fits.filter(path => !test(path))).to.deep.equal([])
      expect(not.filter(path => test(path))).to.deep.equal([])
    })
})

describeWith('git', 'ignore files, compared with git', () => {
  const RULES: Record<string, Record<string, string>> = {
    'names, folders and anchors': { '.gitignore': 'a\n/b\nc/\nd/e\n' },
    'wild cards': { '.gitignore': '*.a\nx?\n[ab]c\n**/deep/*.b\nd/**\n' },
    'what is taken back': { '.gitignore': '*\n!*/\n!*.b\n/c/*.b\n' },
    'deeper files that decide': { '.gitignore': 'a\n*.b\n', 'd/.gitignore': '!a\n!x.b\n/deep\n' },
    'comments, blanks and escapes': { '.gitignore': '# no\n\n\\#a\na \nb\\ \n' },
  }
  const PATHS = [
    'a',
    'b',
    'c/a',
    'c/x.b',
    'd/a',
    'd/e',
    'd/x.b',
    'd/deep/x.b',
    'd/deep/a',
    'e/b',
    'e/x.a',
    'x1',
    'ac',
    '#a',
    'b ',
    'e/deep/y.b',
  ]
  for (const [title, rules] of Object.entries(RULES))
    it(`leave out the same: ${title}`, async () => {
      const files = Object.fromEntries(
        [...PATHS.map(path => [path, '']), ...Object.entries(rules)].map(([path, text]) => [`root/${path}`, text])
      )
      await using own = await ground(files as Record<string, string>)
      const env = { PATH: process.env.PATH, HOME: own.at('beside'), GIT_CONFIG_NOSYSTEM: '1' }
      const git = async (...args: string[]) => (await promisify(execFile)('git', args, { cwd: own.at('root'), env })).stdout
      await git('init', '--quiet')
      const theirs = (await git('ls-files', '-z', '--others', '--exclude-standard')).split('\0').filter(Boolean)
      const ours: string[] = []
      const visits = walk(own.roots, await own.roots.find('.'), { signal, ignored: false, entries: 1000 }, newWalkStats())
      for await (const { path, type } of visits) if (type === 'file') ours.push(path)
      expect(ours.sort()).to.deep.equal(theirs.sort())
    })
})
