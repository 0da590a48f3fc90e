import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { pluginKit } from '@svc/testing'
import { expect } from 'chai'
import { itWith } from '../../test/support/needs.ts'
import { describeInProcess } from '../src/command-process.ts'
import { makeWorkspace, type Workspace } from './support/svc.ts'

describe('the commands of a plugin in a folder', function () {
  this.timeout(120_000)
  let workspace: Workspace

  const writePlugin = async (name: string, commands: string) => {
    const svc = { api: 1, kind: 'command', contributes: { commands: [`${name} show`] } }
    const exported = { '.': './index.js', './commands': './commands.js' }
    await workspace.write(
      `${name}/package.json`,
      JSON.stringify({ name, version: '1.0.0', type: 'module', exports: exported, svc })
    )
    await workspace.write(
      `${name}/index.js`,
      `import { definePlugin, schema } from '@svc/core'
const config = schema({ type: 'object', properties: { key: { type: 'string' } }, default: {} })
export default definePlugin({ section: '${name}', config, setup() {} })
`
    )
    await workspace.write(`${name}/commands.js`, commands)
  }
  const configure = (...plugins: readonly unknown[]) =>
    workspace.write('svc.config.json', JSON.stringify({ plugins, sec: { key: 'own' }, other: { key: 'another' } }))

  before(async () => {
    workspace = await makeWorkspace()
  })
  after(async () => {
    await workspace?.[Symbol.asyncDispose]()
  })

  it('report the error of their module, also where they are linked, and a link describes nothing for completion that is not set up', async () => {
    const noted = join(workspace.folder, 'imported.txt')
    await writePlugin('brk', `import { appendFileSync } from 'node:fs'\nappendFileSync(${JSON.stringify(noted)}, 'x')\nnull.x\n`)
    const linked = await workspace.svc(['plugins', 'link', './brk', '--yes', '--isolation', 'in-process', '--trust'], {
      env: { XDG_CACHE_HOME: join(workspace.folder, 'cache') },
    })
    expect(linked.code, linked.err).to.equal(0)
    expect(await readFile(noted, 'utf8').catch(() => 'none')).to.equal('none')
    const { code, out, err } = await workspace.svc(['brk', 'show', 'a'])
    expect({ code, out }, err).to.deep.equal({ code: 1, out: '' })
    expect(err)
      .to.match(/^COMMAND_BROKEN {2}brk\n.*Cannot read properties of null/)
      .and.contain('must export COMMANDS')
    expect((await workspace.svc(['brk', 'show', '--help'])).out).to.contain('Comes with brk')
  })

  it('without a class are reported', async () => {
    await writePlugin('bare', 'export const COMMANDS = {}')
    await configure({ use: './bare' })
    const { code, err } = await workspace.svc(['bare', 'show', 'a', 'b'])
    expect(code).to.equal(1)
    expect(err).to.match(/^COMMAND_BROKEN {2}bare\n.*COMMANDS has no class "bare:show"/)
  })

  itWith('bubblewrap', it)(
    'in a process of their own read the section of their plugin, and report the error of their module',
    async () => {
      await writePlugin(
        'sec',
        `import { SvcCommand } from '@svc/cli/command'
class Show extends SvcCommand {
  static summary = 'Show a setting'
  async run() {
    await this.parse(Show)
    this.print(JSON.stringify([await this.setting('sec', 'key'), await this.setting('other', 'key')]))
  }
}
export const COMMANDS = { 'sec:show': Show }
`
      )
      await configure({ use: './sec', isolation: 'process' })
      const shown = await workspace.svc(['sec', 'show'])
      expect(shown.out, shown.err).to.equal('["own",null]\n')
      await workspace.write('sec/commands.js', 'null.x')
      const { code, err } = await workspace.svc(['sec', 'show', 'a'])
      expect(code).to.equal(1)
      expect(err).to.match(/^COMMAND_BROKEN {2}sec\n.*Cannot read properties of null/)
    }
  )

  it('with a fact that help cannot read are refused at install', async () => {
    await writePlugin(
      'typed',
      `import { Flags, SvcCommand } from '@svc/cli/command'
class Show extends SvcCommand {
  static flags = { json: Flags.boolean({ summary: 5 }) }
  async run() {}
}
export const COMMANDS = { 'typed:show': Show }
`
    )
    const { code, err } = await workspace.svc(['plugins', 'install', './typed', '--yes', '--isolation', 'in-process', '--trust'])
    expect(code).to.equal(1)
    expect(err).to.match(/COMMAND_BROKEN {2}typed\n.*its "flags.json.summary" does not have the form/)
  })

  it('with a flag that svc takes off a command line fail the kit', async () => {
    for (const [name, flag, said] of [
      ['flagged', "{ config: { type: 'boolean', summary: 'x' } }", 'a flag "config" with a name of svc: --config, -c'],
      ['short', "{ count: { type: 'boolean', char: 'c' } }", 'a flag "count" with a name of svc: --config, -c'],
      ['texts', '{ count: { summary: 5 } }', 'a flag "count" whose summary or description is not text'],
    ] as const) {
      await writePlugin(
        name,
        `class Show { static run() {} static summary = 'x'; static examples = ['x']; static flags = ${flag} }
export const COMMANDS = { '${name}:show': Show }
`
      )
      const cases = await pluginKit(pathToFileURL(join(workspace.folder, name, '/')))
      const error: unknown = await cases
        .find(testCase => testCase.title.startsWith('has a command'))
        ?.run()
        .catch((thrown: unknown) => thrown)
      expect(error).to.have.property('message', `the class "${name}:show" has ${said}`)
    }
  })

  it('whose import does not end are given up, and the error names the plugin and the limit', async () => {
    await writePlugin('hang', 'setInterval(() => {}, 1000)\nawait new Promise(() => {})')
    const folder = join(workspace.folder, 'hang')
    const commands = { plugin: 'hang', version: '1.0.0', folder, target: join(folder, 'commands.js') }
    const error: unknown = await describeInProcess(commands, {}, 100).catch((thrown: unknown) => thrown)
    expect(error).to.include({ code: 'TIMEOUT', plugin: 'hang', message: 'its import did not end within 0.1 s' })
  })
})
