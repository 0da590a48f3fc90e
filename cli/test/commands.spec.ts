import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { sideBySide } from '../../test/support/side-by-side.ts'
import { makeWorkspace } from './support/svc.ts'

const WEATHER = fileURLToPath(new URL('fixtures/weather', import.meta.url))
const withWeather = JSON.stringify({ plugins: [WEATHER] })
const COMMANDS = [
  ['serve'],
  ['chat'],
  ['plugins'],
  ['config', 'show'],
  ['config', 'check'],
  ['tools', 'list'],
  ['tools', 'show'],
  ['tools', 'call'],
  ['providers', 'list'],
  ['providers', 'test'],
]

describe('help', () => {
  const it = sideBySide()
  it('of svc lists the commands, and every topic with a description', async () => {
    await using workspace = await makeWorkspace()
    const { code, out } = await workspace.svc(['--help'])
    expect(code).to.equal(0)
    expect(out).to.contain('serve').and.contain('chat').and.contain('plugins').and.contain('config')
    expect((await workspace.svc([])).out).to.equal(out)
    const [, topics = ''] = /TOPICS\n((?: .*\n)+)/.exec(out) ?? []
    for (const topic of ['config', 'mcp', 'plugins', 'providers', 'store', 'teams', 'tokens', 'tools', 'workflows'])
      expect(topics).to.match(new RegExp(`^  ${topic} +[A-Z]\\w+`, 'm'))
  })

  for (const command of COMMANDS) {
    it(`of svc ${command.join(' ')} has examples`, async () => {
      await using workspace = await makeWorkspace()
      const { code, out } = await workspace.svc([...command, '--help'])
      expect(code).to.equal(0)
      expect(out).to.match(new RegExp(`EXAMPLES\\n +\\$ (.*\\| )?svc ${command.join(' ')}`))
    })
  }

  it('of svc mcp add shows both forms of its command line, as the reference does', async () => {
    await using workspace = await makeWorkspace()
    const { out } = await workspace.svc(['mcp', 'add', '--help'])
    const forms = ['svc mcp add <name> <url>', 'svc mcp add <name> -- <command> [<argument>...]']
    expect(out).to.match(/USAGE\n/)
    for (const form of forms) expect(out).to.contain(`  $ ${form}\n`)
    const reference = await readFile(new URL('../../docs/reference/commands.md', import.meta.url), 'utf8')
    expect(reference).to.contain(`\n## svc mcp add\n\nAdd an MCP server\n\n\`\`\`text\n${forms.join('\n')}\n\`\`\`\n`)
  })

  it('names the commands of a topic that plugins bring', async () => {
    await using workspace = await makeWorkspace()
    expect((await workspace.svc(['--help'])).out).to.match(/^ +tokens +Make, list and revoke access tokens/m)
    expect((await workspace.svc(['tokens', '--help'])).out).to.match(/^ +tokens create .*\n +tokens list .*\n +tokens revoke /m)
  })

  it('of svc tokens create says what its flags mean, and their defaults', async () => {
    await using workspace = await makeWorkspace()
    const { out } = await workspace.svc(['tokens', 'create', '--help'])
    expect(out.replaceAll(/\s+/g, ' ')).to.contain('[default: 30d]').and.contain('(default: all except admin)')
  })

  it('works with a broken configuration', async () => {
    await using workspace = await makeWorkspace()
    await workspace.write('svc.config.yaml', 'server: [')
    expect((await workspace.svc(['--help'])).code).to.equal(0)
    expect((await workspace.svc(['serve', '--help'])).code).to.equal(0)
  })

  it('prints the version', async () => {
    await using workspace = await makeWorkspace()
    expect((await workspace.svc(['--version'])).out).to.match(/^@svc\/cli\/\d+\.\d+\.\d+ /)
  })
})

describe('output', () => {
  const it = sideBySide()
  it('has no colour in a pipe, and with NO_COLOR', async () => {
    await using workspace = await makeWorkspace()
    for (const args of [['--help'], ['plugins'], ['config', 'show'], ['chat', 'hello'], ['serve', '--prot']]) {
      const { out, err } = await workspace.svc(args)
      expect(out + err, args.join(' ')).to.not.contain('\u001b[')
    }
  })
})

