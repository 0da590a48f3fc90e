import { stripVTControlCharacters } from 'node:util'
import { homedir } from 'node:os'
import { dirname } from 'node:path'
import { expect } from 'chai'
import { type PluginUsage, usageTable } from '../src/commands/server/top.ts'
import { summaryText } from '../src/commands/author/test-plugin.ts'
import { accessOf } from '../src/commands/change/configured-access.ts'
import { plannedAccess } from '../src/commands/change/planned-access.ts'
import { permissionWords, proposalText } from '../src/commands/change/proposal-text.ts'

const candidate = {
  name: 'svc-plugin-tides',
  version: '1.0.0',
  origin: { kind: 'registry', spec: 'svc-plugin-tides' },
  manifest: { api: 1, kind: 'tool\u001b[8m\n  may       nothing' },
  description: 'shows tides\u202e\u001b[2J',
  permissions: { env: ['A_KEY'] },
  permissionChange: { added: [], removed: [] },
  installScripts: [],
  dependencyScripts: [],
  scripts: false,
  dependencies: 0,
  packages: [],
  integrity: '',
  bytes: 1,
  same: false,
} as const

const access = accessOf(candidate, {})

describe('the summary of svc plugins test', () => {
  const result = {
    plugin: 'p',
    version: '1.0.0',
    seed: 1,
    isolation: 'process' as const,
    cases: [
      {
        title: 'tools x: … – skipped: `madeUp: true` in tools.x of test/samples was not given',
        state: 'skipped' as const,
        ms: 0,
      },
    ],
    warnings: [],
  }

  it('joins the variables that a dependency reads, and keeps other warnings', () => {
    const look = (by: string, name: string) => `${by} looks at the variable ${name}: if …`
    const warnings = [look('pg', 'PGUSER'), 'other', look('ws', 'WSX'), look('pg', 'PGHOST'), look('pg', 'PGUSER')]
    const lines = stripVTControlCharacters(summaryText({ ...result, warnings })).split('\n')
    expect(lines.slice(0, 3).map(line => /^warn (.*?)(: ignore.*)?$/.exec(line)?.[1])).to.deep.equal([
      'other',
      'pg looks at the variables PGHOST, PGUSER',
      'ws looks at the variable WSX',
    ])
    expect(lines[1]).to.contain('{ "name": "PGHOST", "optional": true }')
    expect(lines[3]).to.contain('failed, 1 warning to fix')
    expect(summaryText({ ...result, warnings: warnings.filter(text => text !== 'other') })).to.not.contain('to fix')
  })

  it('says which sample a skipped line needs, and `madeUp` only if one needs it', () => {
    expect(summaryText(result)).to.contain('1 skipped').and.contain('test/samples.ts').and.contain('set `madeUp: true` next to')
    const slow = [{ ...result.cases[0]!, title: 'x – skipped: `slow` was not given' }]
    expect(summaryText({ ...result, cases: slow }))
      .to.contain('1 skipped')
      .and.not.contain('madeUp')
  })
})

