import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { chmod, mkdir, readFile, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { ConfigTree } from '@svc/core'
import { expect } from 'chai'
import { describeWith } from '../../../../test/support/needs.ts'
import { makeWorkspace, type Workspace } from '../../../../cli/test/support/svc.ts'
import { OURS } from '@svc/cli/program'
import { pluginKit } from '@svc/testing'
import { type AuthorIsolation, chooseIsolation } from '../src/commands/author/isolation-here.ts'

const MODULES = fileURLToPath(new URL('../../../../node_modules', import.meta.url))
const CORE = { '@svc/core': '^0.1.0' }
const MANIFEST = { api: 1, kind: 'tool', contributes: { tools: ['far'] } }

interface Written {
  readonly files?: Readonly<Record<string, string>>
  readonly svc?: object
  readonly dependencies?: object
  readonly config?: ConfigTree
  readonly pools?: readonly string[]
}

/** A tool plugin whose call runs `work`. */
const tool = (work: string, more = '') => `import { connect } from 'node:net'
import { definePlugin } from '@svc/core'
import { Conversations, Tools } from '@svc/core/contracts'
${more}
const parameters = { type: 'object', properties: {}, additionalProperties: false }
export default definePlugin({
  setup(scope) {
    scope.add(Tools, 'far', { description: 'Goes far away.', category: 'test', effects: ['read'], parameters,
      async call(_, ctx) { ctx.signal.throwIfAborted(); ${work}; return { content: [{ type: 'text', text: 'done' }] } } })
  },
})`

async function write(workspace: Workspace, code: string, { files = {}, svc = MANIFEST, dependencies = {} }: Written = {}) {
  await mkdir(join(workspace.folder, 'far'), { recursive: true })
  await symlink(MODULES, join(workspace.folder, 'node_modules')).catch(() => {})
  const file = { name: 'svc-plugin-far', version: '1.0.0', type: 'module', exports: './index.js', peerDependencies: CORE }
  await workspace.write('far/package.json', JSON.stringify({ ...file, dependencies, svc }))
  for (const [name, text] of Object.entries({ ...files, 'index.js': code })) await workspace.write(`far/${name}`, text)
  return join(workspace.folder, 'far')
}

/** Runs the cases of the kit whose titles match: in a process of its own, each takes a second on a busy machine. */
async function resultOf(code: string, cases: RegExp, written: Written = {}, isolation: AuthorIsolation = 'process') {
  await using workspace = await makeWorkspace()
  const { sandbox } = await chooseIsolation(await write(workspace, code, written), isolation)
  const beside = CONVERSATIONS.map(use => ({ use, from: OURS }))
  const { pools = [], config } = written
  const all = await pluginKit(join(workspace.folder, 'far'), { sandbox, beside, pools, ...(config && { config }) })
  const [failed, warnings] = [[] as string[], new Set<string>()]
  const warn = (text: string) => warnings.add(text)
  for (const one of all.filter(
    ({ title, skipped }) => skipped === undefined && (cases.test(title) || title.startsWith('has a manifest'))
  ))
    await one.run.call({ warn }).catch((error: Error) => failed.push(`${one.title}: ${error.message}`))
  return { failed, warnings: [...warnings], text: failed.join('\n') }
}

const CONVERSATIONS = ['@svc/plugin-conversations', '@svc/plugin-store-memory']
const CALLS = /ends generated calls/
const IMPORTS = /declares the packages/

const DIAL = `const socket = connect({ host: 'db.example.org', port: 5432 }); socket.on('error', () => {}); await new Promise(done => socket.once('close', done))`
/** A dependency that looks at variables, as pg does. */
const LOOKING = {
  'node_modules/looker/index.js': `exports.look = () => process.env.LOOKER_MODE`,
  'node_modules/looker/package.json': '{"name":"looker","version":"1.0.0"}',
}
const LEAK = `(globalThis.leaks ??= []).push(setInterval(() => {}, 60_000))`
/** Opens connections on demand, up to three, and keeps them. */
const POOL = (port: number) => `globalThis.pool ??= []
  if (globalThis.pool.length < 3) { const socket = connect(${port}, '127.0.0.1'); globalThis.pool.push(socket); await new Promise(done => socket.once('connect', done)) }`
const CLOSES = (code: string) =>
  code.replace('setup(scope) {', 'setup(scope) { scope.defer(() => globalThis.pool?.forEach(one => one.destroy()));')

/** A dependency whose pool opens one more connection for each call, and closes them all at its end. */
const GROWING = {
  'node_modules/slow-pool/index.js': `const { connect } = require('node:net')
const all = []
exports.borrow = port => new Promise(done => { const socket = connect(port, '127.0.0.1', done); all.push(socket) })
exports.end = () => all.splice(0).forEach(one => one.destroy())`,
  'node_modules/slow-pool/package.json': '{"name":"slow-pool","version":"1.0.0"}',
}

/** In this process, the sockets that the plugin leaves open are those of the test. */
function forgetPool(): void {
  for (const socket of (globalThis as { pool?: Socket[] }).pool ?? []) socket.destroy()
  Reflect.deleteProperty(globalThis, 'pool')
}

/** Each problem is one that shows only once the plugin is installed. Both isolations of the kit report it. */
for (const isolation of ['process', 'in-process'] as const)
  describeWith('bubblewrap', `the kit, isolation ${isolation}`, function () {
    this.timeout(120_000)

    it('reports a socket to an undeclared host', async () => {
      const { text } = await resultOf(tool(DIAL), CALLS, {}, isolation)
      expect(text).to.include('it asks db.example.org:5432: add it to "permissions": { "network": ["db.example.org:5432"] }')
    })

    it('reports a package that is not declared, though a folder around the plugin has it', async () => {
      const undeclared = tool('', `import pg from 'pg'\nexport const pool = pg.Pool`)
      const { text } = await resultOf(undeclared, IMPORTS, {}, isolation)
      expect(text).to.include('index.js imports pg, which its package.json does not declare: add it to "dependencies"')
      const { failed } = await resultOf(
        tool('', `import { connect as tls } from 'node:tls'\nexport { tls }`),
        IMPORTS,
        {},
        isolation
      )
      expect(failed).to.deep.equal([])
    })

    it('warns of a variable that a dependency looks at, and reports one that the plugin reads', async () => {
      const looks = tool(
        'look()',
        `import { createRequire } from 'node:module'\nconst { look } = createRequire(import.meta.url)('looker')`
      )
      const { failed, warnings } = await resultOf(looks, CALLS, { files: LOOKING, dependencies: { looker: '1.0.0' } }, isolation)
      expect(failed).to.deep.equal([])
      expect(warnings.join()).to.include('looker looks at the variable LOOKER_MODE')
      const { text } = await resultOf(tool('process.env.FAR_KEY'), CALLS, {}, isolation)
      expect(text).to.include('it reads the variable FAR_KEY')
      const svc = { ...MANIFEST, permissions: { env: [{ name: 'LOOKER_MODE', optional: true }, 'OTHER'] } }
      const declared = await resultOf(looks, CALLS, { files: LOOKING, dependencies: { looker: '1.0.0' }, svc }, isolation)
      expect(declared.warnings).to.deep.equal([])
    })

    it('warns of a configured server that no permission declares, though the test may reach it', async () => {
      const server = createServer(socket => void socket.end()).listen(0, '127.0.0.1')
      await once(server, 'listening')
      const { port } = server.address() as { port: number }
      const at = `127.0.0.1:${port}`
      const DIALS = tool(`await new Promise((done, failed) => connect(${port}, '127.0.0.1', done).on('error', failed).resume())`)
      const own = "section: 'tools.far', config: schema({ type: 'object', properties: { server: { type: 'string' } } }),"
      const code = DIALS.replace('definePlugin }', 'definePlugin, schema }').replace('definePlugin({', `definePlugin({ ${own}`)
      const config = { tools: { far: { server: at } } }
      const resultWith = (network: readonly string[]) =>
        resultOf(code, CALLS, { svc: { ...MANIFEST, permissions: { network } }, config }, isolation)
      try {
        const { failed, warnings } = await resultWith([])
        expect(failed).to.deep.equal([])
        expect(warnings).to.deep.equal([
          `its configuration names the server ${at}, which the installed plugin cannot reach: add it to "permissions": { "network": ["<tools.far.server>"] }`,
        ])
        for (const declared of ['<tools.far.server>', at]) expect((await resultWith([declared])).warnings).to.deep.equal([])
      } finally {
        server.close()
      }
    })

    it('warns of required settings that the manifest does not list', async () => {
      const own =
        "section: 'tools.far', config: schema({ type: 'object', required: ['a', 'b'], properties: { a: { type: 'string' }, b: {} } }),"
      const code = tool('').replace('definePlugin }', 'definePlugin, schema }').replace('definePlugin({', `definePlugin({ ${own}`)
      const config = { tools: { far: { a: 'x', b: 1 } } }
      const resultWith = (settings: readonly string[]) =>
        resultOf(code, CALLS, { svc: { ...MANIFEST, settings }, config }, isolation)
      const { failed, warnings } = await resultWith(['tools.far.a'])
      expect(failed).to.deep.equal([])
      expect(warnings.join()).to.contain('its configuration requires tools.far.b: add "settings": ["tools.far.a","tools.far.b"]')
      expect((await resultWith(['tools.far.a', 'tools.far.b'])).warnings).to.deep.equal([])
    })

    it('reports a context that is used after its call', async () => {
      const late = `setTimeout(() => given.conversations.get('x', ctx).catch(() => {}), 5)`
      const code = tool(late).replace('setup(scope) {', 'requires: { conversations: Conversations },\n  setup(scope, given) {')
      const svc = { ...MANIFEST, permissions: { services: ['conversations'] } }
      const { text } = await resultOf(code, CALLS, { svc }, isolation)
      expect(text).to.match(/it calls conversations\.get with the context of a call that has ended/)
      const intime = code.replace(/setTimeout\(\(\) => (.*), 5\)/, 'await $1')
      expect((await resultOf(intime, CALLS, { svc }, isolation)).failed).to.deep.equal([])
    })

    afterEach(() => {
      const { leaks = [] } = globalThis as { leaks?: NodeJS.Timeout[] }
      for (const timer of leaks.splice(0)) clearInterval(timer)
      forgetPool()
    })

    it('names what a call leaves open by its line, and takes a pool for none', async () => {
      const { text } = await resultOf(tool(LEAK), CALLS, {}, isolation)
      expect(text).to.match(/the same work left more open each time \(.*\): a timer \(index\.js:9\) × \d+/)
      const server = createServer(socket => void socket.on('error', () => {})).listen(0, '127.0.0.1')
      await once(server, 'listening')
      const { port } = server.address() as { port: number }
      try {
        const svc = { ...MANIFEST, permissions: { network: [`127.0.0.1:${port}`] } }
        const { failed } = await resultOf(CLOSES(tool(POOL(port))), CALLS, { svc }, isolation)
        expect(failed).to.deep.equal([])
        forgetPool()
        const { text: open } = await resultOf(tool(POOL(port)), CALLS, { svc }, isolation)
        expect(open).to.match(/left open: a socket \(index\.js:10\)/)
      } finally {
        server.close()
      }
    })

    it('does not count the handles of a package that `pools` names, and no others', async () => {
      const server = createServer(socket => void socket.on('error', () => {})).listen(0, '127.0.0.1')
      await once(server, 'listening')
      const { port } = server.address() as { port: number }
      try {
        const pool = `import { createRequire } from 'node:module'\nconst { borrow, end } = createRequire(import.meta.url)('slow-pool')`
        const code = tool(`await borrow(${port})`, pool).replace('setup(scope) {', 'setup(scope) { scope.defer(end);')
        const svc = { ...MANIFEST, permissions: { network: [`127.0.0.1:${port}`] } }
        const written = { files: GROWING, dependencies: { 'slow-pool': '1.0.0' }, svc }
        const resultWith = (pools: readonly string[]) => resultOf(code, CALLS, { ...written, pools }, isolation)
        for (const pools of [[], ['pg-pool']])
          expect((await resultWith(pools)).text).to.match(/left more open each time .*: a socket of slow-pool \(index\.js:3\)/)
        expect((await resultWith(['slow-pool'])).failed).to.deep.equal([])
      } finally {
        server.close()
      }
    })

    it('reports a route without a scope that the manifest does not open', async () => {
      const code = `import { definePlugin } from '@svc/core'
import { Routes } from '@svc/core/contracts'
export default definePlugin({ setup: scope => void scope.add(Routes, 'far', { method: 'GET', path: '/far', summary: 'Far', handle: async () => ({ text: '' }) }) })`
      const routes = { api: 1, kind: 'routes', contributes: { routes: { far: { method: 'GET', path: '/far' } } } }
      const { text } = await resultOf(code, /^starts with/, { svc: routes }, isolation)
      expect(text).to.include('"public_routes": ["far"]')
      const open = { ...routes, permissions: { public_routes: ['far'] } }
      expect((await resultOf(code, /^starts with/, { svc: open }, isolation)).failed).to.deep.equal([])
    })
  })

describeWith('bubblewrap', 'the kit in a process of its own', function () {
  this.timeout(120_000)

  it('reports a process that ends with its last words', async () => {
    const { text } = await resultOf(tool(`setTimeout(() => { throw new Error('too late') }, 5)`), CALLS)
    expect(text)
      .to.match(/its process ended: code \d+/)
      .and.include('too late')
  })

  it('reports a file that the plugin writes without a declaration', async () => {
    const writes = tool(`await import('node:fs/promises').then(fs => fs.writeFile('/var/far.txt', 'x')).catch(() => {})`)
    expect((await resultOf(writes, CALLS)).text).to.include('tried to write to /var/far.txt')
  })

  it('takes the spaces that the manifest names for permission to use the store, and reports another', async () => {
    const opens = (name: string) =>
      tool('', `import { Store } from '@svc/core/contracts'\nimport { systemContext } from '@svc/core'`)
        .replace('setup(scope) {', `requires: { store: Store },\n  async setup(scope, { store }) {`)
        .replace('scope.add(', `await store.open({ name: '${name}', version: 1 }, systemContext(scope.signal))\n    scope.add(`)
    const svc = { ...MANIFEST, permissions: { spaces: ['mine'] } }
    const cases = /^starts with|declares the services/
    expect((await resultOf(opens('mine'), cases, { svc })).failed).to.deep.equal([])
    const { text } = await resultOf(opens('other'), cases, { svc })
    expect(text).to.include('opens the space other of the store, but has no permission for it').and.include('"spaces": ["other"]')
  })

  it('does not import the module in this process', async () => {
    const marks = tool('', `globalThis.svcKitMark = true`)
    expect((await resultOf(marks, CALLS)).failed).to.deep.equal([])
    expect(Reflect.has(globalThis, 'svcKitMark')).to.equal(false)
  })

  it('is refused where it is asked for and not possible', async () => {
    const store = { api: 1, kind: 'store' }
    const failed = await resultOf(tool(''), CALLS, { svc: store }).then(
      () => undefined,
      (error: { code?: string; message: string }) => error
    )
    expect(failed).to.include({ code: 'ISOLATION_UNAVAILABLE' })
    expect(failed?.message).to.include('it is a store')
  })
})

describe('svc plugins publish on a machine without a working sandbox', function () {
  this.timeout(120_000)

  it('publishes nothing, and says what to do; --no-isolation publishes with a record of it', async () => {
    await using workspace = await makeWorkspace()
    await workspace.svc(['plugins', 'new', 'svc-plugin-bare', '--kind', 'command', '--js'])
    await symlink(MODULES, join(workspace.folder, 'node_modules'))
    const bwrap = '#!/bin/sh\n[ "$1" = --version ] && exit\necho "no namespaces here" >&2; exit 1\n'
    await chmod(await workspace.write('bin/bwrap', bwrap), 0o755)
    const env = { PATH: `${join(workspace.folder, 'bin')}:${process.env.PATH}` }
    const file = join(workspace.folder, 'svc-plugin-bare/package.json')
    const before = await readFile(file, 'utf8')
    const publish = (...args: string[]) => workspace.svc(['plugins', 'publish', 'svc-plugin-bare', ...args], { input: '', env })
    const { code, out, err } = await publish()
    expect([code, await readFile(file, 'utf8')]).to.deep.equal([1, before])
    expect(err)
      .to.match(/^NOT_PUBLISHED/m)
      .and.include('cannot run in a process of its own here')
      .and.include('Publish from a machine with bubblewrap, or pass --no-isolation, which the package records')
    expect(out).to.not.match(/files, \d+ bytes packed/)
    // without a terminal the answer is no, so nothing is sent
    const loose = await publish('--no-isolation')
    expect(loose.out).to.match(/files, \d+ bytes packed/)
    expect(loose.err).to.include('you did not confirm').and.include('Answer y, or pass --yes')
    expect(JSON.parse(await readFile(file, 'utf8'))).to.have.nested.property('svc.tested', 'in-process')
  })
})

describeWith('bubblewrap', 'svc plugins publish', function () {
  this.timeout(120_000)

  it('records a kit that did not run in a process of its own, until one does', async () => {
    await using workspace = await makeWorkspace()
    await workspace.svc(['plugins', 'new', 'svc-plugin-rec', '--kind', 'command', '--js'])
    await symlink(MODULES, join(workspace.folder, 'node_modules'))
    const tested = async () =>
      (JSON.parse(await readFile(join(workspace.folder, 'svc-plugin-rec/package.json'), 'utf8')) as { svc: { tested?: string } })
        .svc.tested
    // without a terminal the answer is no, so nothing is sent
    const publish = (...args: string[]) => workspace.svc(['plugins', 'publish', 'svc-plugin-rec', ...args], { input: '' })
    const loose = await publish('--no-isolation')
    expect([loose.code, await tested()]).to.deep.equal([1, 'in-process'])
    expect(loose.out).to.include('it ran in the process of svc')
    const proposal = await workspace.svc(['plugins', 'install', './svc-plugin-rec', '--dry-run'], { input: '' })
    expect(`${proposal.out}${proposal.err}`).to.include('NOT in a process of its own, as its author recorded')
    const held = await publish()
    expect([held.code, await tested()]).to.deep.equal([1, undefined])
    expect(held.out).to.include('it ran in a process of its own')
  })
})
