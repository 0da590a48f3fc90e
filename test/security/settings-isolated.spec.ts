// Not a unit test: it starts a server.
import { expect } from 'chai'
import { type Attacked, describeIsolated, startAttacked } from '../support/attacker.ts'

/** A plugin with settings of its own, which also tries those of the other. */
const plugin = (name: string, other: string) => `import { definePlugin } from '@svc/core'
import { Routes, SettingDefinitions, Settings } from '@svc/core/contracts'
const schema = { type: 'object', properties: { city: { type: 'string', default: 'London' }, days: { type: 'integer' } } }
export default definePlugin({
  requires: { settings: Settings },
  setup(scope, { settings }) {
    scope.add(SettingDefinitions, '${name}', { description: 'Settings', schema })
    scope.add(Routes, '${name}', {
      method: 'GET', path: '/${name}', scope: 'read', summary: 'Uses settings',
      async handle(_, ctx) {
        const owner = { principal: ctx.principal.id }
        const tried = work => work.then(value => value, error => error.code)
        const answer = { before: await tried(settings.effective('${name}', [], ctx)) }
        answer.invalid = await tried(settings.change('${name}', owner, { days: 'x' }, undefined, ctx))
        answer.changed = await tried(settings.change('${name}', owner, { city: '${name}' }, undefined, ctx))
        answer.after = await tried(settings.effective('${name}', [], ctx))
        answer.team = await tried(settings.change('${name}', { team: 'ops' }, { city: 'x' }, undefined, ctx))
        answer.other = await tried(settings.effective('${other}', [], ctx))
        answer.changedOther = await tried(settings.change('${other}', owner, { city: 'x' }, undefined, ctx))
        return { body: answer }
      },
    })
  },
})`

const manifest = (name: string) => ({
  contributes: { setting_definitions: [name], routes: { [name]: { method: 'GET', path: `/${name}`, scope: 'read' } } },
})

describeIsolated('isolated plugins with settings', function () {
  this.timeout(60_000)
  let attacked: Attacked
  before(async () => {
    attacked = await startAttacked({
      curated: ['settings'],
      plugins: [
        { name: 'svc-plugin-sun', code: plugin('sun', 'rain'), svc: manifest('sun') },
        { name: 'svc-plugin-rain', code: plugin('rain', 'sun'), svc: manifest('rain') },
      ],
    })
  })
  after(() => attacked?.[Symbol.asyncDispose]())

  it('change their own without a permission, and never those of each other', async () => {
    for (const name of ['sun', 'rain']) {
      const { before, invalid, changed, after, ...rest } = (await (
        await fetch(`${attacked.service.url}/${name}`)
      ).json()) as Record<string, { values: object }>
      expect([before?.values, invalid], name).to.deep.equal([{ city: 'London' }, 'SETTINGS_INVALID'])
      expect([changed?.values, after?.values]).to.deep.equal([{ city: name }, { city: name }])
      expect(rest.other).to.equal('NOT_PERMITTED')
      expect(rest.changedOther).to.equal('NOT_PERMITTED')
    }
  })
})