describe('what a person reads before a plugin is let in', () => {
  it('has nothing of the plugin that a terminal would obey, and no line of its making', () => {
    const text = proposalText({ candidate, isolation: 'process', trusted: false, access }, false)
    expect(text.match(/[^\n\P{C}]/u)).to.equal(null)
    expect(text.split('\n').filter(line => line.startsWith('  may'))).to.deep.equal(['  may       read the variable A_KEY'])
  })

  it('says what runs at its install and what it brings, and where it was built according to the registry', () => {
    const shown = (more: object) =>
      proposalText({ candidate: { ...candidate, ...more }, isolation: 'process', trusted: false, access }, false)
    expect(shown({}))
      .to.match(/^ {2}scripts +none at install$/m)
      .and.match(/^ {2}brings +no other packages$/m)
      .and.not.match(/^ {2}signed/m)
    const output = shown({
      installScripts: ['postinstall'],
      dependencies: 2,
      dependencyScripts: ['near@1.0.0'],
      registry: { signatures: 1, provenance: 'https://slsa.dev/provenance/v1' },
    })
    expect(output)
      .to.contain('postinstall: will not run (--allow-scripts runs them)')
      .and.contain('2 other packages; the install scripts of near@1.0.0 never run')
      .and.contain(
        'by 1 key of the registry; where it was built: https://slsa.dev/provenance/v1 (claimed by the registry, unchecked)'
      )
    expect(shown({ installScripts: ['postinstall'], scripts: true })).to.contain('postinstall: WILL RUN NOW, without isolation')
    expect(shown({ registry: { signatures: 0 } })).to.contain('by no key of the registry; no statement of where it was built')
  })

  it('says where its routes answer, which need no credential, and that its schemes see credentials', () => {
    const contributes = {
      routes: { notes: { method: 'GET', path: '/notes', scope: 'read' }, hook: { method: 'POST', path: '/hook' } },
      auth_schemes: ['badge'],
    }
    const manifest = { ...candidate.manifest, contributes }
    const text = proposalText({ candidate: { ...candidate, manifest }, isolation: 'process', trusted: false, access }, false)
    expect(text)
      .to.match(/^ {2}adds +routes: notes, hook$/m)
      .and.match(/^ {2}answers +POST \/hook: OPEN to every client, without a credential\n +GET \/notes: needs the scope read$/m)
      .and.match(/^ {2}checks +credentials of callers: "badge" sees those that it reads, and decides what their owners can do$/m)
  })

  it('is the same over HTTP, with marks: wide permissions first, and those of an update', () => {
    const permissions = { tools: ['weather'], network: ['*'], console: ['GET /orders'] }
    const contributes = { routes: { orders: { method: 'GET', path: '/orders', scope: 'read' } } }
    const planned = plannedAccess({
      candidate: {
        ...candidate,
        from: '0.9.0',
        manifest: { ...candidate.manifest, contributes },
        permissions,
        permissionChange: { added: ['network *', 'console GET /orders'], removed: [] },
      },
      isolation: 'process',
      trusted: false,
      access,
    })
    const orders = 'with its pages in the console, send GET /orders to your server with the rights of the person there'
    expect(planned).to.deep.equal({
      access: [
        { text: 'connect to *', is_wide: true, is_new: true },
        { text: orders, is_wide: false, is_new: true },
        { text: 'call the tool weather', is_wide: false, is_new: false },
      ],
      routes: ['GET /orders: needs the scope read'],
      pages: [],
      checks: [],
    })
  })

  it('says which single tools and providers it calls', () => {
    expect(permissionWords({ tools: ['pgquery'], providers: ['openai', '*'] })).to.deep.equal([
      'WIDE: call the provider * with its API key',
      'call the tool pgquery',
      'call the provider openai with its API key',
    ])
  })

  it('says where the network is open to a plugin in its own process', () => {
    const runs = (isolation: 'process' | 'quickjs', isOpen: boolean) =>
      /runs +(.*)/.exec(proposalText({ candidate, isolation, trusted: false, access }, isOpen))![1]
    expect(runs('process', false)).to.equal('in its own process, with its permissions enforced')
    expect(runs('process', true)).to.include('only if this machine has a sandbox').and.include('NETWORK IS OPEN')
    expect(runs('quickjs', true)).to.equal(runs('quickjs', false))
  })

  it('says of a plugin in the process of svc that nothing enforces its permissions', () => {
    const may = (isolation: 'process' | 'in-process', permissions: object) =>
      /^ {2}may +([^]*?)\n {2}scripts/m
        .exec(proposalText({ candidate: { ...candidate, permissions }, isolation, trusted: true, access }, false))![1]!
        .split(/\n +/)
    const all = 'WIDE: do all that svc can do, because its permissions are not enforced in the process of svc'
    expect(may('in-process', {})).to.deep.equal([all])
    expect(may('in-process', { env: ['A_KEY'] })).to.deep.equal([all, 'read the variable A_KEY'])
    expect(may('process', {})[0]).to.match(/^use only its own files/)
  })

  it('shows the values of settings in place of their names, without user and password', () => {
    const manifest = { ...candidate.manifest, instances: { section: 'providers', type: 'tides' } }
    const permissions = {
      network: ['<tools.tides.server>', '<tools.tides.url>', '<tools.tides.dsn>', '<tools.tides.other>'],
      env: ['<providers[].key_env>', '<tools.tides.key_env>'],
      write: ['<tools.tides.roots>'],
    }
    const config = {
      tools: {
        tides: {
          server: 'db.internal:5432',
          url: 'postgres://me:s3cret@a.internal,b.internal:6000/shop?password=s3cret',
          dsn: 'host=x password=s3cret',
          roots: ['/srv/a', '/srv/b\u001b[2J'],
        },
      },
      providers: {
        one: { type: 'tides', key_env: 'ONE_KEY' },
        tides: { key_env: 'TWO_KEY' },
        other: { type: 'openai', key_env: 'OPENAI_API_KEY' },
        off: { type: 'tides', enabled: false, key_env: 'OFF_KEY' },
      },
    }
    const found = { ...candidate, manifest, permissions }
    const text = proposalText({ candidate: found, isolation: 'process', trusted: false, access: accessOf(found, config) }, false)
    const may = text.slice(text.lastIndexOf('  may       ') + 12, text.indexOf('\n  scripts'))
    expect(may.split(/\n +/)).to.deep.equal([
      'write /srv/a (tools.tides.roots)',
      'write /srv/b\\u{1b}[2J (tools.tides.roots)',
      'read the variable ONE_KEY (providers[].key_env)',
      'read the variable TWO_KEY (providers[].key_env)',
      'read the variable that tools.tides.key_env names, which is not set; svc asks again when it is',
      'connect to db.internal:5432 (tools.tides.server)',
      'connect to a.internal:5432 (tools.tides.url)',
      'connect to b.internal:6000 (tools.tides.url)',
      'connect to the value of tools.tides.dsn, which svc cannot read',
      'connect to the value of tools.tides.other, which is not set; svc asks again when it is',
    ])
    expect(text).to.not.contain('s3cret')
  })

  it('says of a hook what its kind lets a plugin do', () => {
    const hooks = ['chat.turn', 'chat.toolCall', 'chat.end', 'http.done', 'tools.changed', 'host.closing', 'acme.said']
    expect(permissionWords({ hooks })).to.deep.equal([
      'join chat.turn: see and change all its messages',
      'join chat.toolCall: see all its messages, and answer or refuse them',
      'join chat.end: see all its messages',
      'join http.done: see all its messages',
      'join tools.changed: see all its messages',
      'join host.closing: run at this moment',
      'join acme.said: see and change all its messages',
    ])
    const words = (name: string) => permissionWords({ hooks: [name] })
    for (const name of ['*', 'http.*', 'peers.*', 'acme*', '*.changed*s'])
      expect(words(name)).to.deep.equal([`WIDE: join ${name}: see and change all its messages`])
  })

  it('names each secret that a plugin asks for', () => {
    expect(permissionWords({ secrets: ['db_password', 'api_key'] })).to.deep.equal([
      'read the secret db_password',
      'read the secret api_key',
    ])
  })

  it('says which spaces of the store it reads and changes', () => {
    expect(permissionWords({ spaces: ['notes', 'n*'] })).to.deep.equal([
      'WIDE: read and change all data in the space n* of the store',
      'read and change all data in the space notes of the store',
    ])
  })

  it('marks services with power over what other plugins own, and says which give only its own', () => {
    expect(
      permissionWords({ services: ['tools', 'job_kinds', 'peers', 'chat'], hooks: ['peers.message', 'chat.turn'] })
    ).to.deep.equal([
      'WIDE: call every tool',
      'WIDE: run every kind of job, without a credential',
      'exchange messages with its own processes, with the service peers',
      'use the service chat with all its data',
      'join peers.message: see its own messages',
      'join chat.turn: see and change all its messages',
    ])
  })

  it('begins with what is wide, marked, and of a long list says how many more there are', () => {
    const words = permissionWords({
      network: [...Array.from({ length: 30 }, (_, at) => `h${at}.example`), '*', '*.org', '*.example.org'],
      read: ['/var/data', dirname(homedir())],
      write: ['/'],
      env: ['A_KEY', 'AWS_*'],
      services: ['store', '*'],
      hooks: ['chat.*'],
    })
    expect(words.filter(word => word.startsWith('WIDE'))).to.deep.equal(words.slice(0, 8))
    expect(words.slice(0, 8)).to.deep.equal([
      'WIDE: read and change the data of all plugins in the store',
      'WIDE: use the service * with all its data',
      'WIDE: join chat.*: see and change all its messages',
      'WIDE: write /',
      `WIDE: read ${dirname(homedir())}`,
      'WIDE: read the variable AWS_*',
      'WIDE: connect to *',
      'WIDE: connect to *.org',
    ])
    expect(words.slice(28)).to.deep.equal(['and 13 more, none of them wide: --json lists all'])
  })
})

