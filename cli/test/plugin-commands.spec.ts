import { once } from 'node:events'
import { mkdir, open, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { noBubblewrap } from '@svc/core/testing'
import { expect } from 'chai'
import { tarballOf } from '../../test/support/registry.ts'
import { completableFacts, safeFacts, wrongFact } from '../src/command-manifest.ts'
import { Args, runCommand, SvcCommand } from '../src/command/index.ts'
import { makePlace, type Place } from './support/svc.ts'

const NAME = 'svc-plugin-report'

/** A plugin of somebody else: its commands note in a file that they were imported. */
const reportOf = (place: Place, version = '1.0.0') =>
  tarballOf(
    place.folder,
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
        contributes: { commands: ['report show', 'report copy', 'report wait', 'report end'] },
        topics: { report: 'Write reports' },
        permissions: { write: [notesFolderOf(place)] },
      },
    },
    {
      'index.js': "import { definePlugin } from '@svc/core'\nexport default definePlugin({ setup() {} })\n",
      'commands.js': `import { appendFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { svcError } from '@svc/core'
import { Args, Flags, SvcCommand } from '@svc/cli/command'

appendFileSync(${JSON.stringify(notesOf(place))}, 'imported\\n')

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
    if (args.way === 'coded') throw Object.assign(svcError('REPORT_OLD', 'it is old', { mend: 'Make it anew' }), { oclif: { exit: 6 } })
    if (args.way === 'where') return this.print(this.cwd)
    if (args.way === 'thrown') throw new Error('a mistake')
    for (let at = 0; at < 20_000; at++) this.print(String(at).padEnd(200, '.'))
  }
}

export const COMMANDS = { 'report:show': Show, 'report:copy': Copy, 'report:wait': Wait, 'report:end': End }
`,
    }
  )

const notesFolderOf = (place: Place) => join(place.folder, 'notes')
const notesOf = (place: Place) => join(notesFolderOf(place), 'imports.txt')
const cacheOf = (place: Place) => ({ XDG_CACHE_HOME: join(place.folder, 'cache') })
const scriptIn = (place: Place) => join(cacheOf(place).XDG_CACHE_HOME, 'svc/autocomplete/functions/bash/svc.bash')
const importsOf = async (place: Place) =>
  (await readFile(notesOf(place), 'utf8').catch(() => '')).split('\n').filter(line => line !== '').length

const WAYS = [
  { where: 'in a process of its own', args: [], skip: noBubblewrap() },
  { where: 'in the process of svc', args: ['--isolation', 'in-process', '--trust'], skip: undefined },
] as const

