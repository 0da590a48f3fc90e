// Not a unit test: a setup runs in a process of its own.
import { type CheckContext, definePlugin, defineService, formatError, planHost, schema, type Series, svcError } from '@svc/core'
import { expect } from 'chai'
import {
  entry,
  folder,
  Greeter,
  greeter,
  packageFiles,
  PLAIN_PLUGIN,
  problemOf,
  problemsOf,
  word,
  Words,
} from './support/kernel.ts'

const nothing = () => definePlugin({ setup() {} })
const Clock = defineService<{ now(): Promise<number> }>('clock', { api: 1, methods: { now: 'call' } })
const Radio = defineService<{ play(): Promise<number> }>('radio', { api: 1, methods: { play: 'call' } })
const clock = { now: async () => 1 }

describe('a start that fails before anything is set up', () => {
  it('names a plugin that no place has, and where it was looked for', async () => {
    await using dir = await folder()
    const error = await problemOf({ plugins: ['svc-plugin-nowhere'], from: [dir.url] })
    expect(error).to.include({ code: 'PLUGIN_UNKNOWN', plugin: 'svc-plugin-nowhere' })
    expect(error.hint).to.equal('Install it (npm install svc-plugin-nowhere), fix the name, or remove it from "plugins"')
    expect(error.message).to.include(dir.path.split('/').at(-1)).and.not.include(dir.path)
  })

  it('names a folder that is not there', async () => {
    await using dir = await folder()
    expect(await problemOf({ plugins: ['./gone'], from: [dir.url] })).to.include({ code: 'PLUGIN_UNKNOWN', plugin: './gone' })
  })

  it('names every fault of a manifest, with the line of the first', async () => {
    const svc = { api: 1, kind: 'tool', contributes: { tools: 'weather' }, permisions: {} }
    await using dir = await folder(packageFiles('svc-plugin-bad', svc, PLAIN_PLUGIN))
    const error = await problemOf({ plugins: ['svc-plugin-bad'], from: [dir.url] })
    expect(error).to.include({ code: 'MANIFEST_INVALID', plugin: 'svc-plugin-bad', hint: 'did you mean "permissions"?' })
    expect(error.message).to.include('svc.permisions is not a known key').and.include('svc.contributes.tools must be array')
    expect(error.where).to.match(/^package\.json:1[0-9]$/)
  })

  it('names the line where a package.json is no JSON', async () => {
    await using dir = await folder({ 'plug/package.json': '{\n  "name": "plug",\n  "svc": { "api": 1 "kind": "tool" }\n}' })
    const error = await problemOf({ plugins: ['./plug'], from: [dir.url] })
    expect(error).to.include({ code: 'MANIFEST_INVALID', plugin: 'plug', where: 'package.json:3', hint: 'Fix the file' })
  })

  for (const text of ['null', '[]', '{ "name": 5 }', '{ "svc": {} }', '{'])
    it(`refuses the package.json ${text} in its own words`, async () => {
      await using dir = await folder({ 'plug/package.json': text })
      const error = await problemOf({ plugins: ['./plug'], from: [dir.url] })
      expect(error).to.include({ code: 'MANIFEST_INVALID', plugin: 'plug' })
      expect(error.where).to.match(/^package\.json/)
      expect(error.hint).to.be.a('string')
    })

  it('refuses a package that is no plugin', async () => {
    await using dir = await folder({ 'plug/package.json': { name: 'left-pad' } })
    const error = await problemOf({ plugins: ['./plug'], from: [dir.url] })
    expect(error).to.include({ code: 'MANIFEST_INVALID', plugin: 'left-pad', hint: 'Add "svc": { "api": 1, "kind": "tool" }' })
  })

  it('refuses a manifest of a newer api, with its line', async () => {
    await using dir = await folder(packageFiles('svc-plugin-new', { api: 2, kind: 'tool', novelty: true }, PLAIN_PLUGIN))
    const error = await problemOf({ plugins: ['svc-plugin-new'], from: [dir.url] })
    expect(error).to.include({ code: 'MANIFEST_NEWER', plugin: 'svc-plugin-new', where: 'package.json:7' })
    expect(error.hint).to.equal('Update svc, or install a version of svc-plugin-new for API 1')
    expect(error.details).to.deep.equal({ api: 2, host: 1 })
  })

  it('names a module that cannot be imported, and keeps why', async () => {
    const svc = { api: 1, kind: 'tool' }
    const code = { throws: 'throw new Error("no luck")', empty: 'export default 5', broken: 'export default {' }
    for (const [name, text] of Object.entries(code)) {
      await using dir = await folder(packageFiles(`svc-plugin-${name}`, svc, text))
      const error = await problemOf({ plugins: [`svc-plugin-${name}`], from: [dir.url] })
      expect(error).to.include({ code: 'PLUGIN_IMPORT_FAILED', plugin: `svc-plugin-${name}` })
      expect(error.hint).to.include(name === 'empty' ? 'export default definePlugin' : 'Fix the error in the module')
      if (name !== 'empty') expect(error.cause).to.be.instanceOf(Error)
    }
  })

  it('suggests how to fix an import of something that the module does not export', async () => {
    const text = `import { Host } from 'node:fs'; export default Host`
    await using dir = await folder(packageFiles('svc-plugin-lost', { api: 1, kind: 'tool' }, text))
    const error = await problemOf({ plugins: ['svc-plugin-lost'], from: [dir.url] })
    expect(error).to.include({ code: 'PLUGIN_IMPORT_FAILED', plugin: 'svc-plugin-lost' })
    expect(error.hint).to.include('import type').and.include('@svc/core')
  })

  it('names a plugin that is listed twice', async () => {
    const error = await problemOf({ plugins: [entry('a', nothing()), entry('a', nothing())] })
    expect(error).to.include({ code: 'PLUGIN_TWICE', plugin: 'a', hint: 'Keep one of its entries in "plugins"' })
  })

  it('names both providers of one service', async () => {
    const other = entry('other', definePlugin({ provides: Greeter, setup: () => ({ greet: async () => '' }) }))
    const error = await problemOf({ plugins: [greeter(), other] })
    expect(error).to.include({ code: 'SERVICE_TAKEN', plugin: 'other' })
    expect(error.message).to.equal('provides the service "greeter", which greeter already provides')
    expect(error.hint).to.equal('Disable one of the plugins: plugins: [{ use: "greeter", enabled: false }]')
  })

  it("lets no plugin take the host's own service", async () => {
    const False = defineService<{ report(): Promise<number> }>('host', { api: 1, methods: { report: 'call' } })
    const error = await problemOf({
      plugins: [entry('thief', definePlugin({ provides: False, setup: () => ({ report: async () => 1 }) }))],
    })
    expect(error).to.include({ code: 'SERVICE_TAKEN', plugin: 'thief' })
  })

  it('names a service without a provider, and one that was probably meant', async () => {
    const Greter = defineService<Greeter>('greter', { api: 1, methods: { greet: 'call' } })
    const error = await problemOf({ plugins: [greeter(), entry('guest', definePlugin({ requires: { g: Greter }, setup() {} }))] })
    expect(error).to.include({ code: 'SERVICE_MISSING', plugin: 'guest' })
    expect(error.message).to.equal('requires the service "greter", which no loaded plugin provides')
    expect(error.hint).to.equal('Add a plugin that provides "greter" to "plugins" (did you mean "greeter"?)')
  })

  it('prints a circle as a path', async () => {
    const a = entry('a', definePlugin({ requires: { r: Radio }, provides: Clock, setup: () => clock }))
    const b = entry('b', definePlugin({ requires: { c: Clock }, provides: Radio, setup: () => ({ play: async () => 1 }) }))
    const c = entry('c', definePlugin({ requires: { c: Clock }, setup() {} }))
    const error = await problemOf({ plugins: [c, a, b] })
    expect(error).to.include({ code: 'SERVICE_CYCLE', plugin: 'a' })
    expect(error.message).to.equal('plugins require each other in a cycle: a → b → a')
    expect(error.details).to.deep.equal({ path: ['a', 'b', 'a'] })
    expect(error.hint).to.include('optional')
  })

  it('names a contract that differs under one name, of a service, a slot and a hook', async () => {
    const Older = defineService<Greeter>('greeter', { api: 2, methods: { greet: 'call' } })
    const OldWords = { ...Words, methods: {} }
    const Looking = defineService<Greeter, { before: Series<string> }>('greeter', {
      api: 1,
      methods: { greet: 'call' },
      hooks: { before: 'series' },
    })
    const byService = entry('guest', definePlugin({ requires: { g: Older }, setup() {} }))
    const bySlot = entry('guest', definePlugin({ requires: { words: Words, old: OldWords }, setup() {} }))
    const byHook = entry('guest', definePlugin({ setup: scope => void scope.tap(Looking.hooks.before, () => {}) }))
    for (const [guest, name] of [
      [byService, 'greeter'],
      [bySlot, 'words'],
      [byHook, 'greeter.before'],
    ] as const) {
      const error = await problemOf({ plugins: [greeter(), guest] })
      expect(error).to.include({ code: 'CONTRACT_MISMATCH', plugin: 'guest' })
      expect(error.message).to.match(new RegExp(`^uses the contract "${name}" in another version than this host: .+ instead of `))
      expect(error.hint).to.include('built for this version of svc')
    }
  })

  it('tells all problems together, as a page each', async () => {
    await using dir = await folder({ 'plug/package.json': {} })
    const guest = entry('guest', definePlugin({ requires: { g: Greeter }, setup() {} }))
    const options = {
      plugins: ['svc-plugin-nowhere', './plug', guest],
      from: [dir.url],
      config: { host: { tap_timeout_ms: 'x' } },
    }
    const problems = await problemsOf(options)
    expect(problems.map(problem => problem.code)).to.have.members([
      'PLUGIN_UNKNOWN',
      'MANIFEST_INVALID',
      'CONFIG_INVALID',
      'SERVICE_MISSING',
    ])
    const page = formatError(Object.assign(new Error(), { problems }))
    expect(page).to.include(
      'SERVICE_MISSING  guest\n  requires the service "greeter", which no loaded plugin provides\n  Add a plugin'
    )
    expect(page.split('\n\n')).to.have.length(4)
  })

  it('tells unknown keys beside a plugin that could not be loaded, and that they may be its own', async () => {
    await using dir = await folder()
    const options = { from: [dir.url], config: { nowhere: { a: 1 }, lgo: {} } }
    const problems = await problemsOf({ plugins: ['svc-plugin-nowhere'], ...options })
    expect(problems.map(problem => [problem.code, problem.details.path])).to.deep.equal([
      ['PLUGIN_UNKNOWN', undefined],
      ['CONFIG_UNKNOWN_KEY', 'nowhere'],
      ['CONFIG_UNKNOWN_KEY', 'lgo'],
    ])
    expect(problems[2]!.hint).to.equal('did you mean "log"? (or it belongs to svc-plugin-nowhere, which failed to load)')
  })

  it('only notes unknown keys where all that could not be loaded was optional', async () => {
    await using dir = await folder()
    const plan = await planHost({
      plugins: [{ use: 'svc-plugin-nowhere', optional: true }],
      from: [dir.url],
      config: { nowhere: { a: 1 } },
    })
    expect(plan.problems).to.deep.equal([])
    expect(plan.notes.map(note => note.code)).to.deep.equal(['CONFIG_UNKNOWN_KEY'])
  })

  it('tells what a plugin finds wrong with what its configuration names, with all other faults', async () => {
    const wrong = async () => [svcError('FILE_WRONG', 'its file is wrong', { hint: 'fix it' })]
    const hangs = () => new Promise<never>(() => {})
    const plugins = [
      entry('a', definePlugin({ check: wrong, setup() {} })),
      entry(
        'b',
        definePlugin({
          section: 'b',
          config: schema<{ n: number }>({ properties: { n: { type: 'integer' } } }),
          check: wrong,
          setup() {},
        })
      ),
      entry('c', definePlugin({ check: hangs, setup() {} })),
      entry('d', definePlugin({ check: wrong, setup() {} }), { optional: true }),
    ]
    const plan = await planHost({ plugins, config: { b: { n: 'x' }, host: { setup_timeout_ms: 20 } } })
    expect(plan.problems.map(problem => [problem.code, problem.plugin])).to.deep.equal([
      ['FILE_WRONG', 'a'],
      ['CONFIG_INVALID', 'b'],
      ['CHECK_FAILED', 'c'],
    ])
    expect(plan.failed.map(item => item.error?.code)).to.deep.equal(['FILE_WRONG'])
  })

  it('tells a check whether the server already runs with this configuration', async () => {
    const running: unknown[] = []
    const check = async (_config: unknown, _instance?: string, context?: CheckContext) => {
      running.push(context?.running)
      return []
    }
    const plugins = [entry('a', definePlugin({ check, setup() {} }))]
    await planHost({ plugins })
    await planHost({ plugins, running: true })
    expect(running).to.deep.equal([false, true])
  })
})

describe('a setup that adds what it may not', () => {
  const adds = (name: string, item: string, more = {}) =>
    entry(name, definePlugin({ setup: scope => void scope.add(Words, item, word(item)) }), more)

  it('names both who add one name to a slot', async () => {
    const error = await problemOf({ plugins: [adds('first', 'hello'), adds('second', 'hello')] })
    expect(error).to.include({ code: 'NAME_TAKEN', plugin: 'second' })
    expect(error.message).to.equal('adds "hello" to words, but first has already added that name')
    expect(error.hint).to.equal('Rename one of the two items, or disable one of the plugins')
  })

  it('names a contribution that the manifest does not declare, and the words to add', async () => {
    const manifest = { api: 1, kind: 'word', contributes: { words: ['hello', 'h*__*'] } }
    const error = await problemOf({
      plugins: [adds('a', 'hello', { manifest }), adds('b', 'hi__x', { manifest }), adds('c', 'hi', { manifest })],
    })
    expect(error).to.include({ code: 'CONTRIBUTION_UNDECLARED', plugin: 'c' })
    expect(error.hint).to.equal('Add it to the package.json of the plugin: "svc": { "contributes": { "words": ["hi"] } }')
  })
})
