import { execFile } from 'node:child_process'
import { mkdir, rename, symlink, writeFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { refusal, sample, withGit } from './support/repository.ts'

type Files = Awaited<ReturnType<typeof sample>>

withGit('a repository that leads out of the roots', () => {
  const LEADS: Record<string, (files: Files) => Promise<unknown>> = {
    'a working tree outside': files => files.git('config', 'core.worktree', files.at('beside')),
    'its git folder outside, by a file': async files => {
      await rename(files.at('root', '.git'), files.at('beside', 'git'))
      await files.write('.git', `gitdir: ${files.at('beside', 'git')}\n`)
    },
    'its git folder outside, by a link': async files => {
      await rename(files.at('root', '.git'), files.at('beside', 'git'))
      await symlink(files.at('beside', 'git'), files.at('root', '.git'))
    },
    'its objects outside, by a link': async files => {
      await rename(files.at('root', '.git', 'objects'), files.at('beside', 'objects'))
      await symlink(files.at('beside', 'objects'), files.at('root', '.git', 'objects'))
    },
    'borrowed objects outside': async files => {
      await mkdir(files.at('beside', 'objects'))
      await writeFile(files.at('root', '.git', 'objects', 'info', 'alternates'), `${files.at('beside', 'objects')}\n`)
    },
    'objects outside that are borrowed by those it borrows': async files => {
      for (const folder of [files.at('beside', 'objects'), files.at('root', 'middle', 'info')])
        await mkdir(folder, { recursive: true })
      await writeFile(files.at('root', 'middle', 'info', 'alternates'), `${files.at('beside', 'objects')}\n`)
      await writeFile(files.at('root', '.git', 'objects', 'info', 'alternates'), `${files.at('root', 'middle')}\n`)
    },
    'one object outside, by a link': async files => {
      const [folder, name] = objectOf(await files.git('rev-parse', 'HEAD'))
      const object = files.at('root', '.git', 'objects', folder, name)
      await rename(object, files.at('beside', 'object'))
      await symlink(files.at('beside', 'object'), object)
    },
    'some objects outside, by a link to a link': async files => {
      const [folder, name] = objectOf(await files.git('rev-parse', 'HEAD'))
      await rename(files.at('root', '.git', 'objects', folder), files.at('root', 'middle'))
      await symlink(files.at('root', 'middle'), files.at('root', '.git', 'objects', folder))
      await rename(files.at('root', 'middle', name), files.at('beside', 'object'))
      await symlink(files.at('beside', 'object'), files.at('root', 'middle', name))
    },
    'its index outside, by a link': async files => {
      await rename(files.at('root', '.git', 'index'), files.at('beside', 'index'))
      await symlink(files.at('beside', 'index'), files.at('root', '.git', 'index'))
    },
    'a pipe where it says what it borrows': async files => {
      await promisify(execFile)('mkfifo', [files.at('root', '.git', 'objects', 'info', 'alternates')])
    },
  }
  const objectOf = (hash: string) => [hash.slice(0, 2), hash.slice(2)] as const
  for (const [name, lead] of Object.entries(LEADS))
    it(`is refused with ${name}`, async () => {
      await using files = await sample()
      await lead(files)
      for (const work of [() => files.status({}), () => files.log({}), () => files.commit({ message: 'x' })]) {
        const error = await refusal(work())
        expect(error.code).to.be.oneOf(['GIT_OUTSIDE', 'GIT_NO_REPOSITORY'])
        expect(error.message).to.not.include(files.at())
      }
    })

  it('is read as ever with links in its folder that stay within, or lead to nothing', async () => {
    await using files = await sample()
    await rename(files.at('root', '.git', 'objects'), files.at('root', 'objects'))
    await symlink(files.at('root', 'objects'), files.at('root', '.git', 'objects'))
    await symlink('somebody@a.machine:1', files.at('root', '.git', '.#COMMIT_EDITMSG'))
    expect(await files.log({}))
      .to.have.property('commits')
      .with.lengthOf(2)
  })
})
