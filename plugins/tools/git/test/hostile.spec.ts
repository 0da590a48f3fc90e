import { appendFile, chmod, readFile, rm } from 'node:fs/promises'
import { expect } from 'chai'
import { marker, refusal, sample, withGit } from './support/repository.ts'

type Files = Awaited<ReturnType<typeof sample>>

/** Has every tool that reads do its work, whatever comes of it, and tells what ran. */
async function readAll(files: Files): Promise<string> {
  // The same size and another time: git must look into the file.
  await files.write('a.txt', 'one\nzwo\nthree\n')
  const works = [
    files.status({}),
    files.diff({}),
    files.diff({ staged: true }),
    files.diff({ from: 'HEAD~1' }),
    files.log({}),
    files.log({ paths: ['a.txt'] }),
    files.show({}),
    files.show({ file: 'a.txt' }),
  ]
  await Promise.allSettled(works)
  return marks(files)
}
const marks = (files: Files) => readFile(files.at('beside', 'mark'), 'utf8').catch(() => '')

/** Settings of a repository that name a program, by what sets them off. */
const PROGRAMS: Record<string, (program: string) => string> = {
  'core.fsmonitor': program => `[core]\n\tfsmonitor = ${program}\n`,
  'diff.external': program => `[diff]\n\texternal = ${program}\n`,
  'a command of a diff driver': program => `[diff "evil"]\n\tcommand = ${program}\n`,
  'a textconv': program => `[diff "evil"]\n\ttextconv = ${program}\n`,
  'a clean filter': program => `[filter "evil"]\n\tclean = ${program}\n\trequired = true\n`,
  'a filter process': program => `[filter "evil"]\n\tprocess = ${program}\n`,
  'a filter with an odd name': program => `[filter "e=v.il"]\n\tclean = ${program}\n`,
  'an included file': program => `[include]\n\tpath = evil-settings\n# ${program}\n`,
  'a pager': program => `[core]\n\tpager = ${program}\n[pager]\n\tlog = ${program}\n\tdiff = true\n`,
  'a signature': program => `[log]\n\tshowSignature = true\n[gpg]\n\tprogram = ${program}\n`,
  'an alias': program => `[alias]\n\tstatus = !${program}\n\tlog = !${program}\n`,
  hooks: program => `[core]\n\thooksPath = evil-hooks\n# ${program}\n`,
}

/** Puts a signature in the last commit: to check it git would start a program. */
async function sign(files: Files): Promise<void> {
  const commit = await files.git('cat-file', 'commit', 'HEAD')
  const armour = '-----BEGIN PGP SIGNATURE-----\n \n iQ==\n -----END PGP SIGNATURE-----'
  await files.write('.git/signed', commit.replace(/^(committer .*)$/m, `$1\ngpgsig ${armour}`))
  await files.git('update-ref', 'HEAD', await files.git('hash-object', '-t', 'commit', '-w', '.git/signed'))
}

async function hostile(settings: (program: string) => string) {
  const files = await sample()
  const program = await marker(files)
  const filter = /\[filter "(.*)"\]/.exec(settings(program))?.[1] ?? 'evil'
  await files.write('.gitattributes', `* diff=evil filter=${filter}\n`)
  await files.write('.git/info/attributes', `* diff=evil filter=${filter}\n`)
  await sign(files)
  await files.write('.git/evil-settings', `[filter "evil"]\n\tclean = ${program}\n[core]\n\tfsmonitor = ${program}\n`)
  for (const hook of ['pre-commit', 'post-index-change', 'post-commit', 'prepare-commit-msg', 'reference-transaction'])
    for (const folder of ['.git/hooks', 'evil-hooks', '.git/evil-hooks']) {
      await files.write(`${folder}/${hook}`, `#!/bin/sh\nexec ${program} ${hook}\n`)
      await chmod(files.at('root', folder, hook), 0o755)
    }
  await appendFile(files.at('root', '.git', 'config'), settings(program))
  return { files, program }
}

