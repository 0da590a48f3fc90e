import { Modes } from '@svc/core/contracts'
import { testHost } from '@svc/testing'
import { expect } from 'chai'

const PACKAGE = new URL('..', import.meta.url)

describe('modes', () => {
  it('offers the five documented modes', async () => {
    await using host = await testHost([PACKAGE])
    expect(host.slot(Modes).names()).to.deep.equal(['build', 'plan', 'review', 'delegate', 'explore'])
  })

  it('lets plan, review and explore neither write nor execute', async () => {
    await using host = await testHost([PACKAGE])
    for (const name of ['plan', 'review', 'explore']) {
      expect(host.slot(Modes).get(name)?.effects, name).to.not.include.members(['write'])
      expect(host.slot(Modes).get(name)?.effects, name).to.not.include.members(['execute'])
    }
  })
})
