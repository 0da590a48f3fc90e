import { chmod, mkdir, mkdtemp, readdir, readFile, readlink, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { runCommand } from '@svc/cli/command'
import { svcError, systemContext } from '@svc/core'
import { Http, type ServerClient } from '@svc/core/contracts'
import { testHost } from '@svc/testing'
import { expect } from 'chai'
import { parse as parseToml } from 'smol-toml'
import { parse as parseYaml } from 'yaml'
import { CHAT_PLUGINS, pluginFolder } from '../../../../test/support/plugin-folder.ts'
import { Connect } from '../src/commands.ts'

const PLUGINS = ['http', 'rest', 'openai-api', 'anthropic-api', 'gemini-api', ...CHAT_PLUGINS, 'provider-local']

/** The variables that move the folders of clients. */
const MOVES = [
  'CODEX_HOME',
  'CLAUDE_CONFIG_DIR',
  'XDG_CONFIG_HOME',
  'CLINE_DATA_DIR',
  'CONTINUE_GLOBAL_DIR',
  'PI_CODING_AGENT_DIR',
]
const KEY = 'sk-canary-of-connect'

type Tree = ReturnType<typeof JSON.parse>

const signal = new AbortController().signal
let host: Awaited<ReturnType<typeof testHost>>
let url: string
let home: string
let saved: NodeJS.ProcessEnv

const text = (path: string) => readFile(join(home, path), 'utf8')
const json = async (path: string): Promise<Tree> => JSON.parse(await text(path))
const put = async (path: string, content: string | Uint8Array) => {
  await mkdir(dirname(join(home, path)), { recursive: true })
  await writeFile(join(home, path), content)
}
const filesIn = async (path: string) => (await readdir(join(home, path))).sort()

/** A client of the server, with the error codes of svc's own, which only `cli` has. */
const clientOf = (address: string): ServerClient => ({
  url: address,
  async request<T>(method: string, path: string) {
    const response = await fetch(address + path, { method }).catch((cause: unknown) => {
      throw svcError('SERVER_UNREACHABLE', 'nothing listens there', { cause })
    })
    if (!response.ok) throw svcError(`HTTP_${response.status}`, await response.text())
    return (await response.json()) as T
  },
  stream: () => {
    throw new Error('the command streams nothing')
  },
  text: () => {
    throw new Error('the command downloads nothing')
  },
})

/** Runs the command. */
async function connect(...argv: readonly string[]) {
  try {
    const { out, err } = await runCommand(Connect, argv, { server: async () => clientOf(url) })
    return { code: 0, out: out.join('\n'), err: err.join('\n'), hint: '' }
  } catch (error) {
    const { code, message, hint = '' } = error as { code: string; message: string; hint?: string }
    return { code, out: '', err: message, hint }
  }
}

/** The content below the line with the name of the file. */
const body = (out: string): Tree => JSON.parse(out.slice(out.indexOf('\n')))
const shellIn = (out: string) => out.split('\n# shell\n')

const CHECKS: Readonly<Record<string, (out: string) => void>> = {
  codex: out =>
    expect(parseToml(out)).to.deep.equal({
      model: 'local/local-1',
      model_provider: 'svc',
      model_providers: { svc: { name: 'svc', base_url: `${url}/v1`, env_key: 'SVC_API_KEY', wire_api: 'responses' } },
    }),
  'claude-code': out => {
    const { env, apiKeyHelper } = body(out)
    expect(env).to.include({ ANTHROPIC_BASE_URL: url, ANTHROPIC_MODEL: 'local/local-1' })
    expect(apiKeyHelper).to.equal('printenv SVC_API_KEY')
  },
  opencode: out => {
    const { provider, model, small_model: small } = body(out)
    expect([model, small]).to.deep.equal(['svc/local/local-1', 'svc/local/local-1'])
    expect(provider.svc.options).to.deep.equal({ baseURL: `${url}/v1`, apiKey: '{env:SVC_API_KEY}' })
    expect(provider.svc.models['local/local-1'].limit).to.deep.equal({ context: 1_048_576, output: 4096 })
  },
  cline: out => {
    const [file = '', shell] = shellIn(out)
    const { lastUsedProvider, providers } = body(file)
    expect(lastUsedProvider).to.equal('openai-compatible')
    expect(providers['openai-compatible'].settings).to.include({ baseUrl: `${url}/v1`, model: 'local/local-1' })
    expect(shell).to.equal('export OPENAI_API_KEY="$SVC_API_KEY"')
  },
  continue: out => {
    const { models } = parseYaml(out)
    expect(models).to.have.length(1)
    expect(models[0]).to.include({ model: 'local/local-1', apiBase: `${url}/v1`, apiKey: '${{ secrets.SVC_API_KEY }}' })
  },
  pi: out => {
    const [, models = '', settings = ''] = out.split(/^# .*$/m)
    expect(JSON.parse(models).providers.svc).to.include({ baseUrl: `${url}/v1`, apiKey: 'SVC_API_KEY' })
    expect(JSON.parse(settings)).to.deep.equal({ defaultProvider: 'svc', defaultModel: 'local/local-1' })
  },
  qwen: out => {
    const { modelProviders, security, model } = body(out)
    expect(modelProviders.openai).to.deep.equal([
      { id: 'local/local-1', name: 'svc', baseUrl: `${url}/v1`, envKey: 'SVC_API_KEY' },
    ])
    expect([security.auth.selectedType, model.name]).to.deep.equal(['openai', 'local/local-1'])
  },
  gemini: out => {
    const [file = '', shell] = shellIn(out)
    expect(body(file)).to.deep.equal({
      security: { auth: { selectedType: 'gemini-api-key' } },
      model: { name: 'local/local-1' },
    })
    expect(shell).to.equal(`export GOOGLE_GEMINI_BASE_URL='${url}'\nexport GEMINI_API_KEY="$SVC_API_KEY"`)
  },
}

describe('svc connect', () => {
  before(async () => {
    host = await testHost(PLUGINS.map(pluginFolder), {
      config: {
        server: { port: 0 },
        providers: { local: {} },
        models: { aliases: { fast: { provider: 'local', model: 'local-small' } } },
      },
    })
    url = (await host.service(Http).address(systemContext(signal)))!.url
  })
  after(() => host.close())

  beforeEach(async () => {
    saved = { ...process.env }
    home = await mkdtemp(join(tmpdir(), 'svc-connect-'))
    process.env.HOME = home
    process.env.SVC_API_KEY = KEY
    for (const name of MOVES) delete process.env[name]
  })
  afterEach(async () => {
    for (const name of ['HOME', 'SVC_API_KEY', ...MOVES])
      if (saved[name] === undefined) delete process.env[name]
      else process.env[name] = saved[name]
    await rm(home, { recursive: true })
  })

  for (const [name, check] of Object.entries(CHECKS))
    it(`shows the settings of ${name} and writes nothing, then writes them once and never the key`, async () => {
      const shown = await connect(name)
      expect(shown.code, shown.err).to.equal(0)
      check(shown.out)
      expect(await filesIn('')).to.deep.equal([])
      const { files } = JSON.parse((await connect(name, '--write', '--json')).out) as { files: { path: string; text: string }[] }
      for (const file of files)
        expect(await readFile(file.path, 'utf8'))
          .to.equal(file.text)
          .and.not.include(KEY)
      const again = JSON.parse((await connect(name, '--write', '--json')).out)
      expect(again.files.map(({ written }: { written: boolean }) => written)).to.not.include(true)
      expect(await readdir(dirname(files[0]!.path))).to.have.length(files.length)
      expect(shown.out + shown.err).to.not.include(KEY)
    })

  it('keeps the other settings, comments and the mode of a JSON file, and a copy of the old file', async () => {
    const old = '{\n\t// mine\n\t"theme": "dark",\n\t"big": 12345678901234567890,\n\t"env": { "A": "1" }, /* tail */\n}\n'
    await put('.claude/settings.json', old)
    await chmod(join(home, '.claude/settings.json'), 0o640)
    expect((await connect('claude-code', '--write')).err).to.match(/wrote .*; the old file is .*\.bak/)
    const now = await text('.claude/settings.json')
    for (const part of ['// mine', '12345678901234567890', '"A": "1"', '/* tail */', '"ANTHROPIC_BASE_URL"'])
      expect(now).to.include(part)
    expect((await stat(join(home, '.claude/settings.json'))).mode & 0o777).to.equal(0o640)
    const [copy = ''] = (await filesIn('.claude')).filter(name => name.endsWith('.bak'))
    expect(await text(`.claude/${copy}`)).to.equal(old)
  })

  it('adds to a TOML file, before and after what is there, and replaces its own table later', async () => {
    const old = '# mine\napproval_policy = "never"\n\n[model_providers.other]\nname = "other" # stays\n[tui]\nx = 1'
    await put('.codex/config.toml', old)
    await connect('codex', '--write')
    await put('.codex/config.toml', `${(await text('.codex/config.toml')).replace('[tui]', '[tui]\ny = 2')}\n[last]\nz = 3\n`)
    expect(await connect('codex', '--write', '--model', 'profile:default', '--key-env', 'OTHER')).to.include({ code: 0 })
    const now = await text('.codex/config.toml')
    expect(now).to.include('# mine\napproval_policy = "never"').and.include('name = "other" # stays')
    expect(parseToml(now)).to.deep.equal({
      approval_policy: 'never',
      last: { z: 3 },
      model: 'profile:default',
      model_provider: 'svc',
      model_providers: {
        other: { name: 'other' },
        svc: { name: 'svc', base_url: `${url}/v1`, env_key: 'OTHER', wire_api: 'responses' },
      },
      tui: { x: 1, y: 2 },
    })
  })

  it('adds its model to the lists of others, and replaces only its own', async () => {
    await put('.continue/config.yaml', '# mine\nname: team\nmodels:\n  - name: a # first\n    provider: openai\n    model: x\n')
    await put('.qwen/settings.json', '{"modelProviders": {"openai": [{"id": "x", "name": "a"}]}}')
    for (const model of ['local/local-1', 'fast', 'fast'])
      for (const client of ['continue', 'qwen'])
        expect(await connect(client, '--write', '--model', model)).to.include({ code: 0 })
    expect(await text('.continue/config.yaml'))
      .to.include('# mine')
      .and.include('# first')
    const { name, models } = parseYaml(await text('.continue/config.yaml'))
    expect([name, models.map((one: Tree) => one.model)]).to.deep.equal(['team', ['x', 'fast']])
    const { modelProviders, model } = await json('.qwen/settings.json')
    expect([modelProviders.openai.map((one: Tree) => one.id), model.name]).to.deep.equal([['x', 'fast'], 'fast'])
  })

  for (const [client, path, content, keys] of [
    ['codex', '.codex/config.toml', 'model_provider = "other"\nmodel = "gpt"\n', 'model_provider, model'],
    [
      'claude-code',
      '.claude/settings.json',
      '{"env": {"ANTHROPIC_BASE_URL": "https://secret@a.example"}}',
      'env.ANTHROPIC_BASE_URL',
    ],
    ['claude-code', '.claude/settings.json', '{"env": "all"}', 'env.ANTHROPIC_BASE_URL'],
    ['opencode', '.config/opencode/opencode.json', '{"model": "anthropic/x"}', 'model'],
    ['opencode', '.config/opencode/opencode.jsonc', '{"model": "anthropic/x", /* mine */}', 'model'],
    [
      'cline',
      '.cline/data/settings/providers.json',
      '{"providers": {"openai-compatible": {"settings": {"baseUrl": "https://a.example"}}}}',
      'providers.openai-compatible.settings.baseUrl',
    ],
    ['continue', '.continue/config.yaml', 'models: all\n', 'models.0'],
    ['pi', '.pi/agent/settings.json', '{"defaultProvider": "anthropic"}', 'defaultProvider'],
    ['qwen', '.qwen/settings.json', '{"security": {"auth": {"selectedType": "qwen-oauth"}}}', 'security.auth.selectedType'],
    ['gemini', '.gemini/settings.json', '{"model": {"name": "gemini-x"}}', 'model.name'],
  ] as const)
    it(`refuses to change ${keys} of ${client} in ${content.slice(0, 12)}…, and writes none of its files`, async () => {
      await put(path, content)
      const { code, err, hint } = await connect(client, '--write')
      expect(code, err).to.equal('CLIENT_SETTINGS_CONFLICT')
      expect(err).to.include(keys).and.not.include('secret')
      expect(hint).to.include(`svc connect ${client}`)
      expect(await text(path)).to.equal(content)
      expect(await filesIn(dirname(path))).to.have.length(1)
    })

  const bomb = `a: &a [x]\n${'bcdefghi'
    .split('')
    .map((key, at) => `${key}: &${key} [${`*${'abcdefgh'[at]},`.repeat(9)}]`)
    .join('\n')}\n`
  for (const [reason, path, client, content] of [
    ['not valid JSON', '.claude/settings.json', 'claude-code', '{"env": '],
    ['not an object', '.claude/settings.json', 'claude-code', '[1]'],
    ['not valid JSON', '.claude/settings.json', 'claude-code', '['.repeat(200_000)],
    ['more than', '.claude/settings.json', 'claude-code', `"${'x'.repeat(1024 * 1024)}"`],
    ['cannot be read', '.claude/settings.json', 'claude-code', Buffer.from([0x7b, 0xff, 0x7d])],
    ['without changing others', '.claude/settings.json', 'claude-code', '{"env": {"A": "1"}, "env": {"B": "2"}}'],
    ['not valid TOML', '.codex/config.toml', 'codex', 'model = '],
    ['without changing others', '.codex/config.toml', 'codex', "model_provider = 'svc'\na = '''\nmodel = 1\n'''\nmodel = 'b'\n"],
    ['not valid YAML', '.continue/config.yaml', 'continue', 'a: [\n'],
    ['not valid YAML', '.continue/config.yaml', 'continue', 'a: 1\na: 2\n'],
    ['not valid YAML', '.continue/config.yaml', 'continue', bomb],
  ] as const)
    it(`refuses ${path} that is ${reason}: ${String(content).slice(0, 20).replaceAll('\n', ' ')}`, async () => {
      await put(path, content)
      const { code, err } = await connect(client, '--write')
      expect(code, err).to.equal('CLIENT_FILE_INVALID')
      expect(err).to.include(reason)
      expect(Buffer.compare(await readFile(join(home, path)), Buffer.from(content))).to.equal(0)
    })

  it('takes keys of objects as text', async () => {
    await put('.claude/settings.json', '{"__proto__": {"env": {"ANTHROPIC_BASE_URL": "x"}}, "constructor": 1}')
    expect(await connect('claude-code', '--write')).to.include({ code: 0 })
    expect(await text('.claude/settings.json'))
      .to.include('"__proto__"')
      .and.include('"constructor"')
    expect(({} as Tree).env).to.equal(undefined)
  })

  it('writes through a symbolic link, and refuses one that leads nowhere and a folder', async () => {
    await put('dotfiles/claude.json', '{"a": 1}')
    await mkdir(join(home, '.claude'))
    await symlink('../dotfiles/claude.json', join(home, '.claude/settings.json'))
    expect(await connect('claude-code', '--write')).to.include({ code: 0 })
    expect(await readlink(join(home, '.claude/settings.json'))).to.equal('../dotfiles/claude.json')
    expect((await json('dotfiles/claude.json')).a).to.equal(1)
    await mkdir(join(home, '.codex/config.toml'), { recursive: true })
    await mkdir(join(home, '.qwen'))
    await symlink('nowhere', join(home, '.qwen/settings.json'))
    for (const client of ['codex', 'qwen']) expect((await connect(client, '--write')).code).to.equal('CLIENT_FILE_INVALID')
  })

  it('writes where the variables of a client put its files', async () => {
    process.env.CODEX_HOME = join(home, 'elsewhere')
    await connect('codex', '--write')
    expect(await filesIn('elsewhere')).to.deep.equal(['config.toml'])
  })

  it('refuses an unknown model with the nearest, a wrong variable, and an unknown client', async () => {
    for (const [given, near] of [
      ['profile:defalt', 'profile:default'],
      ['local/lcoal-1', 'local/local-1'],
    ])
      expect(await connect('pi', '--model', given!)).to.include({ code: 'MODEL_UNKNOWN', hint: `did you mean "${near}"?` })
    expect(await connect('pi', '--model', '')).to.include({ code: 'MODEL_UNKNOWN' })
    expect(await connect('pi', '--key-env', '$(id)')).to.include({ code: 'COMMAND_LINE_INVALID' })
    expect((await connect('pie')).err).to.include('Expected pie to be one of: codex, claude-code')
    expect(await filesIn('')).to.deep.equal([])
  })

  it('reports a server that does not serve the API of the client, and one that is not there', async () => {
    const plain = await testHost(PLUGINS.filter(name => !['anthropic-api', 'gemini-api'].includes(name)).map(pluginFolder), {
      config: { server: { port: 0 }, providers: { local: {} } },
    })
    const kept = url
    try {
      url = (await plain.service(Http).address(systemContext(signal)))!.url
      expect((await connect('claude-code')).err).to.equal('the server does not serve /v1/messages, which Claude Code needs')
      const { code, err } = await connect('gemini')
      expect(code).to.equal('ENDPOINT_MISSING')
      expect(err).to.equal('the server does not serve /v1beta/models, which Gemini CLI needs')
      url = 'http://127.0.0.1:1'
      expect(await connect('pi')).to.include({ code: 'SERVER_UNREACHABLE' })
    } finally {
      url = kept
      await plain.close()
    }
    const none: unknown = await runCommand(Connect, ['pi']).catch((error: unknown) => error)
    expect(none).to.include({ code: 'SERVER_NONE' })
  })
})
