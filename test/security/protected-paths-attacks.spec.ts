import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { until } from '../support/wait.ts'
import { appears, clientCalls, modelCalls, newProject, type Project } from '../support/project.ts'
import { type Service, startService } from '../support/service.ts'
import { describeWith } from '../support/needs.ts'

const FILESYSTEM = fileURLToPath(new URL('../../node_modules/.bin/mcp-server-filesystem', import.meta.url))
const SHELL = { shell: { enabled: true, write: true, commands: ['sh'], timeout_ms: 10_000 } }
const BWRAP = ['/usr/bin/bwrap', '/usr/local/bin/bwrap', '/bin/bwrap'].find(existsSync)
/**
 * A bubblewrap before which a script runs once: what a program in another sandbox could do at this moment. The server, which would notice, has no turn meanwhile,
 * as on a machine with much to do.
 */
const bubblewrapAfter = (script: string) => `#!/bin/sh
[ -e '${script}' ] || exec ${BWRAP} "$@"
kill -STOP $PPID
mv '${script}' '${script}.done'
sh '${script}.done'
${BWRAP} "$@"
code=$?
kill -CONT $PPID
exit $code
`

describeWith('bubblewrap', 'protected paths under attack', function () {
  let project: Project
  let service: Service
  let bin: string
  before(async () => {
    project = await newProject({ tools: SHELL }, { 'sub/readme.txt': '' })
    bin = await mkdtemp(join(tmpdir(), 'svc-bin-'))
    await writeFile(join(bin, 'bwrap'), bubblewrapAfter(join(bin, 'meanwhile')))
    await chmod(join(bin, 'bwrap'), 0o755)
    execFileSync('git', ['init', '--quiet', project.at('sub')])
    await mkdir(project.at('a/b/c/d'), { recursive: true })
    execFileSync('git', ['init', '--quiet', '--separate-git-dir', project.at('a/b/c/d/storage'), project.at('apart')])
    execFileSync('git', ['init', '--quiet', project.at('far/repository')])
    execFileSync('git', ['init', '--quiet', '--bare', project.at('bare')])
    service = await startWith(project)
  })
  after(async () => {
    await service[Symbol.asyncDispose]()
    await Promise.all([project[Symbol.asyncDispose](), rm(bin, { recursive: true })])
  })
  const startWith = ({ home, folder }: Project) => {
    const env = { PATH: `${bin}:${process.env.PATH}` }
    return startService({ home, cwd: folder, args: ['--config', 'svc.config.json', '--mcp'], env })
  }
  const shell = async (script: string) => {
    const { status, text } = await clientCalls(service, 'run_command', { command: ['sh', '-c', script] })
    expect(status, text).to.equal(200)
    return (JSON.parse(text) as { structured_content: { exit_code: number; stdout: string; stderr: string } }).structured_content
  }

  it('are not reached where a link takes the place of a folder while the sandbox is made', async () => {
    const config = { tools: { ...SHELL, files: { roots: ['work'] } } }
    await using other = await newProject(config, { 'work/sub/readme.txt': '' })
    execFileSync('git', ['init', '--quiet', other.at('work/sub')])
    const before_ = await other.read('svc.config.json')
    await using attacked = await startWith(other)
    const runs = (script: string) => clientCalls(attacked, 'run_command', { command: ['sh', '-c', script] })
    // svc tries bubblewrap out before it is first used
    await runs('true')
    // the folder around the only one that may be written, and a protected one that would be bound anew, for writing
    for (const [link, path] of [
      ['../..', 'x/.git'],
      ['../sub/.git/hooks', 'longer-than-the-other-path/.git'],
    ] as const) {
      await mkdir(other.at('work', path), { recursive: true })
      await writeFile(
        join(bin, 'meanwhile'),
        `cd ${other.at('work')} && mv ${path} moved && ln -s ${link} ${path} && touch ${path}/commondir`
      )
      const script = `echo '{}' > ${other.at('svc.config.json')} || echo x > sub/.git/hooks/evil`
      const { text } = await runs(script)
      expect(text, path).to.include('the program did not run')
      for (const name of [path.split('/')[0]!, 'moved']) await rm(other.at('work', name), { recursive: true })
    }
    expect(await other.read('svc.config.json')).to.equal(before_)
    expect(await other.names('work/sub/.git/hooks')).to.not.include('evil')
  })

  it('keep a repository where it is, so that no other one takes its place', async () => {
    const moves = [
      ['sub', 'a/b/c/d/sub'],
      ['sub', 'node_modules/sub'],
      ['bare', 'bare2'],
      ['a', 'a2'],
    ]
    for (const [from, to] of moves) expect((await modelCalls(service, 'move_file', { from, to })).success, from).to.equal(false)
    await mkdir(project.at('made'))
    await writeFile(project.at('made/config.js'), '')
    expect((await modelCalls(service, 'move_file', { from: 'made', to: '.config' })).success).to.equal(false)
    expect((await modelCalls(service, 'move_file', { from: 'made', to: 'made2' })).success).to.equal(true)
  })

  it('are git folders of other names, too', async () => {
    for (const folder of ['a/b/c/d/storage', 'bare']) {
      for (const path of ['hooks/pre-commit', 'config', 'HEAD'])
        for (const [tool, args] of [
          ['write_file', { path: `${folder}/${path}`, content: 'x', overwrite: true }],
          ['delete_file', { path: `${folder}/${path}` }],
        ] as const)
          expect((await modelCalls(service, tool, args)).success, `${tool} ${folder}/${path}`).to.equal(false)
      expect((await modelCalls(service, 'delete_file', { path: folder, recursive: true })).success, folder).to.equal(false)
      expect((await shell(`echo x > ${folder}/hooks/pre-commit`)).exit_code, folder).to.not.equal(0)
    }
    await shell('mv a/b/c/d/storage/HEAD a/b/c/d/storage/OTHER')
    expect((await shell('echo x > a/b/c/d/storage/hooks/pre-commit')).exit_code).to.not.equal(0)
  })

  it('are found among many folders', async () => {
    await shell('i=0; while [ $i -lt 900 ]; do i=$((i+1)); echo e$i; done | xargs mkdir')
    expect((await shell('echo x > far/repository/.git/hooks/pre-commit')).exit_code).to.not.equal(0)
    await shell('rm -r e*')
  })

  it('may lie in one another, and need not be there', async () => {
    await using other = await newProject(
      { tools: SHELL, workflows: { roots: ['flows'], code: ['flows/code'] } },
      { 'flows/a.yaml': '' }
    )
    await using nested = await startWith(other)
    const runs = (script: string) => clientCalls(nested, 'run_command', { command: ['sh', '-c', script] })
    expect((await runs('echo ok')).text).to.include('"exit_code":0')
    expect((await runs('echo x > flows/code')).text).to.not.include('"exit_code":0')
    expect(await other.names('flows')).to.deep.equal(['a.yaml'])
  })

  it('leave git as it is, in the sandbox and beside it', async () => {
    const slow = shell(
      'echo > sub/started; while [ ! -e sub/go ]; do sleep 0.02; done; cd sub && git add readme.txt && git status'
    )
    await appears(project.at('sub/started'))
    expect((await clientCalls(service, 'git_status', { repository: 'sub' })).status).to.equal(200)
    execFileSync('git', ['-C', project.at('sub'), 'status'])
    await writeFile(project.at('sub/go'), '')
    const { exit_code, stderr } = await slow
    expect([exit_code, stderr]).to.deep.equal([0, ''])
    expect(await project.names('sub/.git')).to.not.include('commondir')
  })

  it('cannot be led elsewhere by a tool server that names another git folder', async () => {
    await using other = await newProject({}, { 'sub/readme.txt': '' })
    execFileSync('git', ['init', '--quiet', other.at('sub')])
    const sandbox_config = { allowed_paths: [other.at('sub')] }
    const client = { name: 'disk', command: FILESYSTEM, args: [other.at('sub')], sandbox: true, sandbox_config }
    await writeFile(other.at('svc.config.json'), JSON.stringify({ mcp: { clients: [client] } }))
    await using held = await startWith(other)
    const write = (path: string) => clientCalls(held, 'disk__write_file', { path: other.at(path), content: '../evil\n' })
    await until(
      () => write('sub/first.txt'),
      ({ status }) => status === 200
    )
    for (const path of ['sub/.git/commondir', 'sub/.git/modules/x', 'sub/.git/worktrees/x'])
      expect((await write(path)).status, path).to.equal(500)
    execFileSync('git', ['-C', other.at('sub'), 'status'])
  })
})

describe('programs of tool servers that run without a sandbox', () => {
  it('are kept with all that they are started from', async () => {
    const open = (name: string, command: string, args: string[]) => ({ name, command, args, sandbox: false })
    const clients = [
      open('script', 'node', ['--import=./hook.mjs', 'server.js']),
      open('folder', 'node', ['./served']),
      open('package', 'npx', ['--no', 'not-there-at-all']),
    ]
    await using project = await newProject(
      { mcp: { clients } },
      { 'hook.mjs': '', 'server.js': "import './lib/one.js'\n", 'lib/one.js': '', 'served/index.js': '' }
    )
    const { home, folder } = project
    await using service = await startService({ home, cwd: folder, args: ['--config', 'svc.config.json', '--mcp'] })
    for (const path of ['hook.mjs', 'lib/one.js', 'served/index.js', 'node_modules/.bin/not-there-at-all', 'package.json'])
      expect((await modelCalls(service, 'write_file', { path, content: 'x', overwrite: true })).success, path).to.equal(false)
    expect((await modelCalls(service, 'write_file', { path: 'lib/other.js', content: 'x' })).success).to.equal(true)
  })
})
