import { execFile } from 'node:child_process'
import { chmod, mkdir, readFile, stat, symlink, writeFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { service, testHost } from '@svc/testing'
import { Tools, Workplace } from '@svc/core/contracts'
import { expect } from 'chai'
import { setTimeout as wait } from 'node:timers/promises'
import { openGit, refusal, sample, which, withGit } from './support/repository.ts'

withGit('git_status', () => {
  it('tells the branch, and what has become of each file', async () => {
    await using files = await sample()
    const { commit, ...status } = await files.status({})
    expect(commit).to.equal(await files.git('rev-parse', 'HEAD'))
    expect(status).to.deep.equal({
      repository: '.',
      branch: 'main',
      clean: false,
      files: [
        { path: 'a.txt', unstaged: 'modified' },
        { path: 'gone.txt', staged: 'deleted' },
        { path: 'new name.txt', staged: 'renamed', old_path: 'old name.txt' },
        { path: 'ö new.txt', unstaged: 'untracked' },
      ],
      truncated: false,
    })
  })

  it('tells conflicts, no branch, a repository before its first commit, and what is ahead', async () => {
    await using files = await openGit()
    await files.git('init', '--quiet')
    expect(await files.status({})).to.include({ commit: null, branch: 'main', clean: true })
    await files.write('a', '1')
    await files.git('add', '.')
    await files.git('commit', '--quiet', '-m', 'a')
    await files.git('branch', 'base')
    await files.write('a', '2')
    await files.git('commit', '--quiet', '-am', 'b')
    await files.git('branch', '--quiet', '--set-upstream-to=base')
    expect(await files.status({})).to.include({ upstream: 'base', ahead: 1, behind: 0 })
    await files.git('checkout', '--quiet', 'base')
    await files.write('a', '3')
    await files.git('commit', '--quiet', '-am', 'c')
    await files.git('merge', 'main').catch(() => {})
    expect((await files.status({})).files).to.deep.equal([{ path: 'a', unstaged: 'unmerged' }])
    await files.git('reset', '--quiet', '--hard')
    await files.git('checkout', '--quiet', '--detach')
    expect(await files.status({})).to.include({ branch: null })
  })

  it('names paths as the other tools do, wherever in the roots the repository lies', async () => {
    await using files = await openGit({}, 'work/project')
    await files.git('init', '--quiet')
    await files.write('src/a.txt', 'a')
    const status = await files.status({ repository: 'work/project/src' })
    expect(status).to.deep.include({
      repository: 'work/project',
      files: [{ path: 'work/project/src/a.txt', unstaged: 'untracked' }],
    })
    await files.commit({ repository: 'work/project', message: 'a', paths: ['work/project/src/a.txt'] })
    expect(await files.show({ repository: 'work/project', file: 'work/project/src/a.txt' })).to.include({ content: 'a' })
    const other = files.log({ repository: 'work/project', paths: ['work/else'] })
    expect((await refusal(other)).message).to.equal('"work/else" is outside the repository')
  })

  it('tells some of very many files, and that there are more', async () => {
    await using files = await openGit({ max_entries: 5 })
    await files.git('init', '--quiet')
    for (let at = 0; at < 9; at++) await files.write(`${at}`, '')
    const { files: reported, truncated } = await files.status({})
    expect([(reported as unknown[]).length, truncated]).to.deep.equal([5, true])
  })
})

withGit('git_diff', () => {
  it('shows changes of the files, what is staged, and what lies between commits', async () => {
    await using files = await sample()
    const changed = await files.diff({})
    expect(changed.files).to.deep.equal([{ path: 'a.txt', added: 1, deleted: 1, binary: false }])
    expect(changed.patch).to.include('-two\n+2\n')
    const staged = await files.diff({ staged: true })
    expect(staged.files).to.deep.include({ path: 'new name.txt', old_path: 'old name.txt', added: 0, deleted: 0, binary: false })
    const between = await files.diff({ from: 'HEAD~1', to: 'HEAD', context: 0 })
    expect(between.patch).to.include('@@ -2,0 +3 @@').and.include('+three')
    expect((await files.diff({ paths: ['ö new.txt'] })).patch).to.equal('')
  })

  it('cuts a long patch behind a whole line, and says so', async () => {
    await using files = await sample({ max_bytes: 1024 })
    await files.write('a.txt', 'ä long line of the text\n'.repeat(1000))
    const { patch, truncated } = await files.diff({})
    expect(truncated).to.equal(true)
    expect(patch)
      .to.have.length.below(1025)
      .and.match(/text\n$/)
    const { content } = await files.tool('git_diff').call({}, files.ctx)
    expect(JSON.stringify(content)).to.include('is truncated')
  })

  it('tells binary files without showing them', async () => {
    await using files = await sample()
    await files.write('a.txt', Buffer.from([1, 0, 2]))
    expect((await files.diff({})).files).to.deep.equal([{ path: 'a.txt', added: 0, deleted: 0, binary: true }])
  })
})

withGit('git_log and git_show', () => {
  it('list commits, some of them, and those of a file', async () => {
    await using files = await sample()
    const { commits, truncated } = await files.log({ limit: 1 })
    expect(truncated).to.equal(true)
    expect((commits as object[])[0]).to.include({
      commit: await files.git('rev-parse', 'HEAD'),
      author: 'Ann',
      email: 'ann@example.org',
      subject: 'second',
      body: 'with a body',
    })
    const subjects = async (args: Parameters<typeof files.log>[0]) =>
      ((await files.log(args)).commits as { subject: string }[]).map(commit => commit.subject)
    expect(await subjects({})).to.deep.equal(['second', 'first'])
    expect(await subjects({ skip: 1 })).to.deep.equal(['first'])
    expect(await subjects({ paths: ['gone.txt'] })).to.deep.equal(['first'])
    expect(await subjects({ from: 'HEAD~1' })).to.deep.equal(['first'])
  })

  it('show a commit with its changes, the first one too, and a file as it was', async () => {
    await using files = await sample()
    expect(await files.show({})).to.deep.include({
      subject: 'second',
      files: [{ path: 'a.txt', added: 1, deleted: 0, binary: false }],
    })
    expect((await files.show({ commit: 'HEAD~1' })).patch).to.include('+one')
    expect(await files.show({ commit: 'HEAD~1', file: 'a.txt' })).to.include({ content: 'one\ntwo\n', size: 8, truncated: false })
    expect(await files.show({ file: 'gone.txt' })).to.include({ content: 'gone' })
  })

  it('say that there is no commit yet', async () => {
    await using files = await openGit()
    await files.git('init', '--quiet')
    expect((await files.log({})).commits).to.deep.equal([])
    expect((await refusal(files.show({}))).code).to.equal('GIT_UNKNOWN_REVISION')
  })
})

withGit('tools-git', () => {
  it('says that a folder is in no repository, or in one that has no files', async () => {
    await using files = await openGit()
    expect((await refusal(files.status({}))).message).to.equal('"." is in no git repository that tools can use')
    await mkdir(files.at('root', 'bare'))
    await files.git('init', '--quiet', '--bare', 'bare')
    expect((await refusal(files.status({ repository: 'bare' }))).code).to.be.oneOf(['GIT_BARE', 'GIT_NO_REPOSITORY'])
  })

  it('does not look for a repository above the roots', async () => {
    await using files = await openGit({}, 'inner')
    await files.git('init', '--quiet', '..')
    await using within = await openGit({ roots: [files.at('root', 'inner')] })
    expect((await refusal(within.status({}))).code).to.equal('GIT_NO_REPOSITORY')
  })

  it('ends git and what it started when its time is up', async () => {
    let pid = Number.NaN
    // On a busy machine the first limits may be over before anything is started.
    for (let timeout_ms = 300; Number.isNaN(pid); timeout_ms *= 3) {
      await using files = await sample({ timeout_ms })
      const file = files.at('beside', 'pid')
      await writeFile(files.at('beside', 'git'), `#!/bin/sh\nsleep 1000 &\necho $! > '${file}'\nwait\n`)
      await chmod(files.at('beside', 'git'), 0o755)
      process.env.PATH = `${files.at('beside')}:${process.env.PATH}`
      expect(await refusal(files.status({}))).to.include({ code: 'GIT_TIMEOUT' })
      pid = Number.parseInt(await readFile(file, 'utf8').catch(() => ''), 10)
    }
    expect(await stat(`/proc/${pid}/fd/0`).catch((error: { code: string }) => error.code)).to.equal('ENOENT')
  })

  it('starts at most four processes at the same time', async () => {
    await using files = await sample()
    const [real, log, go] = [await which('git'), files.at('beside', 'log'), files.at('beside', 'go')]
    // Each tells that it runs, and runs on once it may.
    const words = ['#!/bin/sh', `echo + >> '${log}'`, `until [ -e '${go}' ]; do sleep 0.01; done`, `'${real}' "$@"`]
    await writeFile(files.at('beside', 'git'), [...words, 'code=$?', `echo - >> '${log}'`, 'exit $code', ''].join('\n'))
    await chmod(files.at('beside', 'git'), 0o755)
    process.env.PATH = `${files.at('beside')}:${process.env.PATH}`
    const running = Promise.all(Array.from({ length: 12 }, () => files.status({})))
    const reported = async () => (await readFile(log, 'utf8').catch(() => '')).split('\n').slice(0, -1)
    while ((await reported()).length < 4) await wait(5)
    // Others would have come long before these have been and gone.
    for (let at = 0; at < 20; at++) await promisify(execFile)(real, ['version'])
    await writeFile(go, '')
    await running
    let [now, most] = [0, 0]
    for (const item of await reported()) most = Math.max(most, (now += item === '+' ? 1 : -1))
    expect([now, most]).to.deep.equal([0, 4])
  })

  it('works in the folders that the tools for files tell', async () => {
    await using files = await sample()
    const workplace = service(Workplace, { roots: async () => [files.at('root')] })
    await using host = await testHost([new URL('..', import.meta.url)], { give: [workplace] })
    const { structured } = await host.slot(Tools).get('git_status')!.call({}, files.ctx)
    expect(structured).to.include({ branch: 'main' })
  })

  it('tells no path of the machine', async () => {
    await using files = await sample()
    await symlink(files.at('beside'), files.at('root', 'leak'))
    const problems = [
      () => files.status({ repository: 'leak' }),
      () => files.commit({ message: 'x', paths: ['leak/x'] }),
      () => files.show({ file: 'leak/x' }),
    ]
    for (const fault of problems) expect((await refusal(fault())).message).to.not.include(files.at())
    await files.write('.git/config', '[bad\n')
    expect((await refusal(files.status({}))).message)
      .to.not.include(files.at())
      .and.not.include('/root')
  })

  it('tells no part of a path either, whatever its folders are called', async () => {
    for (const folder of ['some secret', "it's a secret", 'odd: secret', 'a "secret" one']) {
      await using files = await openGit({}, folder)
      await files.git('init', '--quiet')
      await files.write('settings', '[bad\n')
      await files.git('config', 'include.path', files.at('root', folder, 'settings'))
      const { code, message } = await refusal(files.status({ repository: folder }))
      expect(code).to.equal('GIT_FAILED')
      expect(message, folder)
        .to.match(/^git failed: bad config line 1 in file …/)
        .and.not.match(/secret|settings/)
    }
  })
})

describe('tools-git without git', () => {
  it('says that git is missing, and what fixes it', async () => {
    await using files = await openGit()
    process.env.PATH = files.at('home')
    const error = await refusal(files.status({}))
    expect(error).to.include({ code: 'GIT_MISSING' })
    expect(error.hint).to.include('Install git')
  })
})
