import { Routes } from '@svc/core/contracts'
import { testHost } from '@svc/testing'
import { expect } from 'chai'
import { pluginFolder } from '../../../../test/support/plugin-folder.ts'

describe('the routes of the management API', () => {
  const namesWith = async (...plugins: readonly string[]) => {
    await using host = await testHost([...plugins, 'admin-api'].map(pluginFolder), { strict: false })
    return host.slot(Routes).names()
  }

  it('are missing without their service', async () => {
    // a host without peers is a cluster of one node
    expect(await namesWith()).to.deep.equal(['nodes'])
  })

  it('reach jobs, schedules and the store of a host', async () => {
    const names = await namesWith('store-memory', 'jobs', 'schedules')
    expect(names).to.include.members(['jobs', 'job_add', 'schedules', 'schedule_preview', 'store'])
    // a store in memory cannot be backed up
    expect(names).to.not.include('store_backup')
  })

  it('do not reload or configure a host without a supervisor', async () => {
    const names = await namesWith('store-memory', 'auth-bearer')
    expect(names).to.include('token_create')
    expect(names.filter(name => /^(reload|config)/.test(name))).to.deep.equal([])
  })
})
