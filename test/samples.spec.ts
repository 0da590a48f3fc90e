import { createHmac } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { pathToFileURL } from 'node:url'
import { type Plugin, type ServiceToken, startHost, systemContext, type CallContext } from '@svc/core'
import {
  type Json,
  Jobs,
  Routes,
  Schedules,
  TeamDefinitions,
  type TextSnippet,
  Tools,
  Verticals,
  WorkflowDefinitions,
} from '@svc/core/contracts'
import { noBubblewrap } from '@svc/testing'
import { expect } from 'chai'
import { type Document, documentTests, readDocument } from './support/document.ts'
import { runSvc } from './support/command.ts'
import { pluginFolder } from './support/plugin-folder.ts'

const guide = (name: string) => `docs/guides/${name}.md`
const plugins: Document = await readDocument(
  ...[
    'write-a-plugin',
    'package-a-plugin',
    'write-a-tool',
    'write-a-workflow-node',
    'write-a-vertical',
    'write-a-route',
    'verify-a-webhook',
    'add-a-web-page',
    'write-a-store',
    'keep-data',
    'cache-values',
    'keep-a-secret',
    'settings-per-user',
    'full-text-search',
    'work-in-the-background',
    'run-something-every-night',
    'receive-webhooks',
    'write-a-command',
    'write-an-auth-scheme',
    'tap-a-chat',
    'provide-a-service',
    'call-a-model',
    'debug-a-plugin',
    'test-a-plugin',
    'test-against-a-database',
  ].map(guide)
)
const providers: Document = await readDocument(...['configure-providers', 'handle-model-failures', 'write-a-provider'].map(guide))

/** That svc loads a plugin with a configuration of the document, and what it adds then. */
async function loads(document: Document, file: string, plugin: string, added: object): Promise<void> {
  const { code, out } = await document.svc('plugins', '--json', '-c', file)
  expect(code, out).to.equal(0)
  const report = JSON.parse(out) as { plugins: { name: string; added: object }[] }
  expect(report.plugins.find(item => item.name === plugin)?.added).to.deep.equal(added)
}

const ctx = systemContext(new AbortController().signal)

/** A host with the plugin of a sample, and plugins of this repository. */
async function startSample(file: string, used: readonly string[]) {
  const { default: use } = (await import(pathToFileURL(plugins.at(file)).href)) as { default: Plugin }
  const own = { name: file.replace('.ts', ''), use }
  return startHost({ plugins: [...used.map(pluginFolder), own], log: { destination: { write() {} } } })
}