withGit('a hostile repository', () => {
  for (const [name, settings] of Object.entries(PROGRAMS))
    it(`runs no program by ${name}`, async () => {
      const { files } = await hostile(settings)
      await using _ = files
      expect(await readAll(files)).to.equal('')
      await files.commit({ message: 'x', paths: ['a.txt'] }).catch(() => {})
      expect(await marks(files)).to.equal('')
    })

  it('would run them if it were not for us', async () => {
    const { files } = await hostile(PROGRAMS['a clean filter']!)
    await using _ = files
    await files.write('a.txt', 'one\nzwo\nthree\n')
    await files.git('status').catch(() => {})
    expect(await marks(files)).to.include('program')
  })

  it('still tells what has changed, though its filters do not run', async () => {
    const { files } = await hostile(PROGRAMS['a clean filter']!)
    await using _ = files
    expect((await files.diff({ paths: ['a.txt'] })).patch).to.include('+2')
  })

  it('commits nothing that a filter of its own would have changed, until it is trusted', async () => {
    const { files, program } = await hostile(PROGRAMS['a clean filter']!)
    await using _ = files
    expect(await refusal(files.commit({ message: 'x', paths: ['a.txt'] }))).to.include({ code: 'GIT_FILTERS' })
    await using trusting = await sample({ trust_repositories: true })
    await trusting.write('.git/hooks/pre-commit', `#!/bin/sh\nexec ${program} pre-commit < /dev/null\n`)
    await chmod(trusting.at('root', '.git/hooks/pre-commit'), 0o755)
    await trusting.commit({ message: 'x' })
    expect(await marks(files)).to.include('pre-commit')
    expect(trusting.tool('git_commit').effects).to.deep.equal(['write', 'execute'])
  })

  it('fetches nothing that it lacks', async () => {
    await using files = await sample()
    const program = await marker(files)
    const blob = await files.git('rev-parse', 'HEAD:a.txt')
    await rm(files.at('root', '.git', 'objects', blob.slice(0, 2), blob.slice(2)), { force: true })
    await appendFile(
      files.at('root', '.git', 'config'),
      `[extensions]\n\tpartialClone = evil\n[remote "evil"]\n\turl = ext::${program}\n\tpromisor = true\n[protocol]\n\tallow = always\n`
    )
    await files.git('config', 'core.repositoryFormatVersion', '1')
    expect(await refusal(files.show({ file: 'a.txt' }))).to.have.property('code')
    expect(await readAll(files)).to.equal('')
  })

  /** A repository in the folder `inner` whose filter leaves a mark; the one around it knows it, and asks for all that can be told of it. */
  async function nested(files: Files): Promise<void> {
    const program = await marker(files)
    await files.git('init', '--quiet', 'inner')
    await files.write('inner/a.txt', 'a')
    await files.git('-C', 'inner', 'add', '.')
    await files.git('-C', 'inner', 'commit', '--quiet', '-m', 'inner')
    await files.git('-c', 'advice.addEmbeddedRepo=false', 'add', 'inner')
    await files.write('.gitmodules', '[submodule "inner"]\n\tpath = inner\n\turl = ./inner\n\tignore = none\n')
    await files.git('add', '.gitmodules')
    await files.git('commit', '--quiet', '-m', 'with inner')
    await files.git('config', 'submodule.inner.ignore', 'none')
    await files.git('config', 'diff.ignoreSubmodules', 'none')
    await files.write('inner/.git/info/attributes', '* filter=other\n')
    await appendFile(
      files.at('root', 'inner', '.git', 'config'),
      `[filter "other"]\n\tclean = ${program}\n[core]\n\tfsmonitor = ${program}\n`
    )
    // The same size and another time: git would look into the file.
    await files.write('inner/a.txt', 'b')
  }

  it('runs nothing of a repository within it', async () => {
    await using files = await sample()
    await nested(files)
    expect(await readAll(files)).to.equal('')
    await files.git('status')
    expect(await marks(files)).to.include('program')
  })

  const COMMITS: Record<string, object> = {
    'what is staged': {},
    'all files': { all: true },
    'a file': { paths: ['a.txt'] },
    'the inner repository': { paths: ['inner'] },
    'the whole folder': { paths: ['.'] },
    'what lies in the inner repository': { paths: ['inner/a.txt'] },
  }
  for (const [name, args] of Object.entries(COMMITS))
    it(`runs nothing of a repository within it by a commit of ${name}, be there something to commit or nothing`, async () => {
      await using files = await sample()
      await nested(files)
      for (const message of ['first', 'second']) await files.commit({ message, ...args }).catch(() => {})
      await files.write('a.txt', 'other')
      await files.git('add', 'a.txt', '.gitmodules')
      for (const message of ['third', 'fourth']) await files.commit({ message, ...args }).catch(() => {})
      expect(await marks(files)).to.equal('')
    })

  it('commits where a repository within it stands, and none that it does not know', async () => {
    await using files = await sample()
    await nested(files)
    await files.git('-C', 'inner', '-c', 'core.fsmonitor=false', 'commit', '--quiet', '--allow-empty', '-m', 'more')
    await rm(files.at('beside', 'mark'), { force: true })
    await files.git('init', '--quiet', 'other')
    await files.write('other/a.txt', 'a')
    await files.git('-C', 'other', 'add', '.')
    await files.git('-C', 'other', 'commit', '--quiet', '-m', 'other')
    expect(await files.commit({ message: 'inner', paths: ['inner'] })).to.include({ files: 1 })
    expect(await files.git('rev-parse', 'HEAD:inner')).to.equal(await files.git('-C', 'inner', 'rev-parse', 'HEAD'))
    expect(await refusal(files.commit({ message: 'other', paths: ['other'] }))).to.include({ code: 'PATH_MISSING' })
    await files.commit({ message: 'rest', paths: ['.'] })
    expect(await files.git('ls-files', 'other')).to.equal('')
    expect(await marks(files)).to.equal('')
  })

  it('asks for no password, and answers at once', async () => {
    await using files = await sample()
    const program = await marker(files)
    await appendFile(
      files.at('root', '.git', 'config'),
      `[credential]\n\thelper = !${program}\n[core]\n\taskPass = ${program}\n\teditor = ${program}\n`
    )
    expect(await readAll(files)).to.equal('')
    await files.commit({ message: 'x' })
    expect(await marks(files)).to.equal('')
  })
})
