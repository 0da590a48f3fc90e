import { readFile, symlink, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { noBubblewrap, pluginKit } from '@svc/testing'
import { expect } from 'chai'
import { lintPlugin } from '../src/commands/author/lint.ts'
import { staleBuild } from '../src/commands/author/source-and-build.ts'
import { testPlugin } from '../src/commands/author/test-plugin.ts'
import { TIDES, tidesFolder } from '../../../../test/support/tides.ts'
import { link } from './support/linked.ts'
import { itWith, lacking } from '../../../../test/support/needs.ts'
import { makeWorkspace, type Workspace } from '../../../../cli/test/support/svc.ts'

const MODULES = fileURLToPath(new URL('../../../../node_modules', import.meta.url))
const MANIFEST = { api: 1, kind: 'tool', contributes: { tools: ['liar', 'ghost'] } }
/** Declares a tool that it does not add, and reads, asks and breaks what it does not say. */
const LIAR = `
import { Tools } from '@svc/core/contracts'
export default {
  setup(scope) {
    const home = process.env.SECRET_HOME
    scope.add(Tools, 'liar', {
      description: 'Says how long a list is.', category: 'text', effects: ['read'],
      parameters: { type: 'object', properties: { list: { type: 'array', items: { type: 'string' }, description: 'It' } }, additionalProperties: false },
      call: async ({ list }) => ({ content: [{ type: 'text', text: String(list.length) }] }),
    })
  },
}
`

async function liar(workspace: Workspace, code = LIAR, more: object = {}): Promise<string> {
  const peerDependencies = { '@svc/core': '^0.1.0' }
  const own = { name: 'svc-plugin-liar', version: '1.0.0', type: 'module', exports: './index.js' }
  const file = { ...own, peerDependencies, svc: MANIFEST, ...more }
  await workspace.write('liar/package.json', JSON.stringify(file))
  await workspace.write('liar/index.js', code)
  return join(workspace.folder, 'liar')
}

const failedIn = (cases: readonly { title: string; state: string; error?: string }[]) =>
  new Map(cases.filter(({ state }) => state === 'failed').map(({ title, error = '' }) => [title, error]))

describe('svc plugins test', function () {
  this.timeout(180_000)

  it('reports a false manifest, an undeclared variable, and a broken tool', async () => {
    await using workspace = await makeWorkspace()
    const { cases } = await testPlugin(
      { folder: await liar(workspace), seed: 1, home: workspace.home, isolation: 'in-process' },
      () => {}
    )
    const failed = failedIn(cases)
    expect([...failed.keys()]).to.include.members([
      'adds what its manifest declares, and nothing else',
      'declares the variables that it reads and the hosts that it connects to during its start',
      'tools liar: ends generated calls with a result or a readable error, changes no argument and leaves nothing open',
      'tools liar: does not start a generated call whose signal is already aborted',
    ])
    expect(failed.get('adds what its manifest declares, and nothing else')).to.include('ghost')
    expect(failed.get('declares the variables that it reads and the hosts that it connects to during its start')).to.include(
      'SECRET_HOME'
    )
    expect([...failed.values()].join('\n')).to.match(/it broke: Cannot read properties of undefined/)
  })

  it('reports undeclared contributions and leftovers', async () => {
    await using workspace = await makeWorkspace()
    const undeclared = await liar(workspace, LIAR.replace("'liar', {", "'other', {"))
    const first = failedIn(
      (await testPlugin({ folder: undeclared, seed: 1, home: workspace.home, isolation: 'in-process' }, () => {})).cases
    )
    expect([...first.values()].join('\n')).to.include('which its manifest does not declare')
    await using other = await makeWorkspace()
    const opens = 'globalThis.leaks = [...(globalThis.leaks ?? []), setInterval(() => {}, 5000)]; const home'
    const cases = await pluginKit(await liar(other, LIAR.replace('const home', opens)))
    const again = cases.find(testCase => testCase.title === 'can be restarted, and leaves nothing behind')
    const error = await again!.run().then(
      () => undefined,
      (why: Error) => why
    )
    expect(error?.message).to.include('a timer')
    for (const timer of (globalThis as { leaks?: NodeJS.Timeout[] }).leaks ?? []) clearInterval(timer)
  })

  it('reports a variable that only a call reads', async () => {
    await using workspace = await makeWorkspace()
    const later = LIAR.replace('const home = process.env.SECRET_HOME', '').replace(
      'call: async ({ list }) => ({',
      'call: async ({ list = [] }) => ({ said: process.env.LATE_KEY, '
    )
    const run = async (code: string) =>
      testPlugin({ folder: await liar(workspace, code), seed: 1, home: workspace.home, isolation: 'in-process' }, () => {})
    expect([...failedIn((await run(later)).cases).values()].join('\n')).to.include('it reads the variable LATE_KEY')
  })

  it('checks the types of a package in TypeScript, and warns of a build that is missing or old', async () => {
    await using workspace = await makeWorkspace()
    await symlink(MODULES, join(workspace.folder, 'node_modules'))
    const folder = join(workspace.folder, 'svc-plugin-typed')
    expect((await workspace.svc(['plugins', 'new', 'svc-plugin-typed', '--kind', 'hook'])).code).to.equal(0)
    const resultOf = async () => {
      const result = await testPlugin({ folder, seed: 1, home: workspace.home, isolation: 'in-process' }, () => {})
      return { ...result, types: result.cases.find(({ title }) => title.startsWith('has no type errors')) }
    }
    const unbuilt = await resultOf()
    if (unbuilt.types?.state !== 'skipped') expect(unbuilt.types).to.include({ state: 'passed' })
    else expect(unbuilt.types.title).to.contain('svc itself is not built')
    expect(unbuilt.warnings.join()).to.contain('its build dist/index.js does not exist: run `npm run build`')
    await workspace.write('svc-plugin-typed/dist/index.js', 'export default {}')
    await workspace.write('svc-plugin-typed/src/wrong.ts', 'export const wrong: number = "text"\n')
    await utimes(join(folder, 'src/wrong.ts'), new Date(), new Date(Date.now() + 60_000))
    const wrong = await resultOf()
    expect(wrong.warnings).to.deep.equal([
      'its build is older than src/wrong.ts: run `npm run build` before you install it; this test ran the source',
    ])
    if (wrong.types?.state !== 'skipped') expect(wrong.types?.error).to.match(/^src\/wrong\.ts\(1,14\): error TS2322/)
    const out = { '.': { development: '../../../../x.ts', default: './dist/index.js' } }
    await workspace.write('out/package.json', JSON.stringify({ exports: out }))
    expect(staleBuild(join(workspace.folder, 'out'))).to.equal(undefined)
    const noted = await workspace.svc(['plugins', 'install', './svc-plugin-typed', '--dry-run'])
    expect(noted.err).to.contain('its build is older than src/wrong.ts: run `npm run build` before you install it')
  })

  it('ends with 1 when a case fails, and says all of it in JSON', async () => {
    await using workspace = await makeWorkspace()
    await liar(workspace)
    const { code, out } = await workspace.svc(['plugins', 'test', 'liar', '--json', '--seed', '3'])
    expect(code).to.equal(1)
    expect(JSON.parse(out)).to.include({ ok: false, plugin: 'svc-plugin-liar', version: '1.0.0', seed: 3 })
  })
})

describe('svc plugins lint', function () {
  this.timeout(180_000)
  const codes = async (folder: string) => (await lintPlugin(folder)).map(({ level, code }) => `${level} ${code}`)

  it('reports problems for users who install it', async () => {
    await using workspace = await makeWorkspace()
    const code = `${LIAR}\nimport { writeFile } from 'node:fs/promises'\n// https://in-a-comment.org\nfetch('https://api.example-host.org/x')\n`
    const svc = {
      ...MANIFEST,
      contributes: {
        tools: ['read_file'],
        commands: ['serve it'],
        routes: { chat: { method: 'GET', path: '/.well-known/x' } },
      },
    }
    const more = {
      exports: './src/index.ts',
      peerDependencies: {},
      dependencies: { '@svc/core': '*', near: 'file:../near' },
      scripts: { postinstall: 'x' },
      private: true,
      svc,
    }
    expect(await codes(await liar(workspace, code, more))).to.include.members([
      'error README_MISSING',
      'error LICENSE_MISSING',
      'error KEYWORD_MISSING',
      'error FILE_MISSING',
      'error TYPES_NOT_STRIPPED',
      'error CORE_TWICE',
      'error PLUGIN_DEPENDENCY_STRAY',
      'error CORE_MISSING',
      'error PRIVATE',
      'error NAME_TAKEN',
      'error PERMISSION_MISSING',
      'warning ROUTE_RESERVED',
      'error COMMAND_TAKEN',
      'error COMMANDS_MISSING',
      'warning INSTALL_SCRIPTS',
      'warning ENV_UNDECLARED',
      'warning NETWORK_UNDECLARED',
      'warning WRITE_UNDECLARED',
    ])
    const hosts = (await lintPlugin(join(workspace.folder, 'liar'))).filter(item => item.code === 'NETWORK_UNDECLARED')
    expect(hosts.map(({ message }) => message).join())
      .to.include('api.example-host.org')
      .and.to.not.include('in-a-comment')
  })

  it('reports packages of svc that are no peers, and imports that are not declared', async () => {
    await using workspace = await makeWorkspace()
    const code = `import { createUpstream } from '@svc/provider-http'
import { testHost } from '@svc/testing'
import { openChannel } from '@svc/runtime'
import type { Pool } from 'pg'
import ms, { parse } from "ms/lib"
// import 'in-a-comment'
const later = await import('later')
export default { setup() {} }`
    const more = {
      dependencies: { '@svc/storage-kit': '^0.1.0' },
      peerDependencies: { '@svc/core': '^0.1.0', '@svc/plugin-kit': '^9.0.0', '@svc/testing': '*' },
    }
    const found = await lintPlugin(await liar(workspace, code, more))
    expect(found.map(one => one.code)).to.include.members(['HOST_PACKAGE_TWICE', 'HOST_PACKAGE_RANGE', 'TESTING_SHIPPED'])
    expect(found.filter(one => one.code === 'IMPORT_UNDECLARED').map(one => one.message)).to.deep.equal([
      'index.js imports @svc/provider-http, which its package.json does not declare: add it to "peerDependencies"',
      'index.js imports @svc/testing, which is only for tests: import it in test files only',
      'index.js imports @svc/runtime, which svc does not give to plugins: use @svc/core, @svc/cli, @svc/plugin-kit, @svc/provider-http, @svc/storage-kit',
      'index.js imports ms, which its package.json does not declare: add it to "dependencies"',
      'index.js imports later, which its package.json does not declare: add it to "dependencies"',
    ])
  })

  it('says nothing of scripts that a route serves to browsers, unless the plugin imports them', async () => {
    await using workspace = await makeWorkspace()
    const code = (imports = '') =>
      `import { definePlugin } from '@svc/core'\n${imports}\nexport default definePlugin({ setup() {} })`
    const page = `import { show } from './show.js'\nconst answer = await fetch('/board/items')\ndocument.body.append(show(answer))`
    const more = { svc: { api: 1, kind: 'routes' }, files: ['*.js', 'public', 'page.js'] }
    const folder = await liar(workspace, code(), more)
    const write = (name: string, text: string) => workspace.write(`liar/${name}`, text)
    await write('public/app.js', page)
    await write('public/show.js', `export const show = () => fetch('https://cdn.acme-host.org/x')`)
    await write('page.js', `new EventSource('/board/live')\nwindow.onload = () => fetch('/board')`)
    const networkIn = async () => [
      ...new Set((await lintPlugin(folder)).flatMap(({ code: found, where }) => (found === 'NETWORK_UNDECLARED' ? [where] : []))),
    ]
    expect(await networkIn()).to.deep.equal([])
    // what runs in the plugin is named, whatever its folder or its words
    await write('index.js', code(`import './public/show.js'`))
    expect(await networkIn()).to.deep.equal(['public/show.js:1'])
    await write('index.js', code(`const more = await import('./page.js')`))
    expect(await networkIn()).to.deep.equal(['page.js:2'])
    await write('index.js', code())
    await write('public/app.js', `import { request } from 'node:https'\nfetch('/x')`)
    await write('public/worker.js', `const fs = require('fs')\nfetch(process.env.URL)`)
    expect((await networkIn()).map(where => where?.split(':')[0])).to.deep.equal(['public/app.js'])
    const variables = (await lintPlugin(folder)).filter(({ code: found }) => found === 'ENV_UNDECLARED')
    expect(variables.map(({ where }) => where)).to.deep.equal(['public/worker.js:2'])
  })

  it('warns of ways of the network that the sandbox does not open', async () => {
    await using workspace = await makeWorkspace()
    const code = [
      `import dgram from 'node:dgram'`,
      `import dns from 'node:dns'`,
      `import { createServer } from 'node:net'`,
      `export const all = [dgram.createSocket('udp4'), dns.promises.resolveSrv('x'), createServer(), dns.promises.lookup('x')]`,
      `export default { setup() {} }`,
    ]
    const folder = await liar(workspace, code.join('\n'), {})
    const found = (await lintPlugin(folder)).filter(item => item.code === 'NETWORK_CLOSED')
    expect(found.map(({ message, where }) => `${where}: ${message}`)).to.deep.equal([
      'index.js:1: it sends datagrams (UDP), which does not work in a process of its own',
      'index.js:4: it asks a name server for other records than addresses, which does not work in a process of its own',
      'index.js:4: it opens a server, which does not work in a process of its own',
    ])
  })

  it('finds nothing in a new plugin of JavaScript, and publish --dry-run shows what npm would send', async () => {
    await using workspace = await makeWorkspace()
    const made = await workspace.svc(['plugins', 'new', 'svc-plugin-clean', '--kind', 'command', '--js'])
    expect(made.code, made.err).to.equal(0)
    expect(await lintPlugin(join(workspace.folder, 'svc-plugin-clean'))).to.deep.equal([])
    await workspace.write('svc-plugin-clean/test/samples.js', 'export default {}\n')
    const here = lacking('bubblewrap') === undefined ? [] : ['--no-isolation']
    const { code, out, err } = await workspace.svc(['plugins', 'publish', 'svc-plugin-clean', '--dry-run', ...here])
    expect(code, err).to.equal(0)
    expect(out)
      .to.include('0 errors, 0 warnings')
      .and.to.match(/ {2}src\/commands\.js/)
      .and.to.not.include('test/')
  })

  it('reports single tools beside the permission for all of them', async () => {
    await using workspace = await makeWorkspace()
    const lint = async (permissions: object) => codes(await liar(workspace, LIAR, { svc: { ...MANIFEST, permissions } }))
    expect(await lint({ services: ['tools'], tools: ['pgquery'] })).to.include('warning PERMISSION_WIDE')
    expect(await lint({ services: ['t*'], tools: ['pgquery'] })).to.include('warning PERMISSION_WIDE')
    expect(await lint({ services: ['store'], spaces: ['notes'] })).to.include('warning PERMISSION_WIDE')
    expect(await lint({ services: ['tools'], spaces: ['notes'] })).to.not.include('warning PERMISSION_WIDE')
    expect(await lint({ services: ['store'], tools: ['pgquery'], providers: ['local'] })).to.not.include(
      'warning PERMISSION_WIDE'
    )
  })

  it('reports a manifest of an api version that is too old or too new', async () => {
    await using workspace = await makeWorkspace()
    expect(await codes(await liar(workspace, LIAR, { svc: { ...MANIFEST, api: 0 } }))).to.include('error MANIFEST_OLDER')
    expect(await codes(await liar(workspace, LIAR, { svc: { ...MANIFEST, api: 99 } }))).to.include('error MANIFEST_NEWER')
  })
})

describe('svc plugins new, on the command line', function () {
  this.timeout(180_000)

  it('refuses names that npm or svc refuse and a folder that is not empty, and writes nothing then', async () => {
    await using workspace = await makeWorkspace()
    await workspace.write('svc-plugin-there/mine.txt', 'mine')
    for (const [name, code] of [
      ['Upper', 'NAME_INVALID'],
      ['@svc/mine', 'NAME_INVALID'],
      ['svc-plugin-there', 'FOLDER_TAKEN'],
    ] as const) {
      const { code: exit, err } = await workspace.svc(['plugins', 'new', name, '--kind', 'tool'])
      expect([exit, err.split('\n')[0]]).to.deep.equal([1, code])
    }
    expect(await readFile(join(workspace.folder, 'svc-plugin-there/mine.txt'), 'utf8')).to.equal('mine')
  })
})

describe('svc plugins dev', function () {
  this.timeout(180_000)

  it('serves the plugin from its TypeScript source, without those that are installed, and takes up each file that is saved', async () => {
    await using workspace = await makeWorkspace()
    await link(workspace, [{ version: '1.0.0' }])
    await workspace.svc(['plugins', 'new', 'svc-plugin-live', '--kind', 'routes'])
    const server = await workspace.serve([], { command: ['plugins', 'dev', 'svc-plugin-live', '--port', '0'] })
    const hello = async () => {
      const answer = await fetch(`${server.url}/live?name=Ada`, { headers: { connection: 'close' } })
      return (await answer.json()) as object
    }
    expect(await hello()).to.deep.equal({ hello: 'Ada' })
    expect(server.err()).to.contain('svc-plugin-live').and.not.contain(TIDES)
    const metrics = await fetch(`${server.url}/metrics`).then(answer => answer.text())
    // in a process of its own, as when it is installed, if this machine has the sandbox
    expect(/^\w*plugin\w*restarts\w*\{.*"svc-plugin-live"/m.test(metrics)).to.equal(noBubblewrap() === undefined, metrics)
    const route = join(workspace.folder, 'svc-plugin-live/src/route.ts')
    await workspace.write(
      'svc-plugin-live/src/route.ts',
      (await readFile(route, 'utf8')).replace('hello: name', 'hello: name, twice: true')
    )
    await server.said(/src\/route\.ts: reloaded in /)
    expect(await hello()).to.deep.equal({ hello: 'Ada', twice: true })
    expect((await server.end()).code).to.equal(0)
  })

  itWith('bubblewrap', it)('serves the plugin in the process of svc where --isolation says so', async () => {
    await using workspace = await makeWorkspace()
    await workspace.svc(['plugins', 'new', 'svc-plugin-loose', '--kind', 'routes'])
    const command = ['plugins', 'dev', 'svc-plugin-loose', '--port', '0', '--isolation', 'in-process']
    const server = await workspace.serve([], { command })
    expect(await fetch(`${server.url}/loose?name=Ada`).then(answer => answer.json())).to.deep.equal({ hello: 'Ada' })
    const metrics = await fetch(`${server.url}/metrics`).then(answer => answer.text())
    expect(metrics).to.not.match(/^\w*plugin\w*restarts\w*\{.*"svc-plugin-loose"/m)
    // the author has asked for it, so no reason is printed
    expect(server.err()).to.not.include('runs in the process of svc:')
    expect((await server.end()).code).to.equal(0)
  })

  it('is no server that loads installed plugins, and checks workflows with the nodes of its plugin', async () => {
    await using workspace = await makeWorkspace()
    await workspace.svc(['plugins', 'new', 'svc-plugin-nod', '--kind', 'node'])
    await workspace.write('ask.yaml', 'name: ask\nnodes:\n  word: { type: nod, text: Say }\n')
    const validate = (...more: string[]) => workspace.svc(['workflows', 'validate', 'ask.yaml', ...more])
    expect((await validate()).out, 'no server').to.match(/nod/)
    const server = await workspace.serve([], { command: ['plugins', 'dev', 'svc-plugin-nod', '--port', '0'] })
    const valid = await validate()
    expect([valid.code, valid.out], valid.err).to.deep.equal([0, 'ask.yaml: no problems\n'])
    expect(valid.err).to.include(`checked by svc plugins dev, ${server.url}`)
    await workspace.write('broken.yaml', 'name: broken\nnodes:\n  word: { type: none }\n')
    const broken = await workspace.svc(['workflows', 'validate', 'broken.yaml', 'ask.yaml', '--json'])
    expect(broken.code).to.equal(1)
    const { files } = JSON.parse(broken.out) as { files: { problems: object[] }[] }
    expect(files.map(({ problems }) => problems.length > 0)).to.deep.equal([true, false])
    expect((await workspace.svc(['workflows', 'validate', 'missing'])).err).to.include('WORKFLOW_UNKNOWN')

    const from = await tidesFolder(workspace.folder, { version: '1.0.0' })
    const installed = await workspace.svc(['plugins', 'install', from, '--yes', '--isolation', 'in-process', '--trust'])
    expect(installed.code, installed.err).to.equal(0)
    expect(installed.out)
      .to.include(
        `no other server runs: the next svc serve loads the change; ${server.url} (svc plugins dev) loads no installed plugins`
      )
      .and.not.include('has loaded the change')
    expect(server.err()).to.not.include('reloading')
    const other = await workspace.serve()
    const removed = await workspace.svc(['plugins', 'uninstall', TIDES])
    expect(removed.out, removed.err).to.include(`${other.url} has loaded the change; ${server.url} (svc plugins dev)`)
    expect((await other.end()).code).to.equal(0)
    expect((await server.end()).code).to.equal(0)
  })
})
