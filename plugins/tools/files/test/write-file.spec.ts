import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { chmod, link, readdir, readlink, stat, symlink } from 'node:fs/promises'
import { createServer } from 'node:net'
import { promisify } from 'node:util'
import { systemContext } from '@svc/core'
import { expect } from 'chai'
import { fields, openFiles, refusal, sample, text } from './support/files.ts'

/** Every form of a path that leads out, or is none. */
const OUT = (files: { at(...parts: string[]): string }) => [
  '../beside/new.txt',
  '../new.txt',
  'notes/../../beside/new.txt',
  '/etc/new.txt',
  files.at('beside', 'new.txt'),
  files.at('root', '..', 'beside', 'new.txt'),
  `${files.at('root')}-not/new.txt`,
  `/proc/self/root${files.at('root', 'new.txt')}`,
  `/proc/self/cwd/new.txt`,
  'leak/new.txt',
  'leak/deeper/new.txt',
  'leak.txt',
  'dangling',
  'dangling/new.txt',
  'loop',
  'loop/new.txt',
]

describe('write_file', () => {
  it('writes new files and the folders on the way, and tells what it did', async () => {
    await using files = await sample()
    expect(await fields(files.write({ path: 'deep/er/ö 文.txt', content: 'ä\n' }))).to.deep.equal({
      path: 'deep/er/ö 文.txt',
      bytes: 3,
      created: true,
    })
    expect(await text(files.at('root', 'deep/er/ö 文.txt'))).to.equal('ä\n')
  })

  it('replaces a file only on request, and keeps its mode', async () => {
    await using files = await sample()
    await chmod(files.at('root', 'a.txt'), 0o750)
    expect((await refusal(files.write({ path: 'a.txt', content: 'x' }))).code).to.equal('PATH_EXISTS')
    expect(await text(files.at('root', 'a.txt'))).to.include('two')
    expect(await fields(files.write({ path: 'a.txt', content: 'x', overwrite: true }))).to.include({ created: false })
    expect(await text(files.at('root', 'a.txt'))).to.equal('x')
    expect((await stat(files.at('root', 'a.txt'))).mode & 0o777).to.equal(0o750)
  })

  it('gives a new file to one of many who ask at once', async () => {
    await using files = await openFiles()
    const all = await Promise.allSettled(
      Array.from({ length: 20 }, (_, at) => files.write({ path: 'one.txt', content: String(at) }))
    )
    const won = all.findIndex(item => item.status === 'fulfilled')
    expect(all.filter(item => item.status === 'fulfilled')).to.have.lengthOf(1)
    expect(await text(files.at('root', 'one.txt'))).to.equal(String(won))
    expect(await readdir(files.at('root'))).to.deep.equal(['one.txt'])
  })

  it('never writes outside, in whatever form the path leads there', async () => {
    await using files = await sample()
    await symlink(files.at('nothing'), files.at('root', 'dangling'))
    await symlink('loop', files.at('root', 'loop'))
    for (const path of OUT(files))
      for (const overwrite of [false, true])
        expect((await refusal(files.write({ path, content: 'x', overwrite }))).message, path).to.include('outside the folders')
    expect(await readdir(files.at('beside'))).to.deep.equal(['secret.txt'])
    expect(await text(files.at('beside', 'secret.txt'))).to.equal('the secret')
  })

  it('refuses what is no path, a folder, or a special file, in words', async () => {
    await using files = await sample()
    await promisify(execFile)('mkfifo', [files.at('root', 'pipe')])
    const server = createServer().listen(files.at('root', 'socket'))
    await once(server, 'listening')
    const problems: [string, RegExp][] = [
      ['a\0b', /zero byte/],
      ['half\ud800', /unpaired surrogate/],
      ['x'.repeat(300), /too long/],
      [`${'x/'.repeat(2040)}x`, /too long|folders on the path/],
      ['new/', /ends with a slash/],
      ['.', /a root of the tools/],
      ['notes', /directory/],
      ['a.txt/new', /not a directory/],
      ['pipe', /neither a file/],
      ['socket', /neither a file/],
      ['.git/hooks/pre-commit', /belongs to git/],
      ['notes/.GIT/config', /belongs to git/],
      ['svc.config.ts', /configuration of svc/],
      ['notes/SVC.config.yaml', /configuration of svc/],
    ]
    for (const [path, words] of problems)
      expect((await refusal(files.write({ path, content: 'x', overwrite: true }))).message, path).to.match(words)
    server.close()
  })

  it('writes through a link that stays within, and leaves the link', async () => {
    await using files = await sample()
    await symlink('../a.txt', files.at('root', 'notes', 'link.txt'))
    await files.write({ path: 'notes/link.txt', content: 'through', overwrite: true })
    expect(await text(files.at('root', 'a.txt'))).to.equal('through')
    expect(await readlink(files.at('root', 'notes', 'link.txt'))).to.equal('../a.txt')
  })

  it('does not write into a file outside that has a second name within', async () => {
    await using files = await sample()
    await link(files.at('beside', 'secret.txt'), files.at('root', 'second.txt'))
    await files.write({ path: 'second.txt', content: 'mine', overwrite: true })
    expect(await text(files.at('beside', 'secret.txt'))).to.equal('the secret')
  })

  it('refuses more than its limit, and leaves nothing behind', async () => {
    await using files = await openFiles({ max_write_bytes: 1024 })
    expect((await refusal(files.write({ path: 'big.txt', content: 'ä'.repeat(600) }))).message).to.include('1200 bytes')
    expect(await readdir(files.at('root'))).to.deep.equal([])
  })

  it('leaves nothing behind when it is aborted', async () => {
    await using files = await openFiles()
    const controller = new AbortController()
    const ctx = systemContext(controller.signal)
    const writing = refusal(files.tool('write_file').call({ path: 'a.txt', content: 'x'.repeat(4_000_000) }, ctx))
    setImmediate(() => controller.abort(new Error('enough')))
    expect((await writing).message).to.equal('enough')
    expect(await readdir(files.at('root'))).to.deep.equal([])
  })
})
