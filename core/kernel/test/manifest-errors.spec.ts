import { definePlugin, defineSlot, startHost } from '@svc/core'
import { expect } from 'chai'
import { entry, folder, packageFiles, PLAIN_PLUGIN, problemOf, problemsOf, Words } from './support/kernel.ts'

describe('a manifest that cannot be right', () => {
  const declaring = (name: string, contributes: object) => packageFiles(name, { api: 1, kind: 'x', contributes }, PLAIN_PLUGIN)

  it('declares names by stars, and a stranger with many of them costs no time', async () => {
    const stars = `${'*a'.repeat(30)}*b`
    const plugin = (names: readonly string[]) => ({
      use: definePlugin({ setup: scope => names.forEach(name => scope.add(Words, name, { text: name, say: async () => name })) }),
      name: 'svc-stars',
      manifest: { api: 1, kind: 'x', contributes: { words: ['my_*_word', 'end*', stars] } },
    })
    await using host = await startHost({ plugins: [plugin(['my_own_word', 'my__word', 'end', 'ending', `${'a'.repeat(100)}b`])] })
    expect(host.slot(Words).size).to.equal(5)
    for (const bad of ['my_word', 'my_own_words', 'an end', 'a'.repeat(100)])
      expect(await problemOf({ plugins: [plugin([bad])] })).to.include({ code: 'CONTRIBUTION_UNDECLARED', plugin: 'svc-stars' })
  })

  describe('of a slot whose manifests say more than names', () => {
    interface Bell {
      readonly tone: string
      readonly owner?: string
    }
    const Bells = defineSlot<Bell>('bells', {
      api: 1,
      methods: {},
      declared: ['tone', 'owner'],
      permission: { without: 'owner', name: 'public_routes' },
    })
    const ringing = (bell: Bell, said: object, more: object = {}) => ({
      use: definePlugin({ setup: scope => void scope.add(Bells, 'gong', bell) }),
      name: 'svc-bells',
      manifest: { api: 1, kind: 'x', contributes: { bells: said as never } },
      ...more,
    })
    const OWNED = { tone: 'low', owner: 'ada' }

    it('takes what is word for word the same', async () => {
      await using host = await startHost({ plugins: [ringing(OWNED, { gong: OWNED })] })
      expect(host.slot(Bells).has('gong')).to.equal(true)
    })

    for (const [what, bell, said, code] of [
      ['another word', OWNED, { gong: { ...OWNED, tone: 'high' } }, 'CONTRIBUTION_DIFFERS'],
      ['a word less', { tone: 'low' }, { gong: OWNED }, 'CONTRIBUTION_DIFFERS'],
      ['a word more', OWNED, { gong: { tone: 'low' } }, 'CONTRIBUTION_DIFFERS'],
      ['names alone', OWNED, ['gong', '*'], 'CONTRIBUTION_DIFFERS'],
      ['another name', OWNED, { bell: OWNED }, 'CONTRIBUTION_UNDECLARED'],
      ['no name at all', OWNED, {}, 'CONTRIBUTION_UNDECLARED'],
      ['what needs a permission', { tone: 'low' }, { gong: { tone: 'low' } }, 'PERMISSION_MISSING'],
    ] as const)
      it(`refuses ${what}`, async () =>
        expect(await problemOf({ plugins: [ringing(bell, said)] })).to.include({ code, plugin: 'svc-bells' }))

    it('goes by the permissions that were accepted, where these are not those of the manifest', async () => {
      const [bell, said] = [{ tone: 'low' }, { gong: { tone: 'low' } }]
      await using host = await startHost({ plugins: [ringing(bell, said, { permissions: { public_routes: ['go*'] } })] })
      expect(host.report().plugins[0]?.permissions).to.deep.equal({ public_routes: ['go*'] })
    })

    it('holds a copy of the token that is older than the host', async () => {
      const { declared: _, permission: __, ...old } = Bells
      const older = ringing(OWNED, { gong: { ...OWNED, tone: 'high' } })
      const use = definePlugin({ setup: scope => void scope.add(old as typeof Bells, 'gong', OWNED) })
      const reader = entry('reader', definePlugin({ requires: { bells: Bells }, setup() {} }))
      expect(await problemOf({ plugins: [reader, { ...older, use }] })).to.include({ code: 'CONTRIBUTION_DIFFERS' })
    })
  })

  it('names an unknown slot, the nearest, and its line', async () => {
    await using dir = await folder({
      ...declaring('svc-a', { wrods: ['x'] }),
      ...declaring('svc-b', { words: ['x'], mine: ['y'] }),
    })
    const reader = entry('reader', definePlugin({ requires: { words: Words }, setup() {} }))
    const options = { plugins: ['svc-a', 'svc-b', reader], from: [dir.url], slots: ['mine'] }
    const error = await problemOf(options)
    expect(error).to.include({ code: 'SLOT_UNKNOWN', plugin: 'svc-a', where: 'package.json:10' })
    expect(error.hint).to.match(/^did you mean "words"\?. /)
    await using _free = await startHost({ plugins: ['svc-a'], from: [dir.url] })
  })

  it('names a command whose module is not there, and one whose name is taken, with line and hint', async () => {
    await using dir = await folder({
      ...declaring('svc-a', { commands: ['now', 'serve fast', 'tell'] }),
      ...declaring('svc-b', { commands: [' tell '] }),
    })
    const problems = await problemsOf({ plugins: ['svc-a', 'svc-b'], from: [dir.url], commands: { serve: 'svc' } })
    expect(
      problems.map(problem => [problem.code, problem.plugin, problem.where, problem.details.command, problem.details.by])
    ).to.deep.equal([
      ['COMMAND_TAKEN', 'svc-a', 'package.json:12', 'serve fast', 'svc'],
      ['COMMAND_TAKEN', 'svc-b', 'package.json:11', 'tell', 'svc-a'],
      ['COMMAND_MODULE_MISSING', 'svc-a', 'package.json:10', undefined, undefined],
      ['COMMAND_MODULE_MISSING', 'svc-b', 'package.json:10', undefined, undefined],
    ])
    expect(problems[2]!.hint).to.contain('Build the plugin')
    const optional = [{ use: 'svc-a', optional: true }]
    await using host = await startHost({ plugins: optional, from: [dir.url], commands: { serve: 'svc' } })
    expect(host.report().plugins[0]).to.deep.include({ name: 'svc-a', state: 'failed' })
  })

  it('is noted in the log and the report where it declares a name that is not added', async () => {
    const code = `
const Words = { what: 'slot', local: false, name: 'words', api: 1, methods: { say: 'call' }, changed: { id: 'words.changed', kind: 'series' } }
export default { requires: {}, optional: {}, setup: scope => void scope.add(Words, 'here', { text: '', say: async () => '' }) }`
    const svc = { api: 1, kind: 'x', contributes: { words: ['here', 'absent', 'some_*'] } }
    await using dir = await folder(packageFiles('svc-a', svc, code))
    const lines: string[] = []
    const log = { destination: { write: (line: string) => void lines.push(line) } }
    await using host = await startHost({ plugins: ['svc-a'], from: [dir.url], config: { log: { level: 'debug' } }, log })
    expect(host.report().plugins[0]?.absent).to.deep.equal({ words: ['absent'] })
    expect(lines.map(line => JSON.parse(line) as unknown)).to.satisfy(
      (all: { plugin: string; level: unknown; absent: unknown }[]) =>
        all.some(item => item.plugin === 'svc-a' && JSON.stringify(item.absent) === '{"words":["absent"]}')
    )
  })
})
