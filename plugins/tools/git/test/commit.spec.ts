import { rm, writeFile } from 'node:fs/promises'
import { expect } from 'chai'
import { openGit, refusal, sample, withGit } from './support/repository.ts'

withGit('git_commit', () => {
  it('commits what is staged, some files as they are, or all that git knows', async () => {
    await using files = await sample()
    expect(await files.commit({ message: 'staged' })).to.include({ branch: 'main', subject: 'staged', files: 3 })
    expect(await files.commit({ message: 'new one\n\n# not a comment', paths: ['ö new.txt'] })).to.include({ files: 1 })
    expect(await files.git('log', '-1', '--format=%B')).to.equal('new one\n\n# not a comment')
    expect(await files.commit({ message: 'rest', all: true })).to.include({ files: 1 })
    expect(await files.status({})).to.include({ clean: true })
    expect(await refusal(files.commit({ message: 'none' }))).to.include({ code: 'GIT_NOTHING' })
  })

  it('takes a path as a path, not as a pattern or an option', async () => {
    await using files = await sample()
    await files.write(':(top)*', 'odd')
    await files.write('--all', 'odd')
    await files.write('*.md', 'odd')
    await files.write('b.md', 'even')
    for (const path of [':(top)*', '--all', '*.md'])
      expect(await files.commit({ message: path, paths: [path] }), path).to.include({ files: 1, subject: path })
  })

  it('makes several commits that come at once', async () => {
    await using files = await sample()
    for (let at = 0; at < 4; at++) await files.write(`file ${at}`, '')
    await Promise.all([0, 1, 2, 3].map(at => files.commit({ message: `${at}`, paths: [`file ${at}`] })))
    expect(((await files.log({})).commits as unknown[]).length).to.equal(6)
  })

  it('names the missing author, and takes the author of the configuration', async () => {
    await using files = await sample()
    await writeFile(files.at('home', '.gitconfig'), '[user]\n\tuseConfigOnly = true\n')
    expect(await refusal(files.commit({ message: 'x' }))).to.include({ code: 'GIT_NO_IDENTITY' })
    await using named = await sample({ author: { name: 'Bot', email: 'bot@example.org' } })
    await named.commit({ message: 'x' })
    expect(await named.git('log', '-1', '--format=%an <%ae>')).to.equal('Bot <bot@example.org>')
  })

  it('takes files and folders that took the place of one another, names that are no UTF-8, and what was taken away', async () => {
    await using files = await openGit()
    await files.git('init', '--quiet')
    await files.write('folder/a', 'a')
    await files.write('file', 'a')
    await files.write('gone', 'a')
    expect(await files.commit({ message: 'first', paths: ['.'] })).to.include({ files: 3 })
    await rm(files.at('root', 'folder'), { recursive: true })
    await files.write('folder', 'now a file')
    await rm(files.at('root', 'file'))
    await files.write('file/a', 'now in a folder')
    await writeFile(Buffer.concat([Buffer.from(files.at('root', 'latin-')), Buffer.from([0xe9])]), 'a')
    await files.git('rm', '--quiet', 'gone')
    expect(await files.commit({ message: 'gone', paths: ['gone'] })).to.include({ files: 1 })
    await files.commit({ message: 'swapped', paths: ['.'] })
    expect(await files.status({})).to.include({ clean: true })
    expect((await files.git('-c', 'core.quotePath=true', 'ls-files')).split('\n')).to.deep.equal([
      'file/a',
      'folder',
      '"latin-\\351"',
    ])
  })

  it('concludes a merge, though it may change nothing, and stages what is fixed', async () => {
    await using files = await sample()
    await files.git('reset', '--quiet', '--hard')
    await files.git('checkout', '--quiet', '-b', 'side')
    await files.write('a.txt', 'side\n')
    await files.git('commit', '--quiet', '-am', 'side')
    await files.git('checkout', '--quiet', 'main')
    await files.write('a.txt', 'main\n')
    await files.git('commit', '--quiet', '-am', 'main')
    await files.git('merge', 'side').catch(() => {})
    expect(await refusal(files.commit({ message: 'merge' }))).to.include({ code: 'GIT_MERGING' })
    await files.write('a.txt', 'main\n')
    await files.commit({ message: 'merge', all: true })
    expect((await files.git('log', '-1', '--format=%P')).split(' ')).to.have.length(2)
  })

  it('refuses what is ignored, and does not stage for a commit without words', async () => {
    await using files = await sample()
    await files.write('.gitignore', '*.log\n')
    await files.write('x.log', '')
    expect(await refusal(files.commit({ message: 'x', paths: ['x.log'] }))).to.include({ code: 'PATH_MISSING' })
    expect(await refusal(files.commit({ message: '\n', paths: ['.gitignore'] }))).to.include({ code: 'GIT_NO_MESSAGE' })
    expect(await files.git('ls-files', '.gitignore')).to.equal('')
  })

  it('leaves staged what was staged, and nothing else, where there is no commit in the end', async () => {
    await using files = await sample()
    await files.write('a.txt', 'staged\n')
    await files.git('add', 'a.txt')
    await files.write('a.txt', 'later\n')
    const before = [await files.git('ls-files', '--stage'), await files.git('status', '--porcelain')]
    await files.write('.git/refs/heads/main.lock', '') // found when all but the branch is done
    for (const args of [{ all: true }, { paths: ['.'] }, { paths: ['a.txt', 'gone.txt', 'ö new.txt'] }])
      expect((await refusal(files.commit({ message: 'x', ...args }))).code).to.match(/^GIT_/)
    expect([await files.git('ls-files', '--stage'), await files.git('status', '--porcelain')]).to.deep.equal(before)
  })

  it('says that another git is at work', async () => {
    await using files = await sample()
    await files.write('.git/index.lock', '')
    expect(await refusal(files.commit({ message: 'x' }))).to.include({ code: 'GIT_BUSY' })
  })
})