describe('the guides for plugins', () => {
  before(() => plugins.layOut())
  after(() => plugins.remove())
  documentTests(plugins, { passes: 10 })

  it('show a configuration, a package, a tool and its test', () => {
    expect(plugins.names).to.include.members(['svc.config.yaml', 'weather/package.json', 'reverse.ts', 'reverse.spec.ts'])
  })

  it('has a svc.config.yaml with which svc loads hello', () => loads(plugins, 'svc.config.yaml', 'hello', { routes: ['hello'] }))

  it('has a debug.yaml that svc takes', async () => {
    const { code, out } = await plugins.svc('config', 'check', '-c', 'debug.yaml')
    expect(code, out).to.equal(0)
  })

  it('has a package whose manifest and module agree, and a manifest that svc takes', async () => {
    await writeFile(plugins.at('package.yaml'), 'plugins: [./weather]\ntools: { weather: { unit: F } }\n')
    const { code, out } = await plugins.svc('config', 'check', '-c', 'package.yaml')
    expect(code, out).to.equal(0)
  })

  for (const isolation of ['in-process', 'process'])
    it(`has a package whose command runs with isolation: ${isolation}`, async function () {
      if (isolation === 'process' && noBubblewrap()) return this.skip()
      const config = `plugins: [{ use: ./weather, isolation: ${isolation} }]\ntools: { weather: { unit: F } }\n`
      await writeFile(plugins.at('command.yaml'), config)
      const { code, out } = await plugins.svc('weather', 'Oslo', '-c', 'command.yaml')
      expect({ code, out }).to.deep.equal({ code: 0, out: '12 °F in Oslo\n' })
    })

  it('lists each kit of @svc/testing with its subject', async () => {
    const page = await readFile(new URL('../docs/guides/test-a-plugin.md', import.meta.url), 'utf8')
    const kits = Object.keys(await import('@svc/testing')).filter(name => name.endsWith('Kit'))
    const rows = [...page.matchAll(/^\| `(\w+Kit)[(`]/gm)].map(([, name]) => name)
    expect(rows).to.have.members(kits)
  })

  it('has a vertical that brings a team, a workflow and the patterns for them', async () => {
    const runtime = new URL('../plugins/workflows/verticals/', import.meta.url)
    await using host = await startHost({ plugins: [runtime, plugins.at('garden')], log: { destination: { write() {} } } })
    expect(host.slot(Verticals).get('garden')).to.deep.include({ teams: ['planners'], workflows: ['plan_beds'] })
    expect(host.slot(TeamDefinitions).owner('planners')).to.equal('svc-plugin-garden')
    expect(host.slot(WorkflowDefinitions).get('plan_beds')).to.have.nested.property('nodes.ask.type', 'human')
  })

  it('has notes that can be searched, each by its owner alone', async () => {
    const { default: use } = (await import(pathToFileURL(plugins.at('search-notes.ts')).href)) as { default: Plugin }
    const { html } = (await import(pathToFileURL(plugins.at('snippet-html.ts')).href)) as { html(snippet: TextSnippet): string }
    const memory = new URL('../plugins/storage/memory/', import.meta.url)
    await using host = await startHost({ plugins: [memory, { name: 'notes', use }], log: { destination: { write() {} } } })
    const ask = async (id: string, route: string, parts: { body?: Json; query?: Record<string, string> }) => {
      const system = systemContext(new AbortController().signal)
      const ctx = { ...system, principal: { ...system.principal, id } }
      const answer = await host.slot(Routes).get(route)!.handle!(
        { params: {}, query: {}, headers: {}, body: undefined, ...parts },
        ctx
      )
      return (answer as { body?: { found: { snippets: TextSnippet[] }[]; next_cursor: string | null } }).body
    }
    await ask('ann', 'add_searched_note', { body: { title: 'Crème & <b>', text: 'brûlée' } })
    await ask('bob', 'add_searched_note', { body: { title: 'creme', text: 'of bob' } })
    const body = await ask('ann', 'search_notes', { query: { q: 'creme*' } })
    expect(body?.next_cursor).to.equal(null)
    expect(body?.found.map(({ snippets }) => snippets.map(html))).to.deep.equal([['<mark>Crème</mark> &#38; &#60;b&#62;']])
  })

  it('has a webhook that takes signed bodies only, and does not start without its secret', async () => {
    const { default: use } = (await import(pathToFileURL(plugins.at('webhook.ts')).href)) as { default: Plugin }
    const start = () => startHost({ plugins: [{ name: 'webhook', use }], log: { destination: { write() {} } } })
    const failed = await start().catch((error: Error) => error)
    expect(failed).to.have.property('message').that.includes('GITHUB_SECRET is not set')
    process.env.GITHUB_SECRET = 'of this test'
    try {
      await using host = await start()
      const rawBody = Buffer.from('{ "n": 1.0 }')
      const send = async (key: string) =>
        host.slot(Routes).get('push')!.handle!(
          {
            params: {},
            query: {},
            headers: { 'x-hub-signature-256': `sha256=${createHmac('sha256', key).update(rawBody).digest('hex')}` },
            body: { n: 1 },
            rawBody,
          },
          systemContext(new AbortController().signal)
        )
      expect(await send('of this test')).to.deep.equal({ status: 204 })
      for (const key of ['', 'another']) {
        const error = await send(key).catch((reason: Error) => reason)
        expect(error).to.include({ code: 'AUTHENTICATION_FAILED' })
      }
    } finally {
      delete process.env.GITHUB_SECRET
    }
  })

  it('has a service whose slot and hook another plugin joins', async () => {
    const load = async <T>(name: string) => (await import(pathToFileURL(plugins.at(name)).href)) as T
    interface Greets {
      greet(language: string, name: string, ctx: CallContext): Promise<string>
    }
    const { default: greeter, Greeter } = await load<{ default: Plugin; Greeter: ServiceToken<Greets> }>('greeter.ts')
    const { default: french } = await load<{ default: Plugin }>('french.ts')
    const both = [
      { name: 'french', use: french },
      { name: 'greeter', use: greeter },
    ]
    await using host = await startHost({ plugins: both, log: { destination: { write() {} } } })
    const greet = (language: string, name: string) =>
      host.service(Greeter).greet(language, name, systemContext(new AbortController().signal))
    expect(await greet('fr', 'Zoé')).to.equal('Bonjour Zoé')
    expect(await greet('en', 'world')).to.equal('Hello, world!')
    expect(await greet('en', 'you')).to.equal('Hello you')
  })

  it('has a job kind that counts words in the background, and a schedule', async () => {
    const load = async (name: string) => (await import(pathToFileURL(plugins.at(name)).href)) as { default: Plugin }
    const [words, tidy] = [(await load('word-count.ts')).default, (await load('tidy.ts')).default]
    const own = [
      { name: 'word-count', use: words },
      { name: 'tidy', use: tidy },
    ]
    const used = ['store-memory', 'jobs', 'schedules'].map(pluginFolder)
    const config = { jobs: { execute: true } }
    await using host = await startHost({ plugins: [...used, ...own], config, log: { destination: { write() {} } } })
    const ctx = systemContext(new AbortController().signal)
    const { id } = await host.service(Jobs).add({ kind: 'words.count', input: { texts: ['a b', 'c'] } }, ctx)
    expect(await host.service(Jobs).settled(id, 5_000, ctx)).to.deep.include({ state: 'completed', result: { words: 3 } })
    const night = await host.service(Schedules).run('tidy-nightly', ctx)
    expect(await host.service(Jobs).settled(night.id, 5_000, ctx)).to.include({ state: 'completed' })
  })

  for (const file of ['nightly.yaml', 'cache.yaml', 'secrets.yaml', 'sources.yaml', 'webhooks.yaml'])
    it(`has a ${file} that svc takes`, async () => {
      const { code, err } = await runSvc(['config', 'check', '-c', plugins.at(file)], {
        home: plugins.at('home'),
        cwd: plugins.at('.'),
        share: true,
      })
      expect(code, err).to.equal(0)
    })

  it('has a tool that reads a secret, and notices a new value at once', async () => {
    const manifest = {
      name: 'svc-plugin-key-length',
      type: 'module',
      exports: { '.': './index.ts', './package.json': './package.json' },
      svc: { api: 1, kind: 'tool', contributes: { tools: ['key_length'] }, permissions: { secrets: ['weather_key'] } },
    }
    await mkdir(plugins.at('key-length'))
    await writeFile(plugins.at('key-length/package.json'), JSON.stringify(manifest))
    await writeFile(plugins.at('key-length/index.ts'), `export { default } from '../key-length.ts'\n`)
    await using host = await startHost({
      plugins: [...['store-memory', 'secrets'].map(pluginFolder), plugins.at('key-length')],
      config: { secrets: { sources: { weather_key: { env: 'WEATHER_KEY_OF_THIS_TEST' } } } },
      log: { destination: { write() {} } },
    })
    const length = async () => (await host.slot(Tools).get('key_length')!.call({}, ctx)).content
    try {
      for (const value of ['abc', 'abcd']) {
        process.env.WEATHER_KEY_OF_THIS_TEST = value
        expect(await length()).to.deep.equal([{ type: 'text', text: String(value.length) }])
      }
    } finally {
      delete process.env.WEATHER_KEY_OF_THIS_TEST
    }
  })

  it('has settings that each principal changes for itself', async () => {
    await using host = await startSample('weather.ts', ['store-memory', 'settings'])
    const ask = async (id: string, route: string, body?: Json) => {
      const request = { params: {}, query: {}, headers: {}, body }
      return host.slot(Routes).get(route)!.handle!(request, { ...ctx, principal: { id, scopes: ['chat'] } })
    }
    expect(await ask('ann', 'change_weather', { city: 'Oslo' })).to.deep.equal({ body: { values: { city: 'Oslo' } } })
    const values = { city: 'Oslo', unit: 'celsius' }
    expect(await ask('ann', 'weather_settings')).to.deep.equal({
      body: { values, sources: { city: 'principal', unit: 'default' } },
    })
    expect(await ask('bob', 'weather_settings')).to.have.nested.property('body.values.city', 'London')
    const error = await ask('ann', 'change_weather', { unit: 'kelvin' }).catch((reason: Error) => reason)
    expect(error).to.include({ code: 'SETTINGS_INVALID' })
  })

  it('has a route that reads a rate once, and from the cache then', async () => {
    await using host = await startSample('exchange.ts', ['store-memory', 'cache'])
    const ask = async () =>
      host.slot(Routes).get('exchange')!.handle!({ params: {}, query: { currency: 'EUR' }, headers: {}, body: undefined }, ctx)
    expect([await ask(), await ask()]).to.deep.equal([
      { body: { rate: 1.5, cached: false } },
      { body: { rate: 1.5, cached: true } },
    ])
  })
})