for (const { where, args, skip } of WAYS)
  describe(`the commands of an installed plugin that runs ${where}`, function () {
    this.timeout(120_000)
    let place: Place

    before(async function () {
      if (skip) return this.skip()
      place = await makePlace()
      await mkdir(notesFolderOf(place))
      // somebody uses completion already: an install writes its scripts anew
      expect((await place.svc(['autocomplete', '--refresh-cache'], { env: cacheOf(place) })).code).to.equal(0)
      const install = ['plugins', 'install', await reportOf(place), '--yes', ...args]
      const { code, err } = await place.svc(install, { env: cacheOf(place) })
      expect(code, err).to.equal(0)
    })
    after(async () => {
      await place?.[Symbol.asyncDispose]()
    })

    it('are shown by help, completed and suggested, and nothing of the plugin is imported', async () => {
      const imports = await importsOf(place)
      expect(imports).to.be.above(0)
      expect((await place.svc(['--help'])).out).to.match(/^ {2}report +Write reports$/m)
      expect((await place.svc(['report', '--help'])).out).to.match(/report copy +Copy the standard input\n/)
      const { code, out } = await place.svc(['report', 'show', '--help'])
      expect(code).to.equal(0)
      expect(out)
        .to.match(/^ {2}\$ svc report show NAME \[-c <file>\] \[--style short\|long\] \[--json\]$/m)
        .and.match(/^ {2}NAME +Which report$/m)
        .and.match(/--style=<option> +\[default: short\] How much of it\n +<options: short\|long>/)
        .and.contain('< %= process.exit(9) % >')
        .and.match(/EXAMPLES\n +\$ svc report show sales --style long/)
      const script = await readFile(scriptIn(place), 'utf8')
      expect(script)
        .to.match(/^report:show .*--style --json/m)
        .and.match(/^tokens:create .*--ttl/m)
      const typo = await place.svc(['report', 'shwo', 'sales'])
      expect(typo).to.include({ code: 2, out: '' })
      expect(typo.err).to.contain('there is no command "report shwo').and.contain('did you mean "svc report show"?')
      expect((await place.svc(['reprot'])).err).to.contain('did you mean "svc report"?')
      expect(await importsOf(place)).to.equal(imports)
    })

    it('run with their arguments and flags, and their exit code', async () => {
      const shown = await place.svc(['report', 'show', 'sales', '--style', 'long'])
      expect(shown).to.include({ code: 0, out: 'sales, long\n', err: 'done\n' })
      expect((await place.svc(['report', 'show', 'sales', '--json'])).out).to.equal('{"name":"sales"}\n')
      expect(await place.svc(['report', 'show', 'nothing'])).to.include({ code: 4, out: '' })
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
        const { code, out, err } = await place.svc(['report', ...words])
        expect({ code, out }, err).to.deep.equal({ code: 2, out: '' })
        expect(err)
          .to.match(/^COMMAND_LINE_INVALID/)
          .and.contain(said)
          .and.contain(`svc report ${words[0]} --help`)
          .and.not.contain('See more help')
      }
    })

    it('know the folder in which svc was started', async () => {
      expect((await place.svc(['report', 'end', 'where'])).out).to.equal(`${place.folder}\n`)
    })

    it('read the standard input', async () => {
      expect(await place.svc(['report', 'copy'], { input: 'a word' })).to.include({ code: 0, out: 'A WORD\n' })
    })

    it('print all of their output, however long it is, into a pipe and a file', async () => {
      const LAST = `${'19999'.padEnd(200, '.')}\n`
      const { code, out, err } = await place.svc(['report', 'end', 'long'])
      expect({ code, length: out.length, last: out.slice(-201) }, err).to.deep.equal({
        code: 0,
        length: 20_000 * 201,
        last: LAST,
      })
      const file = join(place.folder, 'long.txt')
      await using handle = await open(file, 'w')
      const child = place.start(['report', 'end', 'long'], { stdout: handle.fd })
      expect((await once(child, 'exit'))[0]).to.equal(0)
      expect(await readFile(file, 'utf8')).to.equal(out)
    })

    it('end with the code of an error, and of process.exit', async () => {
      const failed = await place.svc(['report', 'end', 'error'])
      expect(failed).to.include({ code: 5, out: '', err: 'it went wrong\n' })
      expect(await place.svc(['report', 'end', 'exit'])).to.include({ code: 9, out: '', err: '' })
      const coded = await place.svc(['report', 'end', 'coded'])
      expect(coded).to.include({ code: 6, out: '', err: 'REPORT_OLD\n  it is old\n  Make it anew\n' })
      const thrown = await place.svc(['report', 'end', 'thrown'])
      expect(thrown).to.include({ code: 1, out: '' })
      expect(thrown.err).to.contain('a mistake')
    })

    it('hear of Ctrl-C', async () => {
      const child = place.start(['report', 'wait'])
      let out = ''
      child.stdout!.on('data', (chunk: Buffer) => (out += chunk.toString()))
      while (!out.includes('waiting')) await once(child.stdout!, 'data')
      child.kill('SIGINT')
      const [code] = (await once(child, 'close')) as [number | null]
      expect({ code, out }).to.deep.equal({ code: 130, out: 'waiting\nstopped\n' })
    })
  })

describe('runCommand', () => {
  class Count extends SvcCommand {
    static override args = { count: Args.integer({ required: true, ignoreStdin: true }) }

    async run() {
      const { args } = await this.parse(Count)
      this.print(`${args.count}, ${this.cwd}`)
      return args.count
    }
  }

  it('leaves the exit code of the test run as it was', async () => {
    const before = process.exitCode
    for (const [line, words] of [
      [[], /Missing 1 required arg/],
      [['few'], /^Expected an integer but received: few$/],
    ] as const) {
      const error: unknown = await runCommand(Count, line).catch((thrown: unknown) => thrown)
      expect(error).to.include({ code: 'COMMAND_LINE_INVALID' }).and.have.property('message').that.matches(words)
    }
    expect(process.exitCode).to.equal(before)
    expect(await runCommand(Count, ['3'], { cwd: '/here' })).to.deep.equal({ code: 3, out: ['3, /here'], err: [] })
  })
})