describe('a command of a plugin', () => {
  const it = sideBySide()
  it('is listed from the manifest and runs with its arguments', async () => {
    await using workspace = await makeWorkspace()
    const file = await workspace.write('svc.config.json', withWeather)
    expect((await workspace.svc(['--help', '-c', file])).out).to.contain('weather')
    expect((await workspace.svc(['weather', '--help', '-c', file])).out).to.contain('Show the weather')
    const help = (await workspace.svc(['weather', 'now', '--help', '-c', file])).out
    expect(help)
      .to.match(/ARGUMENTS\n +PLACE\.\.\. +Where\n/)
      .and.match(/--fine +Only good weather/)
      .and.match(/\$ svc weather now Oslo --fine/)
    expect(await workspace.svc(['weather', 'now', 'Oslo', '--fine'])).to.include({ code: 0, out: 'sunny in Oslo --fine\n' })
  })

  it('decides the exit code', async () => {
    await using workspace = await makeWorkspace()
    await workspace.write('svc.config.json', withWeather)
    expect(await workspace.svc(['weather', 'now', 'nowhere'])).to.include({ code: 3, out: '' })
  })

  it('gets the configured host when it asks for it', async () => {
    await using workspace = await makeWorkspace()
    await workspace.write('svc.config.json', JSON.stringify({ plugins: [WEATHER], selection: { mode: 'review' } }))
    expect(await workspace.svc(['weather', 'now', 'mode'])).to.include({ code: 0, out: 'review\n', err: '' })
  })

  it('says what is wrong with its module', async () => {
    await using workspace = await makeWorkspace()
    await workspace.write('svc.config.json', withWeather)
    const { code, err } = await workspace.svc(['broken'])
    expect(code).to.equal(1)
    expect(err).to.match(/^COMMAND_BROKEN {2}svc-plugin-weather/)
  })

  it('cannot take the name of one of svc or of another plugin, nor lack its module, and nothing of it has run', async () => {
    await using workspace = await makeWorkspace()
    const manifest = (name: string, module: string, commands: readonly string[], more: object = {}) =>
      workspace.write(
        `${name}/package.json`,
        JSON.stringify({
          name,
          type: 'module',
          exports: { '.': './index.js', './commands': module },
          svc: { api: 1, kind: 'tool', contributes: { commands, ...more } },
        })
      )
    await manifest('one', './run.js', ['serve', 'tell', 'help me'])
    await manifest('two', './gone.js', ['tell'], { tool: ['x'] })
    for (const name of ['one', 'two']) {
      await workspace.write(`${name}/index.js`, 'export default { requires: {}, optional: {}, setup() {} }')
      await workspace.write(`${name}/run.js`, 'throw new Error("it ran")')
    }
    await workspace.write('svc.config.json', JSON.stringify({ plugins: ['./one', './two'] }))
    expect((await workspace.svc(['serve', '--help'])).out).to.contain('Run the server')
    const { code, err } = await workspace.svc(['config', 'check'])
    expect(code).to.equal(1)
    expect(err)
      .to.match(/^COMMAND_TAKEN {2}one\n {2}declares the command "serve", which svc already has {3}\(package\.json:1\)/m)
      .and.match(/^COMMAND_TAKEN {2}one\n {2}declares the command "help me", which svc already has/m)
      .and.match(/^COMMAND_TAKEN {2}two\n {2}declares the command "tell", which one already has/m)
      .and.match(/^COMMAND_MODULE_MISSING {2}two\n {2}.*\.\/commands/m)
      .and.match(/^SLOT_UNKNOWN {2}two\n.*\n {2}did you mean "tools"\?/m)
      .and.not.contain('it ran')
  })

  it('cannot take a word that a plugin of svc has, unless it is that plugin', async () => {
    await using workspace = await makeWorkspace()
    const pkg = { name: 'svc-plugin-thief', exports: { '.': './index.js', './commands': './commands.js' } }
    const commands = ['chat', 'tools list', 'providers gone']
    const svc = { api: 1, kind: 'command', contributes: { commands } }
    await workspace.write('thief/package.json', JSON.stringify({ ...pkg, type: 'module', svc }))
    await workspace.write('thief/index.js', 'export default { setup() {} }')
    await workspace.write('thief/commands.js', "throw new Error('it was imported')")
    // also in the place of the plugin that has them
    for (const plugins of [['./thief'], ['./thief', { use: '@svc/plugin-chat', enabled: false }]]) {
      await workspace.write('svc.config.json', JSON.stringify({ plugins }))
      const { code, err } = await workspace.svc(['config', 'check'])
      expect(code).to.equal(1)
      for (const words of commands)
        expect(err).to.match(new RegExp(`COMMAND_TAKEN {2}svc-plugin-thief\\n.*"${words}".*@svc/plugin-chat`))
    }
    expect((await workspace.svc(['providers', 'gone'])).err).to.not.contain('it was imported')
  })

  it('names the setting that selects the plugin of a command of PostgreSQL', async () => {
    await using workspace = await makeWorkspace()
    const { code, err } = await workspace.svc(['store', 'migrate', '--json'])
    expect(code).to.equal(2)
    expect(err).to.match(
      /"svc store migrate" is a command of @svc\/plugin-store-postgres, which the configuration does not select\n *Set store\.url to postgres:/
    )
  })

  it('of PostgreSQL is in help beside those of the embedded store', async () => {
    await using workspace = await makeWorkspace()
    for (const argv of [['store', '--help'], ['store']]) {
      const { out, err } = await workspace.svc(argv)
      for (const word of ['backup', 'restore', 'init', 'migrate', 'status'])
        expect(out, err).to.match(new RegExp(`store ${word} {2,}\\w`))
    }
    expect((await workspace.svc(['store', 'migrate', '--help'])).out)
      .to.include('--from=sqlite:<file>')
      .and.include('store.url')
  })

  it('says what to use instead of a backup of the embedded store, if the store is in PostgreSQL', async () => {
    await using workspace = await makeWorkspace()
    await workspace.write('svc.config.json', JSON.stringify({ store: { url: 'postgres://svc@127.0.0.1:1/svc' } }))
    for (const word of ['backup', 'restore']) {
      const { code, err } = await workspace.svc(['store', word, 'file.db'])
      expect(code).to.equal(2)
      expect(err).to.include(`"svc store ${word}" works on the file of the embedded store`).and.include('pg_dump')
      expect(err).to.include('docs/guides/scale.md')
    }
  })

  it('shows no empty alternative in the usage of svc status', async () => {
    await using workspace = await makeWorkspace()
    const { out } = await workspace.svc(['status', '--help'])
    expect(out)
      .to.include('[--cluster | --live]')
      .and.not.match(/\| *[|\]]/)
  })

  it('is missing if the configuration disables its plugin: svc chat reports this and exits with 2', async () => {
    await using workspace = await makeWorkspace()
    const file = await workspace.write(
      'svc.config.json',
      JSON.stringify({ plugins: [{ use: '@svc/plugin-chat', enabled: false }] })
    )
    for (const words of [['chat', 'hello'], ['tools', 'list'], ['providers'], ['tools', '--help', '-c', file]])
      expect(await workspace.svc(words), words.join(' ')).to.deep.include({
        code: 2,
        out: '',
        err: `COMMAND_LINE_INVALID\n  "${words[0]}" is a command of @svc/plugin-chat, which the configuration disables\n  Remove { use: "@svc/plugin-chat", enabled: false } from "plugins". \`svc config show\` names the file\n`,
      })
    expect((await workspace.svc(['workflows', 'list'])).code).to.not.equal(2)
    await workspace.write('svc.config.json', '{}')
    expect((await workspace.svc(['chat', 'hello'])).out).to.equal('You said: hello\n')
    expect((await workspace.svc(['tools', 'lst'])).err).to.contain('did you mean "svc tools list"?')
    expect((await workspace.svc(['tools', 'list', 'more'])).err).to.contain('there is no command "tools list more"')
  })

  it('is found through the file that --config names, before and behind it, in help too', async () => {
    await using workspace = await makeWorkspace()
    await workspace.write('else/where.json', JSON.stringify({ plugins: [WEATHER], selection: { mode: 'review' } }))
    const file = 'else/where.json'
    expect(await workspace.svc(['weather', 'now', 'Oslo'])).to.include({ code: 2 })
    expect((await workspace.svc(['weather', '--help'])).err).to.contain('with --config <file>')
    for (const args of [
      ['-c', file, 'weather', 'now', 'mode'],
      ['weather', 'now', 'mode', '--config', file],
      ['weather', '-c', file, 'now', 'mode'],
      [`--config=${file}`, 'weather', 'now', 'mode'],
    ])
      expect(await workspace.svc(args), args.join(' ')).to.include({ code: 0, out: 'review\n', err: '' })
    expect((await workspace.svc(['weather', 'now', '-c', file, '--', '-c', 'x'])).out).to.equal('sunny in -c x\n')
    for (const args of [
      ['-c', file],
      ['--help', '-c', file],
      ['-c', file, '--help'],
    ])
      expect((await workspace.svc(args)).out, args.join(' ')).to.contain('weather')
    expect((await workspace.svc(['weather', 'now', '--help', '-c', file])).out).to.contain('Show the weather')
    expect((await workspace.svc(['-c', file, 'config', 'show', 'selection.mode'])).out).to.contain('review')
  })

  it('is suggested for a misspelled name, like commands of svc, in every topic', async () => {
    await using workspace = await makeWorkspace()
    await workspace.write('svc.config.json', withWeather)
    for (const [said, meant] of [
      ['plugins instal', 'plugins install'],
      ['tools lst', 'tools list'],
      ['plugin list', 'plugins list'],
      ['srve', 'serve'],
      ['weather nw', 'weather now'],
    ] as const) {
      const { code, err } = await workspace.svc(said.split(' '))
      expect([code, err]).to.satisfy(
        ([exit, page]: [number, string]) => exit === 2 && page.includes(`did you mean "svc ${meant}"?`)
      )
      expect(err).to.contain(`there is no command "${said}"`)
    }
    expect((await workspace.svc(['plugins', 'zzz'])).err).to.not.contain('did you mean')
  })

  it('says what is wrong with the file that --config names', async () => {
    await using workspace = await makeWorkspace()
    const { code, err } = await workspace.svc(['weather', 'now', '-c', 'gone.yaml'])
    expect(code).to.equal(1)
    expect(err).to.match(/^CONFIG_UNREADABLE\n {2}the file does not exist {3}\(gone\.yaml\)/)
  })
})

