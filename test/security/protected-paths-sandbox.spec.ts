import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, rename, symlink, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { until } from '../support/wait.ts'
import { runSvc } from '../support/command.ts'
import { appears, clientCalls, newProject, type Project, startIn } from '../support/project.ts'
import type { Service } from '../support/service.ts'
import { describeWith, skipBecause } from '../support/needs.ts'

const FILESYSTEM = fileURLToPath(new URL('../../node_modules/.bin/mcp-server-filesystem', import.meta.url))
const SHELL = { shell: { enabled: true, write: true, commands: ['sh'], timeout_ms: 10_000 } }

describeWith('bubblewrap', 'sandboxed commands', function () {
  let project: Project
  let service: Service
  before(async () => {
    project = await newProject(
      {},
      {
        'sub/readme.txt': 'sub\n',
        'sub/flows/fine.yaml': 'name: fine\nnodes: {}\n',
        'workflows/fine.yaml': 'name: fine\nnodes: {}\n',
      }
    )
    const disk = (name: string, folder: string) => ({
      name,
      command: FILESYSTEM,
      args: [folder],
      sandbox: true,
      sandbox_config: { allowed_paths: [folder] },
    })
    const clients = [disk('disk', project.at('sub')), disk('whole', project.folder), disk('flows', project.at('workflows'))]
    await writeFile(
      project.at('svc.config.json'),
      JSON.stringify({ tools: SHELL, workflows: { roots: ['workflows', 'sub/flows'] }, mcp: { clients } })
    )
    execFileSync('git', ['init', '--quiet', project.at('sub')])
    service = await startIn(project)
  })
  after(async () => {
    await service[Symbol.asyncDispose]()
    await project[Symbol.asyncDispose]()
  })
  const shell = async (script: string) => {
    const { status, text } = await clientCalls(service, 'run_command', { command: ['sh', '-c', script] })
    expect(status, text).to.equal(200)
    return (JSON.parse(text) as { structured_content: { exit_code: number; stdout: string; stderr: string } }).structured_content
  }

  it('change no protected path, and leave no name of one on the host', async () => {
    const before_ = {
      config: await project.read('svc.config.json'),
      git: await project.read('.git/config'),
      names: await project.names(),
    }
    const hooks = await project.names('.git/hooks')
    const attacks = [
      'echo x > svc.config.json',
      'rm -f svc.config.json',
      'mv svc.config.json gone',
      'echo x > new; mv new svc.config.json; was=$?; rm -f new; exit $was',
      'ln svc.config.json other && echo x > other',
      'echo x > svc.config.js',
      'echo x > svc.config.ts',
      'mkdir -p .config && echo x > .config/config.js',
      'echo x > .git/hooks/pre-commit',
      'echo x >> .git/config',
      'mv .git .git2 && mkdir -p .git/hooks && echo x > .git/hooks/pre-commit',
      'echo ../evil > .git/commondir',
      'mkdir -p .git/worktrees/x',
      'echo x > sub/.git/hooks/pre-commit',
      'mv sub/.git sub/.git2',
      'mv sub sub2',
      'mv workflows flows',
      'echo x > workflows/x.js',
      'rm -rf workflows/fine.yaml',
      'umount workflows',
      'mount -o remount,rw workflows',
    ]
    for (const attack of attacks) expect((await shell(attack)).exit_code, attack).to.not.equal(0)
    expect({
      config: await project.read('svc.config.json'),
      git: await project.read('.git/config'),
      names: await project.names(),
    }).to.deep.equal(before_)
    expect(await project.names('.git/hooks')).to.deep.equal(hooks)
    expect(await project.names('workflows')).to.deep.equal(['fine.yaml'])
  })

  it('write beside them, and git works', async () => {
    const { exit_code, stderr } = await shell('echo ok > made.txt && mkdir -p src/a && mv made.txt src/a/ && rm -r src')
    expect([exit_code, stderr]).to.deep.equal([0, ''])
  })

  it('stay kept out while another command ends', async () => {
    const slow = shell(
      'echo > started; while [ ! -e go ]; do sleep 0.02; done; echo x > svc.config.js; echo $?; rm -f go started'
    )
    await appears(project.at('started'))
    await shell('true')
    await writeFile(project.at('go'), '')
    expect((await slow).stderr).to.include('svc.config.js')
    expect(await project.names()).to.not.include('svc.config.js')
  })

  it('are refused where a link in a writable folder leads to a protected path', async () => {
    await using other = await newProject(
      { tools: SHELL, workflows: { roots: ['flows'] } },
      { 'elsewhere/x.yaml': 'name: x\nnodes: {}\n' }
    )
    await symlink(other.at('elsewhere'), other.at('flows'))
    await using linked = await startIn(other)
    const { status, text } = await clientCalls(linked, 'run_command', { command: ['sh', '-c', 'rm flows'] })
    expect([status, text.includes('is a link in a writable folder')]).to.deep.equal([500, true])
    expect(existsSync(other.at('flows'))).to.equal(true)
  })

  it('of a server that was killed leave nothing that outlives the next command', async () => {
    await using other = await newProject({ tools: SHELL })
    const names = await other.names()
    const killed = await startIn(other)
    void clientCalls(killed, 'run_command', { command: ['sh', '-c', 'echo > started; sleep 9'] }).catch(() => {})
    await appears(other.at('started'))
    await killed.kill()
    await using next = await startIn(other)
    await clientCalls(next, 'run_command', { command: ['sh', '-c', 'rm started'] })
    expect(await other.names()).to.deep.equal(names)
  })

  it('end a stdio server that could write to a protected folder when the folder is replaced', async function () {
    const doctor = await runSvc(['doctor'], { home: project.home, cwd: project.folder })
    if (!/memory held by control groups/.test(doctor.out)) skipBecause(this, 'this machine lets svc make no control groups')
    const write = (path: string) => clientCalls(service, 'disk__write_file', { path: project.at(path), content: 'x' })
    await until(
      () => write('sub/first.txt'),
      ({ status }) => status === 200
    )
    await rename(project.at('sub/flows'), project.at('sub/former'))
    await mkdir(project.at('sub/flows'))
    const later = await until(
      () => write('sub/flows/later.yaml'),
      ({ text }) => text.includes('EROFS')
    )
    expect(later.status).to.equal(500)
    await service.seen(/a protected path was replaced/)
  })

  it('and git in what a stdio server may write is not its own, whatever a person does with it meanwhile', async () => {
    const write = (path: string) =>
      clientCalls(service, 'disk__write_file', { path: project.at(path), content: '[core]\n\tevil = 1\n' })
    await until(
      () => write('sub/first.txt'),
      ({ status }) => status === 200
    )
    const attacks = Array.from({ length: 20 }, () => write('sub/.git/config'))
    execFileSync('git', ['-C', project.at('sub'), 'config', 'user.name', 'somebody'])
    attacks.push(...Array.from({ length: 20 }, () => write('sub/.git/config')), write('sub/.git/index'))
    for (const { status } of await Promise.all(attacks)) expect(status).to.not.equal(200)
    expect(await project.read('sub/.git/config'))
      .to.include('somebody')
      .and.not.include('evil')
  })

  it('and stdio servers in the sandbox are kept out in the same way, or refused the folder', async () => {
    const write = (server: string, path: string) =>
      clientCalls(service, `${server}__write_file`, { path: project.at(path), content: 'x' })
    expect((await write('disk', 'sub/by-server.txt')).status).to.equal(200)
    for (const path of ['sub/.git/hooks/pre-commit', 'sub/.git/config', 'svc.config.js', 'workflows/x.js'])
      expect((await write('disk', path)).text, path).to.match(/TOOL_EXECUTION_FAILED/)
    for (const server of ['whole', 'flows']) expect((await write(server, 'workflows/x.js')).status).to.not.equal(200)
    const svc = (server: string) => runSvc(['mcp', 'test', server], { home: project.home, cwd: project.folder })
    expect(JSON.stringify(await svc('whole'))).to.match(/a program could create a part of/)
    expect(JSON.stringify(await svc('flows'))).to.match(/belongs to the workflows of this server/)
    expect(await project.names('workflows')).to.deep.equal(['fine.yaml'])
  })
})
