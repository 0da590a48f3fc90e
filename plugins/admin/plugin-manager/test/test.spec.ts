import { symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { messageOf } from '@svc/core'
import { pluginKit } from '@svc/testing'
import { expect } from 'chai'
import { testPlugin } from '../src/commands/author/test-plugin.ts'
import { makeWorkspace, type Workspace } from '../../../../cli/test/support/svc.ts'

const MODULES = fileURLToPath(new URL('../../../../node_modules', import.meta.url))
const CORE = { '@svc/core': '^0.1.0' }
const INSTANCES = { section: 'providers', type: 'far' }
/** A provider before a server that never answers: it leaves that when it is aborted. */
const PROVIDER = `
import { definePlugin, schema } from '@svc/core'
import { Providers } from '@svc/core/contracts'
export default definePlugin({
  instances: 'providers',
  type: 'far',
  config: schema({ type: 'object', properties: { url: { type: 'string', description: 'Where it is' } }, additionalProperties: false }),
  setup(scope) {
    scope.add(Providers, scope.instance, {
      features: { tool_calling: false, streaming: true, vision: false },
      models: async () => ({ models: [{ id: 'm' }], open: true }),
      countTokens: async () => 1,
      probe: async () => {},
      async *chat({ model }, { signal }) {
        signal.throwIfAborted()
        if (model === 'silent') await fetch(scope.config.url, { signal })
        yield { type: 'text', text: 'a ' }
        yield { type: 'text', text: 'b' }
        yield { type: 'finish', reason: 'stop' }
      },
    })
  },
})
`
const SAMPLES = `
import { openUpstream } from '@svc/testing'
const upstream = await openUpstream((_, reply) => reply.silence())
const asks = model => ({ model, messages: [{ role: 'user', parts: [{ type: 'text', text: 'hi' }] }] })
export default {
  config: { providers: { far: { type: 'far', url: upstream.url } } },
  provider: { plain: asks('plain'), silent: asks('silent') },
}
`

/** Its setup hangs, or a call of its tool: neither hears that it is aborted. */
const hanging = (where: 'setup' | 'call') => `
import { Tools } from '@svc/core/contracts'
const never = () => new Promise(() => {})
const parameters = { type: 'object', properties: {}, additionalProperties: false }
export default {
  requires: {},
  optional: {},
  async setup(scope) {
    if (${where === 'setup'}) await never()
    scope.add(Tools, 'far', { description: 'Never answers.', category: 'time', effects: ['read'], parameters, call: never })
  },
}
`

/** A tool plugin with this module, and others beside it. */
async function writeTool(
  workspace: Workspace,
  code: string,
  files: Readonly<Record<string, string>> = {},
  svc: object = { api: 1, kind: 'tool', contributes: { tools: ['far'] } }
): Promise<string> {
  await symlink(MODULES, join(workspace.folder, 'node_modules'))
  const file = { name: 'svc-plugin-far', version: '1.0.0', type: 'module', exports: './index.js', peerDependencies: CORE, svc }
  await workspace.write('far/package.json', JSON.stringify(file))
  for (const [name, text] of Object.entries({ ...files, 'index.js': code })) await workspace.write(`far/${name}`, text)
  return join(workspace.folder, 'far')
}

describe('the kit behind svc plugins test', function () {
  this.timeout(60_000)
  /** What the case of this title says of it. */
  const outputOf = async (where: 'setup' | 'call', title: string) => {
    await using workspace = await makeWorkspace()
    const cases = await pluginKit(await writeTool(workspace, hanging(where)))
    return await cases
      .find(testCase => testCase.title.startsWith(title))!
      .run()
      .then(
        () => 'nothing',
        (error: Error) => error.message
      )
  }

  it('waits neither for a setup nor for a call that hangs', async () => {
    expect(await outputOf('setup', 'starts with its configuration, alone and within time')).to.contain(
      'did not end within 5000 ms'
    )
    expect(await outputOf('call', 'tools far: ends generated calls')).to.contain('the end of {} did not happen within 5000 ms')
  })

  for (const [what, import_, files, words] of [
    ['breaks the grammar', './src/tool.js', { 'src/tool.js': '\n\nexport const a = ;' }, /\(src\/tool\.js:3\)/],
    ['imports a package that is not there', 'ms-that-is-not-there', {}, /Install the missing package/],
  ] as const)
    it(`reports a module that ${what} as svc serve does`, async () => {
      await using workspace = await makeWorkspace()
      const cases = await pluginKit(await writeTool(workspace, `import '${import_}'\nexport default { setup() {} }`, files))
      const errors = await Promise.all(cases.map(testCase => testCase.run().then(() => '', messageOf)))
      expect(errors).to.have.length(1)
      expect(errors[0])
        .to.match(/^PLUGIN_IMPORT_FAILED {2}svc-plugin-far/)
        .and.match(words)
    })
})

describe('svc plugins test, of what a server would not take', function () {
  this.timeout(60_000)
  const failedOf = async (svc: object, added: string) => {
    await using workspace = await makeWorkspace()
    const code = `import { definePlugin } from '@svc/core'
import { AuthSchemes, Routes } from '@svc/core/contracts'
export default definePlugin({ setup: scope => void scope.add(${added}) })`
    const folder = await writeTool(workspace, code, {}, { api: 1, ...svc })
    const { cases } = await testPlugin({ folder, seed: 1, home: workspace.home, isolation: 'in-process' }, () => {})
    return cases.filter(testCase => testCase.state === 'failed').map(testCase => `${testCase.title}: ${testCase.error}`)
  }
  const FAR = { method: 'GET', path: '/far', scope: 'read' }
  const route = (reply: string) =>
    `Routes, 'far', { method: 'GET', path: '/far', scope: 'read', summary: 'Far', handle: async () => (${reply}) }`
  const routes = { kind: 'routes', contributes: { routes: { far: FAR } } }

  it('reports headers that a route sets and the server leaves out', async () => {
    expect(await failedOf(routes, route("{ text: '', headers: { ETag: '1', 'X-Plugin-Far': '1' } }"))).to.deep.equal([])
    const [failed, ...more] = await failedOf(routes, route("{ text: '', headers: { ETag: '1', 'Set-Cookie': 'a=b' } }"))
    expect(failed).to.include('headers that the server leaves out: set-cookie').and.include('may set: allow, cache-control')
    expect(more).to.deep.equal([])
  })

  it('reports a route that the manifest declares otherwise', async () => {
    const otherwise = { ...routes, contributes: { routes: { far: { ...FAR, path: '/near' } } } }
    expect((await failedOf(otherwise, route('{}'))).join()).to.include('CONTRIBUTION_DIFFERS')
  })

  it('reports a scheme that does not declare the headers that it reads', async () => {
    const scheme = (headers: string) => `AuthSchemes, 'far', { ${headers} challenge: 'Far', authenticate: async () => undefined }`
    const auth = { kind: 'auth', contributes: { auth_schemes: ['far'] } }
    expect(await failedOf(auth, scheme("headers: ['x-far'],"))).to.deep.equal([])
    for (const headers of ['', "headers: ['X-Far'],", 'headers: [],'])
      expect((await failedOf(auth, scheme(headers))).join(), headers).to.include('declares the headers that it reads')
  })
})

describe('svc plugins test, of variables', function () {
  this.timeout(60_000)
  const CALL = `call: async (_, { signal }) => {
    signal.throwIfAborted()
    await import('./more.js')
    const { execFileSync } = await import('node:child_process')
    execFileSync(process.execPath, ['--version'])
    return { content: [] }
  }`

  it('does not take what Node itself reads for one of the plugin: to import a module, to start a program', async () => {
    await using workspace = await makeWorkspace()
    const folder = await writeTool(workspace, hanging('call').replace('call: never', CALL), {
      'more.js': 'export const more = 1',
    })
    process.env.SVC_TEST_OF_OTHERS = 'no business of the plugin'
    const { cases } = await testPlugin({ folder, seed: 1, home: workspace.home, isolation: 'in-process' }, () => {}).finally(
      () => {
        delete process.env.SVC_TEST_OF_OTHERS
      }
    )
    expect(cases.filter(testCase => testCase.state === 'failed')).to.deep.equal([])
    expect(
      cases.filter(testCase => testCase.title.includes('ends generated calls')).map(testCase => testCase.state)
    ).to.deep.equal(['passed'])
  })
})

describe('svc plugins test, of a plugin with one problem', function () {
  this.timeout(60_000)
  const testOf = async (code: string) => {
    await using workspace = await makeWorkspace()
    const folder = await writeTool(workspace, code)
    const began = performance.now()
    const { cases } = await testPlugin({ folder, seed: 1, home: workspace.home, isolation: 'in-process' }, () => {})
    return { failed: cases.filter(testCase => testCase.state === 'failed'), tookMs: performance.now() - began }
  }

  it('reports it once, with its hint and the number of skipped cases', async () => {
    const { failed } = await testOf(hanging('call').replace("'far', {", "'near', {"))
    expect(failed.map(item => item.title)).to.deep.equal(['starts with its configuration, alone and within time'])
    expect(failed[0]!.error)
      .to.match(/^CONTRIBUTION_UNDECLARED {2}svc-plugin-far\n {2}adds "near" to tools/)
      .and.include('"contributes": { "tools": ["near"] }')
      .and.include('5 cases that start it, and those of what it adds, were not run because of that')
  })

  it('reports a contribution of the wrong form', async () => {
    const { failed } = await testOf(hanging('call').replace(/\{ description.*\}\)/, '{})'))
    expect(failed.map(item => item.title)).to.deep.equal(['adds items that can be called as their contract says'])
  })

  it('waits once for a setup that never ends', async () => {
    const { failed, tookMs } = await testOf(hanging('setup'))
    expect(failed).to.have.length(1)
    expect(failed[0]!.error).to.include('SETUP_TIMEOUT')
    expect(tookMs).to.be.below(10_000)
  })
})

