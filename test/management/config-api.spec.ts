import { existsSync } from 'node:fs'
import { mkdtemp, readdir, readFile, rm, stat, symlink, unlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { callerOf, changesOf, type Managed, startManaged, tenTimes } from '../support/admin-caller.ts'
import { createClient } from '../support/client.ts'
import { runSvc } from '../support/command.ts'
import { inNewHome, startService } from '../support/service.ts'

const CONFIG = '/api/v1/config'
const FIRST = `# written by a person
server:
  # the limit of bodies
  body_limit: 2000000 # bytes
log: { level: info }
providers:
  local: {}
  remote: { type: openai, base_url: "https://api.example/v1", api_key_env: REMOTE_KEY }
models:
  aliases:
    fast: { provider: local, model: local-1 }
`

interface Value {
  readonly key: string
  readonly keys: readonly string[]
  readonly value: unknown
  readonly source: { readonly kind: string; readonly name: string | null }
  readonly local: string | null
  readonly in_file: boolean
}
interface Config {
  readonly values: readonly Value[]
  readonly plugins: readonly { readonly name: string }[]
  readonly file: { readonly version: string; readonly is_pending: boolean; readonly locked: string | null }
}
interface Problem {
  readonly code: string
  readonly message: string
  readonly path: string | null
  readonly where: string | null
  readonly hint: string | null
}
interface Checked {
  readonly ok: boolean
  readonly problems: readonly Problem[]
  readonly unchecked: readonly string[]
}

// biome-ignore-start lint/suspicious/noTemplateCurlyInString: the syntax of references to secrets
/** Drafts that would run code, start commands, or reach files, folders, variables or credentials. */
const LOCAL: Readonly<Record<string, object>> = {
  plugins: { plugins: ['/tmp/evil.js'] },
  'plugins by an object': { plugins: [{ use: 'data:text/javascript,process.exit(1)', isolation: 'in-process' }] },
  'the isolation of plugins': { isolation: { without_sandbox: 'run-with-open-network' } },
  'code of workflows': { workflows: { code: ['/tmp/evil.ts'] } },
  'folders of workflows': { workflows: { roots: ['/etc'] } },
  'secrets of workflows': { workflows: { secrets: { A: { env: 'SVC_SECRETS_KEY' } } } },
  'workflows that tools write': { workflows: { writable_by_tools: true } },
  'a command of an MCP server': { mcp: { clients: [{ name: 'evil', command: 'sh', args: ['-c', 'touch /tmp/svc-evil'] }] } },
  'stdio servers over HTTP': { mcp: { allow_stdio_over_http: true } },
  'addresses that tools reach': { tools: { web: { allow: ['127.0.0.1'] } } },
  'addresses that webhooks reach': { webhooks: { allow: ['10.0.0.1'] } },
  'the address of the server': { server: { host: '0.0.0.0' } },
  'the origins of pages': { server: { cors: { origins: ['*'] } } },
  'folders of files': { tools: { files: { roots: ['/'] } } },
  'folders of git': { tools: { git: { roots: ['/'] } } },
  'hooks of repositories': { tools: { git: { trust_repositories: true } } },
  'folders of code': { tools: { code: { allowed_paths: ['/'] } } },
  'the shell': { tools: { shell: { enabled: true, commands: ['sh'] } } },
  'a file with a key': { tools: { web: { search: { api_key_file: '/etc/shadow' } } } },
  'the store': { store: { path: '/tmp/other.db' } },
  'the profiles file': { selection: { profiles_file: '/etc/passwd' } },
  'a certificate': { server: { ssl: { cert: '/etc/passwd', key: '/etc/shadow' } } },
  authentication: { server: { auth: { enabled: false } } },
  'the key of the MCP server': { mcp: { server: { auth: { required: false } } } },
  'sources of secrets': { secrets: { sources: { a: { file: '/etc/shadow' } } } },
  'a variable as the key of a provider': { providers: { remote: { api_key_env: 'SVC_SECRETS_KEY' } } },
  'the address to which a key of a provider is sent': { providers: { remote: { base_url: 'https://evil.example/v1' } } },
  'an address for the default key': { providers: { any: { type: 'openai', base_url: 'https://evil.example/v1' } } },
  'the address of a search service': { tools: { web: { search: { url: 'https://evil.example/{query}' } } } },
  'a value that refers to a secret': { tools: { web: { user_agent: '${secret:db_password}' } } },
  'a list that refers to a secret': { server: { cors: { origins: ['https://${secret:db_password}'] } } },
  'a package of a provider': { providers: { any: { type: 'ai-sdk', package: '/tmp/evil' } } },
  'a provider whose name is its type': { providers: { 'ai-sdk': { package: 'evil' } } },
  'a provider of a plugin that is not there': { providers: { any: { type: 'evil-plugin' } } },
  'the removal of a variable': { providers: { remote: { api_key_env: null } } },
  'the removal of everything around it': { providers: { remote: null } },
}
// biome-ignore-end lint/suspicious/noTemplateCurlyInString: see above

/** Drafts with other problems. */
const WRONG: Readonly<Record<string, readonly [values: object, path: string]>> = {
  'a port that is text': [{ server: { port: 'http' } }, 'server.port'],
  'an unknown key': [{ server: { prot: 1 } }, 'server.prot'],
  'an unknown section': [{ sever: { port: 1 } }, 'sever'],
  'a section that is a list': [{ server: [] }, 'server'],
  'a number of workers of zero': [{ server: { workers: 0 } }, 'server.workers'],
  'a level that is none': [{ log: { level: 'loud' } }, 'log.level'],
  'a constructor': [
    { models: { aliases: { constructor: { provider: 'local', model: 'local-1' } } } },
    'models.aliases.constructor',
  ],
  'an alias without a model': [{ models: { aliases: { slow: { provider: 'local' } } } }, 'models.aliases.slow.model'],
}

describe('the management API of the configuration', () => {
  let home: string
  let file: string
  let server: Managed & AsyncDisposable
  before(async () => {
    home = await mkdtemp(join(tmpdir(), 'svc-config-api-'))
    file = join(home, 'svc.config.yaml')
    server = await startManaged(home, FIRST, { SVC_SERVER__MAX_CONNECTIONS: '500', REMOTE_KEY: 'a-key-of-a-provider' })
  })
  after(async () => {
    await server?.[Symbol.asyncDispose]()
    await rm(home, { recursive: true, force: true })
  })
  const read = () => server.admin.expect<Config>(200, 'GET', CONFIG)
  const version = async () => (await read()).file.version
  const valueOf = ({ values }: Config, key: string) => values.find(value => value.key === key)
  const change = async (values: object, etag?: string) =>
    server.admin.send('PATCH', CONFIG, { values }, { 'if-match': etag ?? `"${await version()}"` })

  describe('attacks', () => {
    for (const [what, values] of Object.entries(LOCAL))
      it(`cannot change ${what}`, async () => {
        const before = await readFile(file, 'utf8')
        const { ok, problems } = await server.admin.expect<Checked>(200, 'POST', `${CONFIG}/check`, { values })
        expect(ok).to.equal(false)
        for (const problem of problems) expect(problem.code, JSON.stringify(problem)).to.equal('CONFIG_KEY_LOCAL')
        expect(problems[0]!.message).to.include(problems[0]!.path!)
        expect(problems[0]!.hint).to.include('on the machine')
        const refused = await change(values)
        expect(refused.status, refused.text).to.equal(400)
        const { details } = refused.body as { details: { problems: Problem[] } }
        expect(details.problems.map(({ path }) => path)).to.deep.equal(problems.map(({ path }) => path))
        expect(await readFile(file, 'utf8')).to.equal(before)
        expect(existsSync('/tmp/svc-evil')).to.equal(false)
      })

    for (const [what, [values, path]] of Object.entries(WRONG))
      it(`cannot set ${what}`, async () => {
        const before = await readFile(file, 'utf8')
        const { problems } = await server.admin.expect<Checked>(200, 'POST', `${CONFIG}/check`, { values })
        expect(problems.map(problem => problem.path)).to.include(path)
        expect((await change(values)).status).to.equal(400)
        expect(await readFile(file, 'utf8')).to.equal(before)
        expect(Object.hasOwn(Object.prototype, 'polluted')).to.equal(false)
      })

    it('finds keys of the prototype, wherever they are', async () => {
      for (const text of [
        '__proto__: { polluted: true }',
        'server: { __proto__: { port: 1 } }',
        'models: { aliases: { prototype: {} } }',
      ]) {
        const { problems } = await server.admin.expect<Checked>(200, 'POST', `${CONFIG}/check`, { text })
        expect(
          problems.map(({ code }) => code),
          text
        ).to.deep.equal(['CONFIG_UNKNOWN_KEY'])
        expect(problems[0]!.path).to.match(/proto/)
      }
      // in JSON the server drops them
      const values = JSON.parse(
        '{"__proto__": {"plugins": ["/tmp/evil.js"]}, "log": {"__proto__": {"level": "debug"}}}'
      ) as object
      const answer = await change(values)
      expect(answer.status, answer.text).to.be.oneOf([200, 400])
      expect(await readFile(file, 'utf8')).to.not.include('proto')
      expect(Object.hasOwn(Object.prototype, 'polluted')).to.equal(false)
    })

    it('survives 10^5 labels, and drafts that are deep, long or expand', async () => {
      const { admin } = server
      const labels = Object.fromEntries(Array.from({ length: 100_000 }, (_, at) => [`label-${at}`, at]))
      for (const values of [
        labels,
        { models: { aliases: labels } },
        { server: { cors: { origins: Array(90_000).fill('a') } } },
      ]) {
        const began = performance.now()
        const answer = await admin.send('POST', `${CONFIG}/check`, { values })
        // the server refuses bodies with so many values, or the check does
        expect(answer.status, answer.text.slice(0, 200)).to.be.oneOf([200, 413])
        if (answer.status === 200)
          expect((answer.body as Checked).problems.map(({ code }) => code)).to.deep.equal(['CONFIG_TOO_LARGE'])
        expect(performance.now() - began).to.be.lessThan(10_000)
      }
      const many = { models: { aliases: Object.fromEntries(Array.from({ length: 4_000 }, (_, at) => [`label-${at}`, at])) } }
      const { problems } = await admin.expect<Checked>(200, 'POST', `${CONFIG}/check`, { values: many })
      expect(problems.length).to.equal(50)
      const lines = Array.from({ length: 7_000 }, (_, at) => `k${at}: 1`).join('\n')
      expect((await admin.expect<Checked>(200, 'POST', `${CONFIG}/check`, { text: lines })).problems).to.have.length(1)
      const bomb = `a: &a [x,x,x,x,x,x,x,x,x]\n${Array.from({ length: 9 }, (_, at) => `${'bcdefghij'[at]}: &${'bcdefghij'[at]} [${Array(9).fill(`*${'abcdefghi'[at]}`).join(',')}]`).join('\n')}\n`
      for (const text of [
        bomb,
        '['.repeat(60_000),
        'a: '.repeat(20_000),
        '!!js/function "function(){}"',
        'a: !!python/object:os.system "x"',
        'a: 1\na: 2',
        '\u0000',
        '- 1',
        '42',
        'a: *nothing',
      ]) {
        const answer = await admin.send('POST', `${CONFIG}/check`, { text })
        expect(answer.status, `${text.slice(0, 30)}: ${answer.text.slice(0, 300)}`).to.equal(200)
        expect((answer.body as Checked).ok, text.slice(0, 30)).to.equal(false)
      }
      await admin.refused(400, 'INVALID_VALUE', 'POST', `${CONFIG}/check`, { text: 'a'.repeat(65_537) })
      expect((await admin.send('GET', '/health')).status).to.equal(200)
    })

    it('executes and imports nothing of a draft as text', async () => {
      const marker = join(home, 'marker')
      const plugin = join(home, 'evil.mjs')
      await writeFile(
        plugin,
        `import { writeFileSync } from 'node:fs'\nwriteFileSync(${JSON.stringify(marker)}, '')\nexport default {}\n`
      )
      for (const text of [`plugins: [${plugin}]\n`, `$import: ${plugin}\n`, `"$import": [${plugin}]\nlog: { level: info }\n`]) {
        const { ok } = await server.admin.expect<Checked>(200, 'POST', `${CONFIG}/check`, { text })
        expect(ok, text).to.equal(false)
      }
      expect(existsSync(marker)).to.equal(false)
    })

    it('reads a draft as the start reads the file, whatever other parsers find in it', async () => {
      const { admin } = server
      const check = (draft: object) => admin.expect<Checked>(200, 'POST', `${CONFIG}/check`, draft)
      // merge keys
      for (const text of [
        'base: &b { plugins: [/tmp/evil.js] }\n<<: *b\n',
        '? <<\n: { plugins: [/tmp/evil.js] }\n',
        '"<<": { mcp: { clients: [] } }\n',
      ])
        expect((await check({ text })).ok, text).to.equal(false)
      expect((await check({ values: { '<<': { plugins: ['/tmp/evil.js'] } } })).ok).to.equal(false)
      expect((await check({ values: { models: { aliases: { '<<': { provider: 'local', model: 'local-1' } } } } })).ok).to.equal(
        false
      )
      // texts that look like other values stay texts
      const agents = ['2020-01-01', '0b11', '1_000', 'yes', '~', '0x1F', '*x', '!!js', '- a', '1e3', '.inf', 'null']
      for (const agent of agents) {
        const answer = await change({ tools: { web: { user_agent: agent } } })
        expect(answer.status, `${agent}: ${answer.text}`).to.equal(200)
        expect((await check({ text: await readFile(file, 'utf8') })).problems, agent).to.deep.equal([])
      }
      expect((await change({ tools: { web: { user_agent: null } } })).status).to.equal(200)
    })

    it('refuses stale, weak, foreign and missing versions', async () => {
      const { admin } = server
      const values = { log: { level: 'info' } }
      const etag = `"${await version()}"`
      await admin.refused(400, 'MISSING_FIELD', 'PATCH', CONFIG, { values })
      await admin.refused(400, 'INVALID_VALUE', 'PATCH', CONFIG, { values }, { 'if-match': 'abc' })
      await admin.refused(412, 'PRECONDITION_FAILED', 'PATCH', CONFIG, { values }, { 'if-match': `W/${etag}` })
      await admin.refused(412, 'PRECONDITION_FAILED', 'PATCH', CONFIG, { values }, { 'if-match': '"none"' })
      await writeFile(file, `${await readFile(file, 'utf8')}# a person was here\n`)
      await admin.refused(412, 'PRECONDITION_FAILED', 'PATCH', CONFIG, { values }, { 'if-match': etag })
      expect(await readFile(file, 'utf8')).to.match(/# a person was here\n$/)
    })

    it('lets only one of several changes of the same version win, whichever workers they reach', async () => {
      const etag = `"${await version()}"`
      const answers = await Promise.all(
        Array.from({ length: 8 }, (_, at) => change({ server: { keep_alive_ms: 5_000 + at } }, etag))
      )
      expect(answers.map(({ status }) => status)).to.have.members([200, ...Array(7).fill(412)])
      expect((await readdir(home)).filter(name => name.startsWith('svc.config.yaml.')).toSorted()).to.deep.equal([
        'svc.config.yaml.lock',
      ])
    })

    it('does not follow a link out of the home', async () => {
      const outside = join(await mkdtemp(join(tmpdir(), 'svc-outside-')), 'svc.config.yaml')
      const text = await readFile(file, 'utf8')
      await writeFile(outside, text)
      await unlink(file)
      await symlink(outside, file)
      try {
        const refused = await server.admin.send('PATCH', CONFIG, { values: { log: { level: 'warn' } } }, { 'if-match': '*' })
        expect(refused.status, refused.text).to.equal(400)
        expect(await readFile(outside, 'utf8')).to.equal(text)
      } finally {
        await unlink(file)
        await writeFile(file, text)
      }
    })

    it('does not write over a configuration that is code', () =>
      inNewHome(async other => {
        await using coded = await startManaged(other, 'log: { level: info }\n')
        await unlink(join(other, 'svc.config.yaml'))
        await writeFile(join(other, 'svc.config.ts'), 'export default {}\n')
        const { file: state } = await coded.admin.expect<Config>(200, 'GET', CONFIG)
        expect(state.locked).to.include('svc.config.ts')
        const refused = await coded.admin.send('PATCH', CONFIG, { values: { log: { level: 'warn' } } }, { 'if-match': '*' })
        expect([refused.status, existsSync(join(other, 'svc.config.yaml'))]).to.deep.equal([400, false])
      }))

    it('requires the scopes', async () => {
      const { reader, unfit } = server
      for (const path of [CONFIG, `${CONFIG}/schema`]) await unfit.refused(403, 'FORBIDDEN', 'GET', path)
      await reader.refused(403, 'FORBIDDEN', 'POST', `${CONFIG}/check`, { values: {} })
      await reader.refused(403, 'FORBIDDEN', 'PATCH', CONFIG, { values: {} }, { 'if-match': '*' })
      await reader.refused(403, 'FORBIDDEN', 'POST', '/api/v1/reload')
    })

    const bad: Readonly<Record<string, readonly [code: string, method: string, path: string, body?: unknown]>> = {
      'values and text': ['INVALID_VALUE', 'POST', `${CONFIG}/check`, { values: {}, text: '' }],
      'neither values nor text': ['INVALID_VALUE', 'POST', `${CONFIG}/check`, {}],
      'values as a list': ['INVALID_VALUE', 'POST', `${CONFIG}/check`, { values: [] }],
      'text as a number': ['INVALID_VALUE', 'POST', `${CONFIG}/check`, { text: 1 }],
      'another file': ['INVALID_VALUE', 'POST', `${CONFIG}/check`, { values: {}, file: '/etc/passwd' }],
      'a change by text': ['MISSING_FIELD', 'PATCH', CONFIG, { text: 'log: {}' }],
      'a parameter that is none': ['INVALID_VALUE', 'GET', `${CONFIG}?secrets=true`],
      'an empty key': ['INVALID_VALUE', 'GET', `${CONFIG}?key=`],
    }
    for (const [what, [code, method, path, body]] of Object.entries(bad))
      it(`refuses ${what}`, () => server.admin.refused(400, code, method, path, body, { 'if-match': '*' }))

    it('names a reason for each key that could name code, a command, a path or a credential', async () => {
      const { values } = await read()
      const doubtful = /path|file|folder|root|command|code|package|env$|args|auth|secret|cert|isolation|plugins/i
      const harmless = [
        /^(tools\.code|tools\.files|sandbox|jobs|workflows|tools\.search|traces)\.(?!.*(path|root|code$|secrets$))/,
        /^tools\.search\.max_file_bytes$/,
        /^tools\.code\.filesystem_readonly$/,
      ]
      const open = values.filter(
        ({ key, local }) => local === null && doubtful.test(key) && !harmless.some(pattern => pattern.test(key))
      )
      expect(open.map(({ key }) => key)).to.deep.equal([])
    })
  })

  it('shows each value with its source from every worker, without secrets and paths', async () => {
    const state = (await tenTimes(server.reader, CONFIG)) as Config
    expect(valueOf(state, 'server.body_limit')).to.deep.include({
      value: 2_000_000,
      source: { kind: 'home', name: '<svc home>/svc.config.yaml' },
      local: null,
      in_file: true,
    })
    expect(valueOf(state, 'server.max_connections')).to.deep.include({
      value: 500,
      source: { kind: 'environment', name: 'SVC_SERVER__MAX_CONNECTIONS' },
      in_file: false,
    })
    expect(valueOf(state, 'server.headers_timeout_ms')!.source.kind).to.equal('default')
    expect(valueOf(state, 'server.workers')).to.deep.include({ value: 2, source: { kind: 'flags', name: null } })
    expect(valueOf(state, 'models.aliases.fast.model')!.keys).to.deep.equal(['models', 'aliases', 'fast', 'model'])
    expect(state.plugins.map(({ name }) => name)).to.include('@svc/plugin-http')
    const text = JSON.stringify(state)
    for (const hidden of [home, 'a-key-of-a-provider', 'the-key-of-the-operator']) expect(text).to.not.include(hidden)
    const { values, plugins } = await server.reader.expect<Config>(200, 'GET', `${CONFIG}?key=server.cors`)
    expect(values.every(({ key }) => key.startsWith('server.cors.'))).to.equal(true)
    expect([values.length > 3, plugins]).to.deep.equal([true, []])
    expect((await server.reader.expect<Config>(200, 'GET', `${CONFIG}?key=serv`)).values).to.deep.equal([])
  })

  it('refuses to set a key that the environment or a flag overrides', async () => {
    const before = await readFile(file, 'utf8')
    for (const [values, path, hint] of [
      [{ server: { max_connections: 600 } }, 'server.max_connections', /^Unset SVC_SERVER__MAX_CONNECTIONS/],
      [{ server: { workers: 3 } }, 'server.workers', /^Restart the server without the flag/],
    ] as const) {
      const { problems } = await server.admin.expect<Checked>(200, 'POST', `${CONFIG}/check`, { values })
      expect(problems.map(({ code }) => code)).to.deep.equal(['CONFIG_KEY_OVERRIDDEN'])
      expect(problems[0]).to.include({ path }).and.to.have.property('hint').match(hint)
      expect((await change(values)).status).to.equal(400)
    }
    expect(await readFile(file, 'utf8')).to.equal(before)
  })

  it('refuses to set a key that the file of the project overrides, and removes one without effect', () =>
    inNewHome(async other => {
      const project = await mkdtemp(join(tmpdir(), 'svc-config-project-'))
      await writeFile(join(project, 'svc.config.yaml'), 'log: { level: warn }\n')
      await writeFile(join(other, 'svc.config.yaml'), 'log: { level: debug }\n')
      await using service = await startService({ home: other, cwd: project })
      const admin = callerOf(service.url, '')
      const { values, file: state } = await admin.expect<Config>(200, 'GET', CONFIG)
      expect(valueOf({ values, plugins: [], file: state }, 'log.level')).to.deep.include({
        value: 'warn',
        source: { kind: 'file', name: './svc.config.yaml' },
        in_file: true,
      })
      const send = (level: string | null) =>
        admin.send('PATCH', CONFIG, { values: { log: { level } } }, { 'if-match': `"${state.version}"` })
      const refused = await send('info')
      expect(refused.status, refused.text).to.equal(400)
      const { problems } = (refused.body as { details: { problems: Problem[] } }).details
      expect(problems[0]).to.deep.include({ code: 'CONFIG_KEY_OVERRIDDEN', path: 'log.level', where: 'svc.config.yaml:1' })
      expect(problems[0]!.message).to.equal(
        'log.level would have no effect in the file of the svc home, because the configuration file ./svc.config.yaml overrides it'
      )
      expect(refused.text).to.not.include(project)
      expect((await send(null)).status).to.equal(200)
      expect(await readFile(join(other, 'svc.config.yaml'), 'utf8')).to.not.include('debug')
      await rm(project, { recursive: true, force: true })
    }))

  it('has the schema that the command line writes', async () => {
    const schema = await server.reader.expect<object>(200, 'GET', `${CONFIG}/schema`)
    const { out } = await runSvc(['config', 'schema'], { home, env: { REMOTE_KEY: 'x' }, share: true })
    expect(schema).to.deep.equal(JSON.parse(out))
  })

  it('checks a good draft with line and hint for a bad one', async () => {
    const { admin } = server
    const text = await readFile(file, 'utf8')
    const good = await admin.expect<Checked>(200, 'POST', `${CONFIG}/check`, { text })
    expect([good.ok, good.problems]).to.deep.equal([true, []])
    expect(good.unchecked.join('\n')).to.include('what the').and.include('plugins check when they start')
    const bad = text.replace('body_limit: 2000000', 'body_limt: 2000000')
    const { problems } = await admin.expect<Checked>(200, 'POST', `${CONFIG}/check`, { text: bad })
    expect(problems[0]).to.deep.include({ code: 'CONFIG_UNKNOWN_KEY', path: 'server.body_limt', where: 'svc.config.yaml:4' })
    expect(problems[0]!.hint).to.include('body_limit')
    // a provider whose plugin no entry uses yet
    const values = { providers: { claude: { type: 'anthropic', max_retries: 'x' } } }
    expect((await admin.expect<Checked>(200, 'POST', `${CONFIG}/check`, { values })).ok).to.equal(false)
  })

  it('lets the plugins check a draft, and saves none that they refuse', async () => {
    const drafts: [object, RegExp, string][] = [
      [{ schedules: { entries: { bad: { cron: '0 25 * * *', kind: 'x' } } } }, /invalid hour "25"/, '@svc/plugin-schedules'],
      [{ schedules: { time_zone: 'Europe/Berln' } }, /time_zone/, '@svc/plugin-schedules'],
      [{ server: { body_limit: 1 } }, /body_limit must be >= 16384/, '@svc/plugin-http'],
      [{ rest: { chat_body_limit: 1 } }, /chat_body_limit must be >= 16384/, '@svc/plugin-rest'],
      [{ server: { request_timeout_ms: 1 } }, /request_timeout_ms must be >= 100/, '@svc/plugin-http'],
      [{ server: { header_limit: 1024 } }, /header_limit must be >= 4096/, '@svc/plugin-http'],
      [{ mcp: { server: { enabled: true, tools: ['time_noww'] } } }, /no plugin declares this tool/, '@svc/plugin-mcp-server'],
    ]
    const before = await readFile(file, 'utf8')
    for (const [values, message, plugin] of drafts) {
      const found = await server.admin.expect<Checked>(200, 'POST', `${CONFIG}/check`, { values })
      expect(found.ok, JSON.stringify(values)).to.equal(false)
      expect(found.problems[0]).to.include({ plugin }).and.to.have.property('message').match(message)
      const answer = await change(values)
      expect(answer.status, answer.text).to.equal(400)
      const { details } = answer.body as { details: { problems: Problem[] } }
      expect(details.problems[0]!.message).to.match(message)
    }
    expect(await readFile(file, 'utf8')).to.equal(before)
  })

  it('changes keys, keeps comments, and is in force after the reload, which cuts no request', async () => {
    const { admin, url } = server
    const before = await stat(file)
    const answer = await change({
      server: { body_limit: 1_500_000, heartbeat_ms: 9_000 },
      models: { aliases: { quick: { provider: 'local', model: 'local-1' } } },
    })
    expect(answer.status, answer.text).to.equal(200)
    const {
      changed,
      reload_required: isRequired,
      version: next,
      hint,
    } = answer.body as { changed: object[]; reload_required: boolean; version: string; hint: string }
    expect(hint).to.include('POST /api/v1/reload')
    expect(changed).to.deep.include({ key: 'server.body_limit', before: 2_000_000, after: 1_500_000 })
    expect([isRequired, answer.headers.etag]).to.deep.equal([true, `"${next}"`])
    const text = await readFile(file, 'utf8')
    expect(text)
      .to.include('# written by a person')
      .and.include('# the limit of bodies')
      .and.include('body_limit: 1500000 # bytes')
    expect((await stat(file)).mode & 0o077).to.equal(0)
    expect((await stat(file)).ino).to.not.equal(before.ino)
    const pending = (await tenTimes(admin, CONFIG)) as Config
    expect(pending.file.is_pending).to.equal(true)
    expect(valueOf(pending, 'server.body_limit')!.value).to.equal(2_000_000)

    const slow = admin.send('POST', '/api/v1/chat', { message: 'hi' })
    const reloaded = await admin.expect<{
      reloaded: boolean
      problems: unknown[]
      workers: { generation: number; state: string }[]
    }>(200, 'POST', '/api/v1/reload')
    expect([reloaded.reloaded, reloaded.problems]).to.deep.equal([true, []])
    expect(reloaded.workers.filter(({ generation, state }) => generation === 1 && state === 'ready')).to.have.length(2)
    expect((await slow).status).to.equal(200)
    const now = (await tenTimes(admin, CONFIG)) as Config
    expect(now.file.is_pending).to.equal(false)
    expect(valueOf(now, 'server.body_limit')!.value).to.equal(1_500_000)
    expect(url).to.equal(server.url)
    const [first] = await changesOf(server, 'config')
    expect(first).to.deep.include({ change: 'config_file_changed', principal: 'api-key' })
    expect((await changesOf(server, 'server'))[0]).to.deep.include({ change: 'reload_requested', principal: 'api-key' })
  })

  it('shares a reload between clients, and lets open streams end in order', async () => {
    const client = createClient(server.url)
    const headers = { authorization: `Bearer ${server.token}` }
    const stream = await client.stream({ method: 'GET', path: '/api/v1/events', headers })
    try {
      expect(stream.status).to.equal(200)
      const reload = () => server.admin.expect<{ reloaded: boolean }>(200, 'POST', '/api/v1/reload')
      const answers = await Promise.all([reload(), reload(), reload()])
      expect(answers.map(({ reloaded }) => reloaded)).to.deep.equal([true, true, true])
      // the old worker says when to connect again, and does not cut the connection
      expect((await stream.rest()).text).to.be.a('string')
      for (let at = 0; at < 4; at++) expect((await server.admin.send('GET', CONFIG)).status).to.equal(200)
    } finally {
      client.close()
    }
  })

  it('removes a key with null, and says when nothing has changed', async () => {
    const removed = await change({ models: { aliases: { quick: null } } })
    expect(removed.status, removed.text).to.equal(200)
    expect(await readFile(file, 'utf8')).to.not.include('quick')
    const same = await change({ models: { aliases: { quick: null } } })
    expect(same.body as { changed: unknown[]; reload_required: boolean }).to.deep.include({ changed: [], reload_required: false })
  })

  it('shows no secret of a change, in no answer, event or log', async () => {
    const changed = await change({ providers: { remote: { headers: { 'x-tenant': 'a-hidden-value' } } } })
    expect(changed.status, changed.text).to.equal(200)
    expect((changed.body as { changed: object[] }).changed).to.deep.equal([
      { key: 'providers.remote.headers.x-tenant', before: null, after: '(secret)' },
    ])
    expect(await readFile(file, 'utf8')).to.include('a-hidden-value')
    await changesOf(server, 'config', 3)
    for (const text of [(await server.admin.send('GET', CONFIG)).text, server.service.output()])
      expect(text).to.not.include('a-hidden-value')
    expect((await change({ providers: { remote: { headers: null } } })).status).to.equal(200)
  })

  it('reports why new workers fail to start, and the old ones keep serving', async () => {
    const text = await readFile(file, 'utf8')
    await writeFile(file, `${text}nothing: { here: 1 }\n`)
    try {
      const answer = await server.admin.refused(409, 'CONFLICT', 'POST', '/api/v1/reload')
      const { error, details } = answer.body as { error: string; details: { reason: string; problems: Problem[] } }
      expect(error).to.match(/^the new workers failed to start, so the old ones keep serving: /)
      const { problems } = details
      expect(problems[0]!.code).to.equal('CONFIG_UNKNOWN_KEY')
      expect(problems[0]!.where).to.match(/^(<svc home>\/)?svc\.config\.yaml:\d+$/)
      expect(JSON.stringify(problems)).to.not.include(home)
      for (let at = 0; at < 4; at++) expect((await server.admin.send('GET', '/health')).status).to.equal(200)
    } finally {
      await writeFile(file, text)
    }
  })
})
