import { link, mkdir, readdir, readlink, symlink, writeFile } from 'node:fs/promises'
import { expect } from 'chai'
import { fields, openFiles, refusal, sample, text } from './support/files.ts'

describe('move_file', () => {
  it('moves files, folders and links', async () => {
    await using files = await sample()
    expect(await fields(files.move({ from: 'a.txt', to: 'new/b.txt' }))).to.deep.equal({
      from: 'a.txt',
      to: 'new/b.txt',
      type: 'file',
      replaced: false,
    })
    expect(await fields(files.move({ from: 'notes', to: 'new/notes' }))).to.include({ type: 'directory' })
    expect(await fields(files.move({ from: 'leak.txt', to: 'new/leak.txt' }))).to.include({ type: 'link' })
    expect(await readdir(files.at('root', 'new'))).to.have.members(['b.txt', 'leak.txt', 'notes'])
    expect(await readlink(files.at('root', 'new', 'leak.txt'))).to.equal(files.at('beside', 'secret.txt'))
  })

  it('replaces a file only on request, and a folder never', async () => {
    await using files = await sample()
    await writeFile(files.at('root', 'b.txt'), 'b')
    await link(files.at('root', 'b.txt'), files.at('root', 'same.txt'))
    expect((await refusal(files.move({ from: 'a.txt', to: 'b.txt' }))).code).to.equal('PATH_EXISTS')
    expect((await refusal(files.move({ from: 'a.txt', to: 'notes', overwrite: true }))).code).to.equal('PATH_EXISTS')
    expect((await refusal(files.move({ from: 'notes', to: 'b.txt', overwrite: true }))).code).to.equal('PATH_EXISTS')
    expect((await refusal(files.move({ from: 'notes', to: 'notes/inner/notes' }))).message).to.include('into itself')
    expect(await fields(files.move({ from: 'a.txt', to: 'b.txt', overwrite: true }))).to.include({ replaced: true })
    expect(await text(files.at('root', 'b.txt'))).to.include('two')
    await link(files.at('root', 'b.txt'), files.at('root', 'twin.txt'))
    await files.move({ from: 'twin.txt', to: 'b.txt', overwrite: true })
    expect(await readdir(files.at('root'))).to.not.include('twin.txt')
  })

  it('moves nothing out, and nothing in', async () => {
    await using files = await sample()
    await symlink(files.at('nothing'), files.at('root', 'dangling'))
    for (const path of ['../new.txt', files.at('beside', 'new.txt'), 'leak/new.txt', 'dangling/new.txt', '/etc/new.txt'])
      expect((await refusal(files.move({ from: 'a.txt', to: path }))).code, path).to.equal('PATH_OUTSIDE')
    for (const path of ['../beside/secret.txt', 'leak/secret.txt', files.at('beside', 'secret.txt')])
      expect((await refusal(files.move({ from: path, to: 'mine.txt' }))).code, path).to.equal('PATH_OUTSIDE')
    expect((await refusal(files.move({ from: 'nothing', to: 'mine.txt' }))).code).to.equal('PATH_MISSING')
    expect(await readdir(files.at('beside'))).to.deep.equal(['secret.txt'])
  })
})

describe('delete_file', () => {
  it('deletes files, empty folders and links, never what a link leads to', async () => {
    await using files = await sample()
    await mkdir(files.at('root', 'empty'))
    for (const [path, type] of Object.entries({ 'a.txt': 'file', empty: 'directory', leak: 'link', 'leak.txt': 'link' }))
      expect(await fields(files.remove({ path }))).to.deep.equal({ path, type, deleted: 1 })
    expect(await readdir(files.at('root'))).to.have.members(['notes', 'picture.png'])
    expect(await text(files.at('beside', 'secret.txt'))).to.equal('the secret')
  })

  it('deletes a full folder only on request, and no more than its limit', async () => {
    await using files = await openFiles({ max_entries: 5 })
    await mkdir(files.at('root', 'full', 'inner'), { recursive: true })
    await writeFile(files.at('root', 'full', 'inner', 'a'), '')
    await symlink(files.at('beside'), files.at('root', 'full', 'leak'))
    expect((await refusal(files.remove({ path: 'full' }))).message).to.include('recursive')
    expect(await fields(files.remove({ path: 'full', recursive: true }))).to.deep.equal({
      path: 'full',
      type: 'directory',
      deleted: 4,
    })
    expect(await text(files.at('beside', 'secret.txt'))).to.equal('the secret')
    await mkdir(files.at('root', 'fuller'))
    await Promise.all(Array.from({ length: 5 }, (_, at) => writeFile(files.at('root', 'fuller', String(at)), '')))
    expect((await refusal(files.remove({ path: 'fuller', recursive: true }))).code).to.equal('PATH_TOO_MANY')
    expect(await readdir(files.at('root', 'fuller'))).to.have.lengthOf(5)
  })

  it('looks no deeper than its limit: each folder on the way is held open', async () => {
    await using files = await openFiles({ max_entries: 5 })
    // what lies below the limit would be refused for another reason, were it seen
    await mkdir(files.at('root', 'd/d/d/d/d/d/d', '.git'), { recursive: true })
    expect((await refusal(files.remove({ path: 'd', recursive: true }))).code).to.equal('PATH_TOO_MANY')
    await mkdir(files.at('root', 'e/e/e/e/e'), { recursive: true })
    expect(await fields(files.remove({ path: 'e', recursive: true }))).to.deep.include({ deleted: 5 })
  })

  it('leaves roots, what holds one, repositories, and all that is outside', async () => {
    await using files = await openFiles({}, ['a', 'a/inner/root'])
    await mkdir(files.at('a', 'repository', '.git'), { recursive: true })
    for (const path of ['a', 'root', 'a/inner', files.at('a', 'inner', 'root')])
      for (const tool of [() => files.remove({ path, recursive: true }), () => files.move({ from: path, to: 'a/else' })])
        expect((await refusal(tool())).code, path).to.equal('PATH_PROTECTED')
    expect((await refusal(files.remove({ path: 'a/repository', recursive: true }))).code).to.equal('PATH_PROTECTED')
    expect((await refusal(files.remove({ path: 'a/../../beside/secret.txt' }))).code).to.equal('PATH_OUTSIDE')
    expect((await refusal(files.remove({ path: 'a/nothing' }))).code).to.equal('PATH_MISSING')
  })
})
