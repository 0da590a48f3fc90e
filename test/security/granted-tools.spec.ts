import { setTimeout as wait } from 'node:timers/promises'
import { expect } from 'chai'
import { type Attacked, describeIsolated, startAttacked } from '../support/attacker.ts'

/** Tools and providers that the attacker would like to call. */
const OWNER = `import { definePlugin } from '@svc/core'
import { Providers, Tools } from '@svc/core/contracts'
const tool = name => ({ description: name, category: 'text', effects: [], parameters: { type: 'object' }, call: async () => ({ content: [{ type: 'text', text: 'called ' + name }] }) })
export default definePlugin({
  setup(scope) {
    for (const name of ['pgquery', 'secret_tool']) scope.add(Tools, name, tool(name))
    const failing = async () => { throw new Error('called') }
    scope.add(Providers, 'secret_provider', { features: { streaming: true }, models: async () => ({ models: [], complete: false }), countTokens: async () => 1, chat: failing, probe: async () => {} })
    setTimeout(() => scope.add(Tools, 'late_tool', tool('late_tool')), 500)
  },
})`

/** Tries every way to another tool than pgquery: the view, changes, a second name for the slot, messages of its own. */
const ATTACK = `import { definePlugin } from '@svc/core'
import { Providers, Routes, Tools } from '@svc/core/contracts'
const { __proto__: _, ...plain } = Tools
export default definePlugin({
  requires: { tools: Tools, again: { ...plain, methods: { ...Tools.methods } }, providers: Providers },
  setup(scope, { tools, again, providers }) {
    const seen = []
    scope.tap(Tools.changed, ({ added }) => void seen.push(...added))
    scope.add(Routes, 'attack', {
      method: 'GET', path: '/attack', scope: 'read', summary: 'Attacks',
      async handle(_, ctx) {
        const tried = {}
        for (const [key, view] of Object.entries({ tools, again })) {
          tried[key] = view.names()
          for (const name of ['pgquery', 'secret_tool', 'late_tool']) {
            const item = view.get(name)
            tried[key + ' ' + name] = item ? (await item.call({}, ctx)).content[0].text : 'none'
          }
        }
        tried.providers = [...providers.names(), ...(providers.get('secret_provider') ? ['secret_provider, by its name'] : [])]
        tried.seen = seen
        return { body: tried }
      },
    })
  },
})`

const OTHER = (requires: string, more = '') => `import { definePlugin, defineService } from '@svc/core'
import { Providers, Tools } from '@svc/core/contracts'
const Mine = defineService('tools', { api: 1, methods: {} })
export default definePlugin({ requires: ${requires}, ${more} setup: () => ({}) })`

describeIsolated('an isolated plugin that names single tools and providers', function () {
  this.timeout(60_000)
  let attacked: Attacked
  before(async () => {
    attacked = await startAttacked({
      plugins: [
        {
          name: 'svc-plugin-owner',
          code: OWNER,
          isolation: 'in-process',
          svc: { contributes: { tools: ['*'], providers: ['*'] } },
        },
        {
          name: 'svc-plugin-attack',
          code: ATTACK,
          svc: {
            contributes: { routes: { attack: { method: 'GET', path: '/attack', scope: 'read' } } },
            permissions: { tools: ['pgquery'], providers: ['local'] },
          },
        },
      ],
    })
  })
  after(() => attacked?.[Symbol.asyncDispose]())

  it('calls these, and finds no other, now or later', async () => {
    await wait(1_000)
    const answer = await fetch(`${attacked.service.url}/attack`)
    const tried = (await answer.json()) as Record<string, unknown>
    for (const key of ['tools', 'again']) {
      expect(tried[key]).to.deep.equal(['pgquery'])
      expect(tried[`${key} pgquery`]).to.equal('called pgquery')
      for (const name of ['secret_tool', 'late_tool']) expect(tried[`${key} ${name}`], name).to.equal('none')
    }
    expect(tried.providers).to.deep.equal(['local'])
    for (const name of ['secret_tool', 'late_tool']) expect(tried.seen).to.be.an('array').and.not.include(name)
  })

  for (const [title, code, permissions] of [
    ['no permission for them', OTHER('{ tools: Tools }'), {}],
    ['an empty list', OTHER('{ tools: Tools }'), { tools: [] }],
    ['a list of tools, and uses providers', OTHER('{ providers: Providers }'), { tools: ['pgquery'] }],
    ['a list of tools, and provides a service of that name', OTHER('{}', 'provides: Mine,'), { tools: ['pgquery'] }],
    ['a list of tools, and requires a service of that name', OTHER('{ tools: Mine }'), { tools: ['pgquery'] }],
  ] as const)
    it(`does not start with ${title}`, async () => {
      const svc = { permissions }
      const failed = await startAttacked({ plugins: [{ name: 'svc-plugin-greedy', code, svc }] }).then(
        async item => (await item[Symbol.asyncDispose](), 'it started'),
        (error: Error) => error.message
      )
      expect(failed).to.include('NOT_PERMITTED').and.include('svc-plugin-greedy')
    })
})
