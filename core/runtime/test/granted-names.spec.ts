import { expect } from 'chai'
import { prefixOf } from '../isolation/granted-store.ts'

const NAMES = ['a', 'a:b', 'a%3Ab', 'a:', ':a', 'a%', '@svc/plugin-chat', '', 'ä:b']

describe('the names of leases, counts, topics and permits of isolated plugins', () => {
  it('are never those of another plugin, whatever the plugins are called', () => {
    for (const one of NAMES)
      for (const other of NAMES) expect(prefixOf(one).startsWith(prefixOf(other)), `${one} and ${other}`).to.equal(one === other)
  })

  it('keep the name of a package', () => {
    expect(prefixOf('@svc/plugin-chat')).to.equal('plugin:@svc/plugin-chat:')
  })
})