describe('what help shows of a plugin', () => {
  const command = { args: {}, flags: {}, hidden: false }

  it('is text and no template, whatever the plugin wrote', () => {
    const flags = { out: { type: 'option', name: 'out', helpValue: '%= process.exit(9) %' }, '<%= 1 %>': {} }
    const description = '<%= 1 %> \u001b[31m <%% 2 %%> <<%- 3 %>'
    const found = safeFacts(
      { 'a:b': { ...command, summary: '<%= config.bin %> <%= command.id %>', description, flags } as never },
      'a:b'
    )
    expect(found?.summary).to.equal('svc a b')
    expect(JSON.stringify(found)).to.not.match(/<%|%>|"%|%"/)
    expect(found?.description).to.contain('\\u{1b}[31m')
    expect(Object.keys(found?.flags ?? {})).to.deep.equal(['out'])
  })

  it('reaches the scripts of completion without what a shell obeys', () => {
    const text = 'a $(touch x) `touch x` "; touch x \\ “touch x” [b]{c}'
    const flags = {
      size: {
        type: 'option',
        name: 'size"; touch x',
        char: '$(touch x)',
        summary: text,
        options: ['big', 'a) :b:{touch x}', '$(x)'],
      },
    }
    const found = safeFacts({ a: { ...command, summary: text, flags } as never }, 'a')!
    const { summary, flags: made } = completableFacts(found)
    expect(summary).to.equal('a  (touch x)  touch x   ; touch x    touch x   b c ')
    expect(made).to.deep.equal({ size: { type: 'option', name: 'size', summary, options: ['big'] } })
  })

  it('is text, too, where it is the name or the description of a plugin by path', async () => {
    await using place = await makePlace()
    const folder = join(place.folder, 'topic')
    await mkdir(folder)
    const attack = (name: string) =>
      `<%= process.getBuiltinModule('fs').writeFileSync(${JSON.stringify(join(folder, name))}, '') %>`
    const manifest = {
      name: attack('by-name'),
      description: `${attack('by-description')} $(touch ${join(folder, 'by-shell')})`,
      exports: { '.': './index.js', './commands': './commands.js' },
      svc: { api: 1, kind: 'command', contributes: { commands: ['topic show', 'a$(touch x) b'] } },
    }
    await writeFile(join(folder, 'package.json'), JSON.stringify(manifest))
    await writeFile(join(folder, 'commands.js'), 'export const COMMANDS = {}')
    await writeFile(join(place.folder, 'named.yaml'), 'plugins:\n  - use: ./topic\n')
    for (const line of [['--help'], ['topic', '--help'], ['topic', 'show', '--help']])
      await place.svc([...line, '--config', join(place.folder, 'named.yaml')])
    const refresh = ['autocomplete', '--refresh-cache', '--config', join(place.folder, 'named.yaml')]
    const { code, err } = await place.svc(refresh, { env: cacheOf(place) })
    expect(code, err).to.equal(0)
    expect(await readFile(scriptIn(place), 'utf8')).to.match(/^topic:show/m)
    expect((await readdir(folder)).sort()).to.deep.equal(['commands.js', 'package.json'])
  })

  it('is cut where it is longer than 4,000 characters', () => {
    const found = safeFacts({ a: { ...command, summary: 'x'.repeat(5000), description: 'y'.repeat(4000) } }, 'a')
    expect(found?.summary).to.equal(`${'x'.repeat(3999)}…`)
    expect(found?.description).to.equal('y'.repeat(4000))
  })

  it('is left out where it has not the form of oclif', () => {
    const flag = { type: 'boolean', name: 'a' }
    for (const [facts, wrong] of [
      [{ ...command, flags: { a: { ...flag, summary: 5 } } }, 'flags.a.summary'],
      [{ ...command, flags: { a: { ...flag, description: ['x'] } } }, 'flags.a.description'],
      [{ ...command, flags: { a: { ...flag, type: 'option', options: 'abc' } } }, 'flags.a.options'],
      [{ ...command, flags: { a: { ...flag, type: 'option', default: { toString: 1 } } } }, 'flags.a.default'],
      [{ ...command, flags: { a: { name: 'a' } } }, 'flags.a.type'],
      [{ ...command, args: { a: { name: 'a', description: 5 } } }, 'args.a.description'],
      [{ ...command, description: ['x'] }, 'description'],
    ] as const) {
      expect(wrongFact(facts)).to.equal(wrong)
      expect(safeFacts({ a: facts as never }, 'a')).to.equal(undefined)
    }
    expect(wrongFact({ ...command, flags: { a: flag } })).to.equal(undefined)
    for (const facts of [null, 7, {}, { ...command, flags: null }, { ...command, args: { a: 1 } }, { ...command, summary: {} }])
      expect(safeFacts({ a: facts as never }, 'a'), JSON.stringify(facts)).to.equal(undefined)
    expect(safeFacts({}, 'toString')).to.equal(undefined)
  })
})
