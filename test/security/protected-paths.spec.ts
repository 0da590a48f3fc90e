import { execFileSync } from 'node:child_process'
import { mkdir, rm, symlink, writeFile } from 'node:fs/promises'
import { expect } from 'chai'
import { clientCalls, modelCalls, newProject, type Project, startIn } from '../support/project.ts'
import { post, type Service, startService } from '../support/service.ts'

describe('paths that are protected from tools', () => {
  let project: Project
  let service: Service
  before(async () => {
    const config = {
      plugins: ['./plugins/mine'],
      selection: { profiles_file: 'my-profiles.yaml' },
      server: { ssl: { cert: 'tls/cert.pem', key: 'tls/key.pem' } },
    }
    project = await newProject(config, {
      'my-profiles.yaml': 'default: default\nprofiles:\n  default: {}\n',
      'workflows/fine.yaml': 'name: fine\nnodes:\n  a: { type: transform, value: 1 }\n',
      'plugins/mine/package.json': JSON.stringify({
        name: 'mine',
        type: 'module',
        main: 'index.js',
        svc: { api: 1, kind: 'tool' },
      }),
      'plugins/mine/index.js': 'export default { requires: {}, optional: {}, setup() {} }',
    })
    await symlink(project.at('workflows'), project.at('notes/link'))
    service = await startIn(project)
  })
  after(async () => {
    await service[Symbol.asyncDispose]()
    await project[Symbol.asyncDispose]()
  })

  it('keep code of a model out of the workflow folders, so that listing them runs nothing', async () => {
    for (const path of [
      'workflows/x.js',
      'workflows/deep/x.mjs',
      'notes/link/x.ts',
      'Workflows/x.js',
      project.at('workflows/x.js'),
    ]) {
      const outcome = await modelCalls(service, 'write_file', { path, content: project.code })
      expect(outcome.success, path).to.equal(false)
      const { status, text } = await clientCalls(service, 'write_file', { path, content: project.code })
      expect([status, text.includes('belongs to the workflows of this server')], path).to.deep.equal([500, true])
    }
    expect((await modelCalls(service, 'write_file', { path: 'notes/x.js', content: project.code })).success).to.equal(true)
    for (const to of ['workflows/x.js', 'workflows'])
      expect(
        (await modelCalls(service, 'move_file', { from: to === 'workflows' ? 'notes' : 'notes/x.js', to })).success
      ).to.equal(false)
    await fetch(`${service.url}/api/v1/workflows`)
    expect(project.ran()).to.equal(false)
    expect(await project.names('workflows')).to.deep.equal(['fine.yaml'])
  })

  const KEPT = [
    'svc.config.json',
    'svc.config.js',
    'svc.config.ts',
    '.config/config.js',
    '.config/config.cjs',
    'my-profiles.yaml',
    'workflows/fine.yaml',
    'workflows/new.yaml',
    'plugins/mine/index.js',
    'plugins/mine/other.js',
    '.git/hooks/pre-commit',
    '.git/config',
    'svc-plugins.lock',
    'tls/key.pem',
  ]
  for (const path of KEPT)
    it(`cannot be written, replaced, moved onto or deleted: ${path}`, async () => {
      const before_ = await project.read(path).catch(() => undefined)
      const calls: [string, object][] = [
        ['write_file', { path, content: 'x', overwrite: true }],
        ['move_file', { from: 'notes/a.txt', to: path, overwrite: true }],
        ['move_file', { from: path, to: 'notes/taken' }],
        ['edit_file', { path, old_text: before_?.slice(0, 3) || 'x', new_text: 'y' }],
        ['delete_file', { path }],
      ]
      for (const [tool, args] of calls) expect((await modelCalls(service, tool, args)).success, tool).to.equal(false)
      expect(await project.read(path).catch(() => undefined)).to.equal(before_)
    })

  it('take the folders that hold them along: these cannot be moved or deleted either', async () => {
    for (const path of ['workflows', 'plugins', 'plugins/mine', '.git']) {
      expect((await modelCalls(service, 'move_file', { from: path, to: 'notes/taken' })).success, path).to.equal(false)
      expect((await modelCalls(service, 'delete_file', { path, recursive: true })).success, path).to.equal(false)
    }
    expect(await project.names('plugins/mine')).to.deep.equal(['index.js', 'package.json'])
  })

  it('get no commit where a repository lies in one of them', async () => {
    execFileSync('git', ['init', '--quiet', project.at('plugins/mine')])
    const call = (repository: string) =>
      modelCalls(service, 'git_commit', { repository, message: 'x', paths: [`${repository}/index.js`] })
    const { success, error } = await call('plugins/mine')
    expect([success, error]).to.deep.equal([false, '"plugins/mine" belongs to the plugins of svc, and is read-only for tools'])
    await rm(project.at('plugins/mine/.git'), { recursive: true })
  })

  it('can be read, and files beside them can be written', async () => {
    const read = await clientCalls(service, 'read_file', { path: 'workflows/fine.yaml' })
    expect([read.status, read.text.includes('name: fine')]).to.deep.equal([200, true])
    expect((await modelCalls(service, 'write_file', { path: 'src/new/index.js', content: 'ok' })).success).to.equal(true)
  })
})