describe('the table of svc plugins top', () => {
  const pluginUsage: PluginUsage = {
    name: 'svc-plugin-with-a-name-of-many-words',
    calls: 123_456,
    errors: 12,
    ms: 65_000,
    isolated: { memoryBytes: 2 ** 28, cpuMs: 12_345, restarts: 3, refusals: 1234, quarantined: false },
  }
  const recent = { seconds: 2, of: new Map([[pluginUsage.name, pluginUsage]]) }
  const linesOf = (row: PluginUsage, width: number) => stripVTControlCharacters(usageTable([row], { recent, width })).split('\n')

  it('is no wider than the terminal: names are shortened, then columns left out in one order, restarts and refusals never', () => {
    for (const width of [60, 80, 100, 120])
      for (const quarantined of [false, true]) {
        const [head = '', line = ''] = linesOf({ ...pluginUsage, isolated: { ...pluginUsage.isolated!, quarantined } }, width)
        expect(Math.max(head.length, line.length), `${width}`).to.be.at.most(width)
        expect(line).to.match(quarantined ? / quarantined +1,234$/ : / 3 +1,234$/)
      }
    const heads = (width: number) => linesOf(pluginUsage, width)[0]!.split(/ +/)
    const all = ['PLUGIN', '/S', 'BUSY', 'CALLS', 'ERRORS', 'TIME', 'MEMORY', 'CPU', 'RESTARTS', 'REFUSED']
    expect(heads(Infinity)).to.deep.equal(all)
    expect(heads(80)).to.deep.equal(all.filter(head => !['TIME', '/S', 'CPU'].includes(head)))
  })
})
