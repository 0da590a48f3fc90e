import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { inspect } from 'node:util'
import { expect } from 'chai'
import { list, openFiles, read, refusal, sample, swapping } from './support/files.ts'

describe('tools-files', () => {
  it('refuses every way out of the roots with the same words, whether or not there is something', async () => {
    await using files = await sample()
    await symlink(files.at('nothing'), files.at('root', 'dangling'))
    await symlink('loop', files.at('root', 'loop'))
    await symlink('../beside/secret.txt', files.at('root', 'notes', 'up.txt'))
    const ways = [
      '../beside/secret.txt',
      '../nothing',
      'notes/../../beside/secret.txt',
      '/etc/passwd',
      files.at('beside', 'secret.txt'),
      'leak.txt',
      'leak/secret.txt',
      'leak/nothing',
      'dangling',
      'dangling/x',
      'loop',
      'notes/up.txt',
      `${files.at('root')}-not/a`,
    ]
    for (const path of ways) {
      const error = await refusal(files.read({ path }))
      expect(error.message, path).to.equal(`"${path}" is or leads outside the folders that tools can use`)
    }
  })

  it('follows links that stay within, and takes absolute paths that lie within', async () => {
    await using files = await sample()
    await symlink('../a.txt', files.at('root', 'notes', 'a.txt'))
    expect(await read(files.read({ path: 'notes/a.txt', limit: 1 }))).to.include({ path: 'notes/a.txt', content: 'one\n' })
    expect(await read(files.read({ path: files.at('root', 'a.txt') }))).to.include({ path: 'a.txt' })
  })

  it('tells no path of the machine', async () => {
    await using files = await sample()
    const answers = [
      await files.list({}),
      await files.read({ path: 'a.txt' }),
      ...(await Promise.all(['nothing', 'notes', 'picture.png'].map(path => refusal(files.read({ path }))))),
    ]
    for (const answer of answers)
      expect(JSON.stringify(answer) + inspect(answer, { depth: 9 }).replaceAll(/\n +at .*/g, '')).to.not.include(files.at())
    expect(files.tool('read_file').description).to.not.include(files.at())
  })

  it('never reads outside while a folder is swapped for a link under its hands', async () => {
    await using files = await sample()
    await mkdir(files.at('root', 'swap'))
    await writeFile(files.at('root', 'swap', 'secret.txt'), 'harmless')
    const stop = swapping(files, 'swap')
    const seen = new Set<string>()
    for (let times = 0; times < 400; times++) {
      const [text, names] = await Promise.all([
        read(files.read({ path: 'swap/secret.txt' })).then(
          file => file.content,
          (error: { code: string }) => error.code
        ),
        list(files.list({ path: 'swap' })).then(
          found => found.entries.map(entry => `${entry.name} ${entry.size ?? ''}`).join(),
          (error: { code: string }) => error.code
        ),
      ])
      seen.add(text).add(names)
    }
    await stop()
    for (const item of seen)
      expect(item).to.be.oneOf(['harmless', 'secret.txt 8', 'secret.txt ', '', 'PATH_OUTSIDE', 'PATH_MISSING'])
  })

  it('lists types and sizes in order, and never where a link leads', async () => {
    await using files = await sample()
    const { entries } = await list(files.list({}))
    expect(entries).to.deep.equal([
      { name: 'a.txt', type: 'file', size: 14 },
      { name: 'leak', type: 'link' },
      { name: 'leak.txt', type: 'link' },
      { name: 'notes', type: 'directory' },
      { name: 'picture.png', type: 'file', size: 5 },
    ])
    const { content } = await files.list({})
    expect(content).to.deep.equal([{ type: 'text', text: 'a.txt  14 bytes\nleak@\nleak.txt@\nnotes/\npicture.png  5 bytes' }])
  })

  it('lists no more of a full directory than its limit, and says so', async () => {
    await using files = await openFiles({ max_entries: 10 })
    await Promise.all(Array.from({ length: 11 }, (_, at) => writeFile(files.at('root', `file ${at}`), '')))
    const { entries, truncated } = await list(files.list({}))
    expect([entries.length, truncated]).to.deep.equal([10, true])
    expect(JSON.stringify((await files.list({})).content)).to.include('The directory has more entries')
  })

  it('names several roots, and lists them', async () => {
    await using files = await openFiles({}, ['x/docs', 'data', 'y/docs'])
    await writeFile(files.at('x/docs', 'a.txt'), 'first')
    await writeFile(files.at('y/docs', 'a.txt'), 'second')
    expect((await list(files.list({}))).entries.map(entry => entry.name)).to.deep.equal(['docs', 'data', 'docs-2'])
    expect(await read(files.read({ path: 'docs/a.txt' }))).to.include({ path: 'docs/a.txt', content: 'first' })
    expect(await read(files.read({ path: './docs-2/a.txt' }))).to.include({ path: 'docs-2/a.txt', content: 'second' })
    expect((await refusal(files.read({ path: 'docs/../../beside/secret.txt' }))).code).to.equal('PATH_OUTSIDE')
    expect((await refusal(files.read({ path: 'a.txt' }))).code).to.equal('PATH_OUTSIDE')
    expect(files.tool('read_file').description).to.include('docs, data, docs-2')
  })

  it('fails the start for a root that is not there, with the hint', async () => {
    const error = await refusal(openFiles({ roots: ['/no/such/folder'] }))
    expect(error.message).to.include('/no/such/folder').and.include('does not exist')
  })
})
