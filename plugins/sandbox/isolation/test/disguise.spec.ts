import { type AnyService, definePlugin, type Plugin, startHost } from '@svc/core'
import { Isolation, type IsolationRequest } from '@svc/core/contracts'
import { isolate } from '@svc/runtime/isolation'
import { failureOf } from '@svc/testing'
import { expect } from 'chai'
import { variablesFor } from '../src/policy.ts'

const NAME = 'svc-plugin-disguised'
const DISGUISE: AnyService = { what: 'service', name: 'weather.data', api: 1, methods: Isolation.methods, hooks: {} }

/** A plugin that says of itself what it likes; nothing of it is ever run here. */
const declaring = (declares: object, services: readonly string[] = []): Promise<Plugin> =>
  isolate(
    { name: NAME, module: 'file:///nowhere/index.js', confinement: { folder: '/nowhere', permissions: { services } } },
    {},
    { requires: {}, optional: {}, ...declares }
  )

/** A policy that notes what it is asked, and starts nothing. */
function policyOf(provides: AnyService) {
  const asked: IsolationRequest[] = []
  const nothing = async () => []
  async function* never() {}
  const prepare = async (request: IsolationRequest) => {
    asked.push(request)
    throw new Error('nothing is started here')
  }
  const plugin = definePlugin({
    provides,
    setup: () =>
      ({ prepare, release: nothing, refused: nothing, look: nothing, quarantine: nothing, quarantined: never }) as never,
  })
  return { plugin, asked }
}

async function started(use: Plugin, config: object = {}, others: readonly Plugin[] = []): Promise<readonly IsolationRequest[]> {
  const { plugin, asked } = policyOf(Isolation)
  const plugins = [plugin, ...others].map((other, at) => ({ use: other, name: `other-${at}` }))
  await failureOf(
    startHost({ plugins: [...plugins, { use, name: NAME }], config: config as never, log: { destination: { write() {} } } })
  )
  return asked
}

describe('what an isolated plugin says of itself', () => {
  it('brings no policy of its own, whatever it calls what it asks for', async () => {
    const other = policyOf(DISGUISE)
    const disguised = await declaring({ optional: { '~isolation': DISGUISE } }, [DISGUISE.name])
    const asked = await started(disguised, {}, [other.plugin])
    expect(asked).to.have.length(1)
    expect(other.asked).to.deep.equal([])
  })

  it('calls the hooks of its own service alone, and sees the changes of a slot by no other hook', async () => {
    const hooks = { x: { id: 'chat.turn', kind: 'waterfall' } }
    const slot = { what: 'slot', name: 'own', api: 1, methods: {}, local: false, changed: { id: 'chat.turn', kind: 'waterfall' } }
    const { provides, requires } = await declaring({ provides: { ...DISGUISE, hooks }, requires: { slot } }, [
      'own',
      DISGUISE.name,
    ])
    expect(provides?.hooks).to.deep.equal({ x: { id: 'weather.data.x', kind: 'waterfall' } })
    expect(requires.slot).to.have.deep.property('changed', { id: 'own.changed', kind: 'series' })
  })

  it('is no service to others without being permitted to', async () => {
    expect(await failureOf(declaring({ provides: DISGUISE }))).to.have.deep.property('details', { services: ['weather.data'] })
    await declaring({ provides: DISGUISE }, ['weather.data'])
  })

  it('is refused in words where it is not of the form of a plugin', async () => {
    const slot = { what: 'slot', name: 'own', api: 1, methods: {} }
    const wrong: [object, string][] = [
      [{ section: 5 }, 'section must be string, was 5'],
      [{ instances: 'x'.repeat(300) }, 'instances must have at most 200 characters'],
      [{ config: 'all' }, 'config must be object or boolean'],
      [{ requires: null }, 'requires must be object, was null'],
      [{ requires: { a: slot, b: { ...slot, methods: { x: 'get' } } } }, 'requires.b.methods.x must be one of'],
      [{ optional: { a: { ...slot, what: 'all' } } }, 'optional.a.what must be one of'],
      [{ provides: { ...DISGUISE, hooks: { x: { kind: 'own' } } } }, 'provides.hooks.x.kind must be one of'],
      [{ more: 'x'.repeat(1_048_577) }, 'more than 1048576 characters'],
    ]
    for (const [declares, words] of wrong) {
      const error = await failureOf(declaring(declares))
      expect(error, words).to.include({ code: 'PLUGIN_INVALID', plugin: NAME })
      expect(error.message).to.include(words)
    }
    await declaring({ provides: { ...DISGUISE, hooks: undefined } }, [DISGUISE.name])
  })

  it('cannot hold up the host by a schema that takes for ever', async () => {
    const slow = { type: 'string', pattern: '^(a+)+$', default: `${'a'.repeat(31)}!` }
    const { config } = await declaring({ section: 'slow', config: { type: 'object', properties: { slow } } })
    const [fault, ...others] = config!.check({})
    expect(others).to.deep.equal([])
    expect(fault?.message).to.match(/^cannot be checked: .* takes longer than 2000 ms$/)
  })

  it('fills nothing of what was permitted from the defaults of its schema', async () => {
    const properties = { folder: { type: 'string', default: '/' }, key_env: { type: 'string', default: '*' } }
    const found = { section: 'wx', config: { type: 'object', properties, default: { folder: '/etc' } } }
    const values = async (config: object) => (await started(await declaring(found), config)).map(asked => asked.config?.value)
    expect(await values({})).to.deep.equal([{}])
    expect(await values({ wx: { folder: '/srv' } })).to.deep.equal([{ folder: '/srv' }])
  })

  it('is given variables by stars at once, however many', () => {
    const all = { SVC_A_KEY: '1', SVC_A: '2', LONG_NAME_OF_A_VARIABLE_THAT_IS_THERE: '3' }
    const named = (...words: string[]) => Object.keys(variablesFor(words, all))
    expect(named('SVC_*')).to.deep.equal(['SVC_A_KEY', 'SVC_A'])
    expect(named('SVC*_*KEY')).to.deep.equal(['SVC_A_KEY'])
    expect(named('SVC_A*A', 'svc_*', '_A*')).to.deep.equal([])
    expect(named(`${'*'.repeat(14)}X`)).to.deep.equal([])
  })
})
