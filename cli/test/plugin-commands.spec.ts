import { once } from 'node:events'
import { mkdir, open, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { lacking, skipBecause } from '../../test/support/needs.ts'
import { tarballOf } from '../../test/support/registry.ts'
import { makeWorkspace, type Workspace } from './support/svc.ts'

const NAME = 'svc-plugin-report'

/** A third-party plugin: its commands record their import in a file. */
const reportOf = (workspace: Workspace, version = '1.0.0') =>
  tarballOf(
    workspace.folder,
    {
      name: NAME,
      version,
      description: 'Reports',
      type: 'module',
      keywords: ['svc-plugin'],
      exports: { '.': './index.js', './commands': './commands.js' },
      svc: {
        api: 1,
        kind: 'command',
        contributes: {
          commands: ['report show', 'report copy', 'report wait', 'report ask', 'report refuse', 'report end'],
        },
        topics: { report: 'Write reports' },
        permissions: { write: [notesFolderOf(workspace)] },
      },
    },
    {
      'index.js': "import { definePlugin } from '@svc/core'\nexport default definePlugin({ setup() {} })\n",
      'commands.js': `import { appendFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { Args, Flags, SERVER_FLAGS, SvcCommand, table, usageError } from '@svc/cli/command'
import { svcError, systemContext } from '@svc/core'
import { Selection } from '@svc/core/contracts'

appendFileSync(${JSON.stringify(notesOf(workspace))}, 'imported\\n')

class Show extends SvcCommand {
  static summary = 'Show a report'
  static description = 'Text of a plugin is no code: <%= process.exit(9) %>'
  static examples = ['<%= config.bin %> <%= command.id %> sales --style long']
  static args = { name: Args.string({ description: 'Which report', required: true, ignoreStdin: true }) }
  static flags = {
    style: Flags.option({ summary: 'How much of it', options: ['short', 'long'], default: 'short' })(),
    json: Flags.boolean({ summary: 'One JSON object' }),
  }

  async run() {
    const { args, flags } = await this.parse(Show)
    if (args.name === 'nothing') return 4
    this.print(flags.json ? JSON.stringify({ name: args.name }) : \`\${args.name}, \${flags.style}\`)
    this.note('done')
  }
}

class Copy extends SvcCommand {
  static summary = 'Copy the standard input'
  static examples = ['<%= config.bin %> <%= command.id %>']

  async run() {
    await this.parse(Copy)
    this.print((await text(process.stdin)).toUpperCase())
  }
}

class Wait extends SvcCommand {
  static summary = 'Wait for Ctrl-C'
  static examples = ['<%= config.bin %> <%= command.id %>']

  async run() {
    await this.parse(Wait)
    const timer = setInterval(() => {}, 1000)
    this.print('waiting')
    await new Promise(done => this.signal.addEventListener('abort', done))
    clearInterval(timer)
    this.print('stopped')
    return 130
  }
}

class End extends SvcCommand {
  static summary = 'End in one of several ways'
  static examples = ['<%= config.bin %> <%= command.id %> long']
  static args = {
    way: Args.string({ description: 'Which way', required: true, ignoreStdin: true }),
    count: Args.integer({ description: 'A number', ignoreStdin: true }),
  }
  static flags = {
    most: Flags.integer({ summary: 'A number' }),
    even: Flags.string({ summary: 'An even number', parse: async text => { if (text % 2) throw new TypeError(text + ' is odd'); return text } }),
  }

  async run() {
    const { args } = await this.parse(End)
    if (args.way === 'error') this.error('it went wrong', { exit: 5 })
    if (args.way === 'exit') process.exit(9)
    if (args.way === 'coded') throw Object.assign(svcError('REPORT_OLD', 'it is old', { hint: 'Make it anew' }), { oclif: { exit: 6 } })
    if (args.way === 'raw') return this.print(String(process.stdin.setRawMode(true)))
    if (args.way === 'where') return this.print(this.cwd)
    if (args.way === 'thrown') throw new Error('a mistake')
    for (let at = 0; at < 20_000; at++) this.print(String(at).padEnd(200, '.'))
  }
}

class Ask extends SvcCommand {
  static summary = 'Ask a server, or a host of its own'
  static examples = ['<%= config.bin %> <%= command.id %>']
  static flags = { ...SERVER_FLAGS, debug: Flags.boolean({ summary: 'Show the log of the host' }), only: Flags.string({ summary: 'What to ask for' }) }

  async run() {
    const { flags } = await this.parse(Ask)
    if (flags.only === 'host') return this.print(String(await this.host()))
    if (flags.only === 'unconfigured') return this.print(JSON.stringify(await this.unconfigured('providers')))
    const server = await this.server(flags)
    if (server === undefined) {
      const host = await this.host({ settings: { selection: { mode: 'plan' } }, debug: flags.debug })
      return this.print('own host: ' + (await host.service(Selection).effective(systemContext(this.signal))).mode)
    }
    const { providers } = await server.request('GET', '/api/v1/providers')
    this.print(table([['server', server.url], ['providers', providers.map(one => one.name).join(' ')]]))
    const body = { message: 'hello' }
    for await (const { data } of server.stream('POST', '/api/v1/chat/stream', { body })) this.print(JSON.parse(data).type)
  }
}

class Refuse extends SvcCommand {
  static summary = 'Refuse what is asked'
  static examples = ['<%= config.bin %> <%= command.id %>']
  static flags = { size: Flags.string({ char: 'c', summary: 'How large' }) }

  async run() {
    const { flags } = await this.parse(Refuse)
    throw usageError('REPORT_UNKNOWN', 'there is no report in ' + flags.config, { hint: 'name another' })
  }
}

export const COMMANDS = { 'report:show': Show, 'report:copy': Copy, 'report:wait': Wait, 'report:ask': Ask, 'report:refuse': Refuse, 'report:end': End }
`,
    }
  )

const notesFolderOf = (workspace: Workspace) => join(workspace.folder, 'notes')
const notesOf = (workspace: Workspace) => join(notesFolderOf(workspace), 'imports.txt')
const cacheOf = (workspace: Workspace) => ({ XDG_CACHE_HOME: join(workspace.folder, 'cache') })
const scriptIn = (workspace: Workspace) => join(cacheOf(workspace).XDG_CACHE_HOME, 'svc/autocomplete/functions/bash/svc.bash')
const importsOf = async (workspace: Workspace) =>
  (await readFile(notesOf(workspace), 'utf8').catch(() => '')).split('\n').filter(line => line !== '').length

const WAYS = [
  { where: 'in a process of its own', args: [], skip: lacking('bubblewrap') },
  { where: 'in the process of svc', args: ['--isolation', 'in-process', '--trust'], skip: undefined },
] as const

for (const { where, args, skip } of WAYS)
  describe(`the commands of an installed plugin that runs ${where}`, function () {
    this.timeout(300_000)
    let workspace: Workspace

    before(async function () {
      skipBecause(this, skip)
      workspace = await makeWorkspace()
      await mkdir(notesFolderOf(workspace))
      // completion is in use: an install rewrites its scripts
      expect((await workspace.svc(['autocomplete', '--refresh-cache'], { env: cacheOf(workspace) })).code).to.equal(0)
      const install = ['plugins', 'install', await reportOf(workspace), '--yes', ...args]
      const { code, err } = await workspace.svc(install, { env: cacheOf(workspace) })
      expect(code, err).to.equal(0)
    })
    after(async () => {
      await workspace?.[Symbol.asyncDispose]()
    })

    it('are shown by help, completed and suggested, and nothing of the plugin is imported', async () => {
      const imports = await importsOf(workspace)
      expect(imports).to.be.above(0)
      expect((await workspace.svc(['--help'])).out).to.match(/^ {2}report +Write reports$/m)
      expect((await workspace.svc(['report', '--help'])).out).to.match(/report copy +Copy the standard input\n/)
      const { code, out } = await workspace.svc(['report', 'show', '--help'])
      expect(code).to.equal(0)
      expect(out)
        .to.match(/^ {2}\$ svc report show NAME \[-c <file>\] \[--style short\|long\] \[--json\]$/m)
        .and.match(/^ {2}NAME +Which report$/m)
        .and.match(/--style=<option> +\[default: short\] How much of it\n +<options: short\|long>/)
        .and.contain('< %= process.exit(9) % >')
        .and.match(/EXAMPLES\n +\$ svc report show sales --style long/)
      const script = await readFile(scriptIn(workspace), 'utf8')
      expect(script)
        .to.match(/^report:show .*--style --json/m)
        .and.match(/^tokens:create .*--ttl/m)
      const typo = await workspace.svc(['report', 'shwo', 'sales'])
      expect(typo).to.include({ code: 2, out: '' })
      expect(typo.err).to.contain('there is no command "report shwo').and.contain('did you mean "svc report show"?')
      expect((await workspace.svc(['reprot'])).err).to.contain('did you mean "svc report"?')
      expect(await importsOf(workspace)).to.equal(imports)
    })

    it('run with their arguments and flags, and their exit code', async () => {
      const shown = await workspace.svc(['report', 'show', 'sales', '--style', 'long'])
      expect(shown).to.include({ code: 0, out: 'sales, long\n', err: 'done\n' })
      expect((await workspace.svc(['report', 'show', 'sales', '--json'])).out).to.equal('{"name":"sales"}\n')
      expect(await workspace.svc(['report', 'show', 'nothing'])).to.include({ code: 4, out: '' })
    })

    it('refuse a wrong command line with 2', async () => {
      for (const [said, ...words] of [
        ['Missing 1 required arg', 'show'],
        ['Expected --style=wide to be one of: short, long', 'show', 'sales', '--style', 'wide'],
        ['Nonexistent flag: --colour', 'show', 'sales', '--colour'],
        ['Expected an integer but received: few', 'end', 'long', 'few'],
        ['--most: Expected an integer but received: few', 'end', 'long', '--most', 'few'],
        ['--even: 3 is odd', 'end', 'long', '--even', '3'],
      ] as const) {
        const { code, out, err } = await workspace.svc(['report', ...words])
        expect({ code, out }, err).to.deep.equal({ code: 2, out: '' })
        expect(err)
          .to.match(/^COMMAND_LINE_INVALID/)
          .and.contain(said)
          .and.contain(`svc report ${words[0]} --help`)
          .and.not.contain('See more help')
      }
    })

    it('get the folder in which svc was started', async () => {
      expect((await workspace.svc(['report', 'end', 'where'])).out).to.equal(`${workspace.folder}\n`)
    })

    it('read the standard input', async () => {
      expect(await workspace.svc(['report', 'copy'], { input: 'a word' })).to.include({ code: 0, out: 'A WORD\n' })
    })

    it('print all of their output, however long it is, into a pipe and a file', async () => {
      const LAST = `${'19999'.padEnd(200, '.')}\n`
      const { code, out, err } = await workspace.svc(['report', 'end', 'long'])
      expect({ code, length: out.length, last: out.slice(-201) }, err).to.deep.equal({
        code: 0,
        length: 20_000 * 201,
        last: LAST,
      })
      const file = join(workspace.folder, 'long.txt')
      await using handle = await open(file, 'w')
      const child = workspace.start(['report', 'end', 'long'], { stdout: handle.fd })
      expect((await once(child, 'exit'))[0]).to.equal(0)
      expect(await readFile(file, 'utf8')).to.equal(out)
    })

    it('end with the code of an error, and of process.exit', async () => {
      const failed = await workspace.svc(['report', 'end', 'error'])
      expect(failed).to.include({ code: 5, out: '', err: 'it went wrong\n' })
      expect(await workspace.svc(['report', 'end', 'exit'])).to.include({ code: 9, out: '', err: '' })
      const coded = await workspace.svc(['report', 'end', 'coded'])
      expect(coded).to.include({ code: 6, out: '', err: 'REPORT_OLD\n  it is old\n  Make it anew\n' })
      const thrown = await workspace.svc(['report', 'end', 'thrown'])
      expect(thrown).to.include({ code: 1, out: '' })
      expect(thrown.err).to.contain('a mistake')
    })

    it('exit with 2 for their own error code, and get the path of the configuration file', async () => {
      const file = await workspace.write('named.json', '{}')
      const { code, out, err } = await workspace.svc(['report', 'refuse', '-c', file])
      expect({ code, out }, err).to.deep.equal({ code: 2, out: '' })
      expect(err).to.equal(`REPORT_UNKNOWN\n  there is no report in ${file}\n  name another\n`)
    })

    it('are aborted by Ctrl-C', async () => {
      const child = workspace.start(['report', 'wait'])
      let out = ''
      child.stdout!.on('data', (chunk: Buffer) => (out += chunk.toString()))
      while (!out.includes('waiting')) await once(child.stdout!, 'data')
      child.kill('SIGINT')
      const [code] = (await once(child, 'close')) as [number | null]
      expect({ code, out }).to.deep.equal({ code: 130, out: 'waiting\nstopped\n' })
    })

    if (args.length === 0)
      it('are refused a server, and so the credential, a host and the list of plugins', async () => {
        for (const [what, ...way] of [
          ['sends requests to a server, for which an isolated command needs a permission'],
          ['asks for the host, which an isolated command cannot reach', '--only', 'host'],
          ['asks for the installed plugins, which an isolated command cannot reach', '--only', 'unconfigured'],
        ] as const) {
          const { code, out, err } = await workspace.svc(['report', 'ask', ...way])
          expect([code, out]).to.deep.equal([1, ''])
          expect(err)
            .to.match(/^COMMAND_ISOLATED/)
            .and.contain(`"report ask" ${what}`)
            .and.contain('--isolation in-process --trust')
        }
      })
    if (args.length === 0)
      it('have no terminal: a command that needs one fails with the reason', async () => {
        const { code, err } = await workspace.svc(['report', 'end', 'raw'])
        expect(code).to.equal(1)
        expect(err)
          .to.match(/^COMMAND_ISOLATED/)
          .and.contain('asks for the terminal')
          .and.contain('--isolation in-process --trust')
      })
    else
      it('ask the server that runs or that is named, with the credential of svc; else their own host, whose log they may show', async () => {
        const alone = await workspace.svc(['report', 'ask'])
        expect(alone).to.include({ code: 0, out: 'own host: plan\n', err: '' })
        const shown = await workspace.svc(['report', 'ask', '--debug'])
        expect(shown.out).to.equal('own host: plan\n')
        expect((await workspace.svc(['report', 'ask', '--only', 'unconfigured'])).out).to.equal('[]\n')
        expect(shown.err).to.match(/^[\d:.]+ \w+ /m)
        await workspace.write('svc.config.yaml', 'server: { auth: { enabled: true } }')
        const env = { SVC_API_KEY: 'an-api-key-of-a-test-of-32-chars' }
        const server = await workspace.serve([], { env })
        for (const way of [[], ['--url', server.url], ['--port', new URL(server.url).port]]) {
          const { code, out, err } = await workspace.svc(['report', 'ask', ...way], { env })
          expect({ code, err }).to.deep.equal({ code: 0, err: '' })
          expect(out.split('\n').slice(0, 3)).to.deep.equal([`server     ${server.url}`, 'providers  local', 'start'])
          expect(out).to.match(/\nend\n$/)
        }
        const stranger = await workspace.svc(['report', 'ask'])
        expect([stranger.code, stranger.out]).to.deep.equal([1, ''])
        expect(stranger.err).to.match(
          /^AUTHENTICATION_FAILED\n.*\n {2}Set SVC_API_KEY to an API key or a token, or use --header or SVC_CREDENTIAL_HELPER\n/
        )
        for (const way of [['--local'], ['--config', await workspace.write('named.json', '{}')]])
          expect((await workspace.svc(['report', 'ask', ...way], { env })).out).to.equal('own host: plan\n')
        const both = await workspace.svc(['report', 'ask', '--url', server.url, '-c', await workspace.write('named.json', '{}')])
        expect(both.code).to.equal(2)
        expect(both.err).to.match(
          /^COMMAND_LINE_INVALID\n[^]*--(url|config)=\S+ cannot also be provided when using --(url|config)/
        )
        await server.end()
      })
  })
