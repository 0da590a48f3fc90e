import { type CallContext, definePlugin, defineSlot, type Manifest, type SlotChange, type SlotView, startHost } from '@svc/core'
import { expect } from 'chai'

interface Item {
  call(ctx: CallContext): Promise<string>
}
const Tools = defineSlot<Item>('tools', { api: 1, methods: { call: 'call' } })
const Words = defineSlot<Item>('words', { api: 1, methods: { call: 'call' } })

/** A host with the tools pgquery, pgschema and shell, and a plugin with these permissions that uses them. */
async function open(permissions: Manifest['permissions'], accepted?: Manifest['permissions']) {
  const changes: SlotChange[] = []
  let tools: SlotView<Item> | undefined
  let words: SlotView<Item> | undefined
  let add: ((name: string) => void) | undefined
  const item = (name: string): Item => ({ call: async () => name })
  const owner = definePlugin({
    setup(scope) {
      for (const name of ['pgquery', 'pgschema', 'shell']) scope.add(Tools, name, item(name))
      scope.add(Words, 'shell', item('shell'))
      add = name => void scope.add(Tools, name, item(name))
    },
  })
  const user = definePlugin({
    requires: { tools: Tools, words: Words },
    setup(scope, given) {
      ;({ tools, words } = given)
      scope.tap(Tools.changed, change => void changes.push(change))
    },
  })
  const manifest = { api: 1, kind: 'x', ...(permissions ? { permissions } : {}) }
  const use = { use: user, name: 'svc-user', manifest, ...(accepted ? { permissions: accepted } : {}) }
  const host = await startHost({ plugins: [{ use: owner, name: 'svc-owner' }, use], log: { level: 'silent' } })
  return { tools: tools!, words: words!, add: add!, changes, [Symbol.asyncDispose]: () => host.close() }
}

describe('a plugin that names single tools', () => {
  it('sees them and no others, by no member of the slot', async () => {
    await using run = await open({ tools: ['pgquery'] })
    const { tools } = run
    expect(tools.names()).to.deep.equal(['pgquery'])
    expect(tools.entries().map(([name]) => name)).to.deep.equal(['pgquery'])
    expect([tools.size, tools.has('pgquery'), tools.owner('pgquery')]).to.deep.equal([1, true, 'svc-owner'])
    for (const name of ['shell', 'pgschema', 'pgquery ', '', '*', '__proto__'])
      expect([tools.get(name), tools.has(name), tools.owner(name)], name).to.deep.equal([undefined, false, undefined])
    expect(run.words.names(), 'of other slots it sees everything').to.deep.equal(['shell'])
  })

  it('sees changes of these alone', async () => {
    await using run = await open({ tools: ['pg*'] })
    expect(run.tools.names()).to.deep.equal(['pgquery', 'pgschema'])
    run.add('pgcopy')
    run.add('sudo')
    await new Promise(resolve => setImmediate(() => setImmediate(resolve)))
    expect(run.changes.flatMap(({ added }) => added))
      .to.include('pgcopy')
      .and.not.include('sudo')
    expect(run.tools.get('sudo')).to.equal(undefined)
  })

  it('goes by what was accepted, not by what its manifest asks for', async () => {
    await using run = await open({ tools: ['pgquery', 'shell'] }, { tools: ['pgquery'] })
    expect(run.tools.names()).to.deep.equal(['pgquery'])
    await using none = await open({ tools: ['pgquery'] }, { tools: [] })
    expect(none.tools.size).to.equal(0)
  })

  it('sees all where it may use the whole slot as well, so that an update gains nothing by naming fewer', async () => {
    for (const permissions of [{ services: ['tools'], tools: ['pgquery'] }, { services: ['to*'] }, {}, undefined]) {
      await using run = await open(permissions)
      expect(run.tools.size).to.equal(3)
    }
  })
})
