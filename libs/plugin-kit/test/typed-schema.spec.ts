import { schema } from '@svc/core'
import { definedOf, shortList, typed, type ValueOf } from '@svc/plugin-kit'
import { expect } from 'chai'

const settings = typed.object(
  {
    name: typed.text('Name.'),
    mode: typed.choice(['fast', 'safe'], 'Mode.'),
    paths: typed.texts('Paths.'),
    size: typed.size('Size.', { default: '1M' }),
    retries: typed.number('Retries.', { minimum: 0 }),
    enabled: typed.flag('Enable it.'),
  },
  ['name']
)
type Settings = ValueOf<typeof settings>

describe('the builders of a schema', () => {
  it('give the value the type that they check', () => {
    const value: Settings = { name: 'a', mode: 'fast', paths: ['/x'], size: '2G', retries: 1, enabled: true }
    // @ts-expect-error -- the type has the choices of the schema
    const other: Settings = { ...value, mode: 'slow' }
    const { check } = schema<Settings>(settings)
    expect(check(value)).to.deep.equal([])
    expect(check(other).map(one => one.path)).to.deep.equal(['mode'])
  })

  it('refuse what is empty, unknown or missing, and fill in defaults', () => {
    const { check } = schema<Settings>(settings)
    const places = (value: object) => check(value).map(one => one.path)
    expect(places({ name: '', paths: [''], retries: -1, size: '1T' })).to.have.members(['name', 'paths[0]', 'retries', 'size'])
    expect(places({ nmae: 'a' })).to.have.members(['name', 'nmae'])
    const value = { name: 'a' }
    check(value)
    expect(value).to.deep.equal({ name: 'a', size: '1M' })
  })
})

describe('optional properties', () => {
  it('are left out if they are undefined', () => {
    expect(definedOf({ a: 1, b: undefined, c: null, d: false })).to.deep.equal({ a: 1, c: null, d: false })
  })
})

describe('a short list', () => {
  it('counts what it does not name', () => {
    expect(shortList(['a', 'b'])).to.equal('a, b')
    expect(shortList(['a', 'b', 'c', 'd'], 2)).to.equal('a, b and 2 more')
  })
})