describe('the guides for providers', () => {
  before(() => providers.layOut())
  after(() => providers.remove())
  documentTests(providers, { passes: 30 })

  it('has an echo.yaml with which svc loads echo', () => loads(providers, 'echo.yaml', 'echo', { providers: ['mine'] }))

  it('has an acme.yaml with which svc loads the provider of the walk', () =>
    loads(providers, 'acme.yaml', 'index', { providers: ['acme'] }))

  it('has configurations that svc takes', async () => {
    await mkdir(providers.at('secrets'))
    for (const file of ['key', 'secrets/groq']) await writeFile(providers.at(file), 'a-key')
    using _keys = withVariables(['OPENAI_API_KEY', 'ANTHROPIC_API_KEY', 'COMPANY_KEY'])
    for (const file of ['svc.config.yaml', 'resilient/svc.config.yaml']) {
      const { code, out } = await providers.svc('config', 'check', '-c', file)
      expect(code, out).to.equal(0)
    }
  })
})

/** Keys in the environment, until the case ends. */
function withVariables(names: readonly string[]): Disposable {
  const before = names.map(name => [name, process.env[name]] as const)
  for (const name of names) process.env[name] = 'a-key'
  const back = (name: string, value: string | undefined) =>
    value === undefined ? delete process.env[name] : (process.env[name] = value)
  return { [Symbol.dispose]: () => before.forEach(([name, value]) => back(name, value)) }
}