describe('plugins in files of the project', () => {
  it('are kept with what they import, and where packages are looked up for them', async () => {
    const config = { plugins: ['./hello.ts', './weather'] }
    await using project = await newProject(config, {
      'hello.ts': "import './shared/value.ts'\nexport default { requires: {}, optional: {}, setup() {} }\n",
      'shared/value.ts': 'export const VALUE = 1\n',
      'weather/package.json': JSON.stringify({
        name: 'weather',
        type: 'module',
        main: 'src/index.js',
        svc: { api: 1, kind: 'tool' },
      }),
      'weather/src/index.js': "import '../../other/value.js'\nexport default { requires: {}, optional: {}, setup() {} }\n",
      'other/value.js': 'export const VALUE = 1\n',
    })
    await using service = await startIn(project)
    const paths = [
      'hello.ts',
      'shared/value.ts',
      'package.json',
      'shared/package.json',
      'node_modules/@svc/core/package.json',
      'node_modules/dependency/index.js',
      'weather/src/index.js',
      'weather/node_modules/dependency/index.js',
      'other/value.js',
    ]
    for (const path of paths)
      expect((await modelCalls(service, 'write_file', { path, content: 'x', overwrite: true })).success, path).to.equal(false)
    expect((await modelCalls(service, 'write_file', { path: 'docs/x.js', content: 'x' })).success).to.equal(true)
  })
})

describe('programs that svc starts', () => {
  it('cannot be put where they are looked up first, as in the node_modules/.bin of a start through npm', async () => {
    await using project = await newProject({}, { 'bin/.keep': '' })
    const PATH = [project.at('node_modules/.bin'), project.at('bin'), process.env.PATH].join(':')
    const args = ['--config', 'svc.config.json', '--mcp']
    await using service = await startService({ home: project.home, cwd: project.folder, args, env: { PATH } })
    for (const path of ['node_modules/.bin/git', 'bin/git'])
      expect((await modelCalls(service, 'write_file', { path, content: '#!/bin/sh\n' })).success, path).to.equal(false)
    expect((await clientCalls(service, 'git_status', {})).status).to.equal(200)
  })
})

describe('workflows that are code', () => {
  it('are not imported from workflow folders, and listed with what to do', async () => {
    await using project = await newProject({})
    await mkdir(project.at('workflows'))
    await writeFile(project.at('workflows/x.js'), project.code)
    await using service = await startIn(project)
    const { workflows } = (await (await fetch(`${service.url}/api/v1/workflows`)).json()) as { workflows: object[] }
    expect(project.ran()).to.equal(false)
    await post(`${service.url}/api/v1/workflows/run`, { workflow: 'workflows/x.js' })
    await post(`${service.url}/api/v1/workflows/run`, { workflow: 'x' })
    expect(project.ran()).to.equal(false)
    expect(JSON.stringify(workflows)).to.not.include('"status":"ready"')
  })

  it('are imported from workflows.code alone, which tools cannot change, nor what they import', async () => {
    const config = { workflows: { code: ['flows'], writable_by_tools: true } }
    await using project = await newProject(config, {
      'flows/typed.ts':
        "import { VALUE } from '../shared/value.ts'\nexport default { name: 'typed', nodes: { a: { type: 'transform', value: VALUE } } }\n",
      'shared/value.ts': 'export const VALUE: number = 7\n',
    })
    await using service = await startIn(project)
    const { body } = await post(`${service.url}/api/v1/workflows/run`, { workflow: 'typed' })
    expect(body.status).to.equal('completed')
    for (const path of ['flows/typed.ts', 'flows/new.ts', 'shared/value.ts', 'flows/package.json', 'shared/package.json'])
      expect((await modelCalls(service, 'write_file', { path, content: project.code, overwrite: true })).success, path).to.equal(
        false
      )
    // definitions are data: these may be written where the configuration says so, code beside them is not imported all the same
    const yaml = 'name: made\nnodes:\n  a: { type: transform, value: 1 }\n'
    expect((await modelCalls(service, 'write_file', { path: 'workflows/made.yaml', content: yaml })).success).to.equal(true)
    expect((await modelCalls(service, 'write_file', { path: 'workflows/bad.js', content: project.code })).success).to.equal(true)
    expect((await post(`${service.url}/api/v1/workflows/run`, { workflow: 'made' })).body.status).to.equal('completed')
    await post(`${service.url}/api/v1/workflows/run`, { workflow: 'bad' })
    expect(project.ran()).to.equal(false)
  })
})

describe('a configuration that is code', () => {
  it('keeps what it imports, the package.json beside it and its packages from tools', async () => {
    await using project = await newProject(
      {},
      {
        'svc.config.mts':
          "import { name } from './settings/name.ts'\nimport 'helper'\nexport default { selection: { mode: name } }\n",
        'settings/name.ts': "export const name: string = 'build'\n",
        'node_modules/helper/package.json': JSON.stringify({ name: 'helper', type: 'module', main: 'index.js' }),
        'node_modules/helper/index.js': 'export {}\n',
      }
    )
    await rm(project.at('svc.config.json'))
    await using service = await startService({ home: project.home, cwd: project.folder, args: ['--config', 'svc.config.mts'] })
    for (const path of [
      'settings/name.ts',
      'settings/package.json',
      'package.json',
      'node_modules/helper/index.js',
      'node_modules/other/index.js',
    ])
      expect((await modelCalls(service, 'write_file', { path, content: 'x', overwrite: true })).success, path).to.equal(false)
    expect((await modelCalls(service, 'write_file', { path: 'settings-of-mine/x.ts', content: 'x' })).success).to.equal(true)
  })
})