interface Tree {
  readonly from: string
  readonly plugins: readonly {
    name: string
    order: number
    version: string
    setup_ms: number
    added: Record<string, string[]>
    permissions: object
  }[]
  readonly left_out: readonly { name: string }[]
}

describe('svc plugins', () => {
  const it = sideBySide()
  it('notes what a manifest declares and the plugin has not added', async () => {
    await using workspace = await makeWorkspace()
    const svc = { api: 1, kind: 'tool', contributes: { tools: ['umbrella', 'rain_*'] } }
    await workspace.write('shy/package.json', JSON.stringify({ name: 'shy', type: 'module', main: 'index.js', svc }))
    await workspace.write('shy/index.js', 'export default { requires: {}, optional: {}, setup() {} }')
    await workspace.write('svc.config.json', '{ "plugins": ["./shy"] }')
    const { code, out } = await workspace.svc(['plugins'])
    expect(code).to.equal(0)
    expect(out).to.match(/declared, but not added: tools: umbrella$/m)
  })

  it('starts the configured plugins where no server runs, but nothing that listens', async () => {
    await using workspace = await makeWorkspace()
    await workspace.write('svc.config.json', withWeather)
    const { code, out } = await workspace.svc(['plugins', '--json'])
    expect(code).to.equal(0)
    const tree = JSON.parse(out) as Tree
    expect(tree.from).to.contain('no server runs')
    const all = tree.plugins.length + tree.left_out.length
    expect((await workspace.svc(['plugins'])).out).to.match(new RegExp(`^svc \\S+ ${all} plugins of `))
    expect((await workspace.svc(['doctor', '--port', '0'])).out).to.match(
      new RegExp(`^ok +configuration .*, ${all} plugins$`, 'm')
    )
    expect(tree.left_out.map(item => item.name)).to.include('@svc/plugin-http')
    expect(tree.plugins.map(plugin => plugin.order)).to.deep.equal(tree.plugins.map((_, at) => at + 1))
    expect(tree.plugins.filter(plugin => !(plugin.setup_ms >= 0))).to.deep.equal([])
    expect(tree.plugins.find(plugin => plugin.name === '@svc/plugin-tools-time')?.added).to.deep.equal({
      tools: ['current_time', 'convert_time'],
    })
    const weather = tree.plugins.find(plugin => plugin.name === 'svc-plugin-weather')
    expect(weather).to.deep.include({ version: '1.2.3', permissions: { network: ['api.weather.example'] } })
  })

  it('asks the running server, and ends with 1 where --port names none', async () => {
    await using workspace = await makeWorkspace()
    const server = await workspace.serve()
    const { code, out } = await workspace.svc(['plugins'])
    expect(code).to.equal(0)
    expect(out).to.contain(`the running server at ${server.url}`).and.contain('@svc/plugin-http').and.contain('provides  http')
    expect(await workspace.svc(['plugins', '--port', '1'])).to.include({ code: 1 })
    await server.end()
  })
})
