import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { completableFacts, safeFacts, wrongFact } from '../src/command-manifest.ts'
import { Args, runCommand, SvcCommand } from '../src/command/index.ts'
import { makeWorkspace } from './support/svc.ts'

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
    await using workspace = await makeWorkspace()
    const folder = join(workspace.folder, 'topic')
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
    await writeFile(join(workspace.folder, 'named.yaml'), 'plugins:\n  - use: ./topic\n')
    for (const line of [['--help'], ['topic', '--help'], ['topic', 'show', '--help']])
      await workspace.svc([...line, '--config', join(workspace.folder, 'named.yaml')])
    const cache = join(workspace.folder, 'cache')
    const refresh = ['autocomplete', '--refresh-cache', '--config', join(workspace.folder, 'named.yaml')]
    const { code, err } = await workspace.svc(refresh, { env: { XDG_CACHE_HOME: cache } })
    expect(code, err).to.equal(0)
    expect(await readFile(join(cache, 'svc/autocomplete/functions/bash/svc.bash'), 'utf8')).to.match(/^topic:show/m)
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