describe('svc plugins test, of a plugin whose timer throws', function () {
  this.timeout(60_000)

  it('reports it once as a failed case with its line, and completes', async () => {
    await using workspace = await makeWorkspace()
    const later = "setTimeout(() => {\n throw new Error('too late')\n}, 5)"
    const quick = hanging('call').replace('call: never', 'call: async () => ({ content: [] })')
    await writeTool(workspace, quick.replace('async setup(scope) {', `async setup(scope) {${later}`))
    // a process of its own: what is thrown there would end others with it
    const { code, out, err } = await workspace.svc(['plugins', 'test', 'far', '--json', '--isolation', 'in-process'], {
      input: '',
    })
    expect([code, err]).to.deep.equal([1, ''])
    const { cases } = JSON.parse(out) as { cases: { title: string; state: string; error?: string }[] }
    const stray = cases.find(testCase => testCase.title.startsWith('throws and rejects nothing'))
    expect(stray).to.include({ state: 'failed' })
    expect(stray!.error).to.match(/^too late\n {2}at Timeout\._onTimeout \(index\.js:9:\d+\)$/)
  })
})

describe('svc plugins test, of a provider', function () {
  this.timeout(60_000)

  for (const [what, connections, state] of [
    [
      'that an abort closes the connection upstream, where its samples let it look',
      'connections: () => upstream.open(), ',
      'passed',
    ],
    ['that this was skipped, and why, where they do not', '', 'skipped'],
  ] as const)
    it(`reports ${what}`, async () => {
      await using workspace = await makeWorkspace()
      await symlink(MODULES, join(workspace.folder, 'node_modules'))
      const svc = { api: 1, kind: 'provider', instances: INSTANCES, contributes: { providers: ['*'] } }
      const file = {
        name: 'svc-plugin-far',
        version: '1.0.0',
        type: 'module',
        exports: './index.js',
        peerDependencies: CORE,
        svc,
      }
      await workspace.write('far/package.json', JSON.stringify(file))
      await workspace.write('far/index.js', PROVIDER)
      await workspace.write('far/test/samples.js', SAMPLES.replace('provider: { ', `provider: { ${connections}`))
      const { cases } = await testPlugin(
        { folder: join(workspace.folder, 'far'), seed: 1, home: workspace.home, isolation: 'in-process' },
        () => {}
      )
      expect(cases.filter(testCase => testCase.state === 'failed')).to.deep.equal([])
      const found = cases.filter(({ title }) => title.includes('closes the connection upstream'))
      expect(found.map(testCase => testCase.state)).to.deep.equal([state])
      expect(found[0]!.title.includes('skipped: `connections` was not given')).to.equal(state === 'skipped')
    })
})
