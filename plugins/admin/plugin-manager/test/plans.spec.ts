import type { Jobs, Peers, Store } from '@svc/core/contracts'
import { testContext } from '@svc/testing'
import { expect } from 'chai'
import { forClients, planChanged, sourceLocal } from '../src/errors.ts'
import { plansFor } from '../src/plugin-plans.ts'
import { notFound, notInstalled, setBusy, tarballUnsafe } from '../src/set/errors.ts'

const alone = { clusterId: 's1', serverId: 's1' }
/** Only whether they are there matters: changes are refused before they are called. */
const services = { store: {} as Store, jobs: {} as Jobs, peers: {} as Peers }
const error = async (work: Promise<unknown>) =>
  work.then(
    () => undefined,
    (thrown: { code: string; message: string }) => `${thrown.code} ${thrown.message}`
  )

describe('changes of plugins over HTTP', () => {
  it('are refused with the reason where they are impossible', async () => {
    const refused = [
      [plansFor(alone, { ...services, peers: undefined }), 'it runs without a supervisor, so it cannot reload'],
      [plansFor(alone, { ...services, jobs: undefined }), 'it has no background jobs'],
      [plansFor(alone, { ...services, store: undefined }), 'it has no background jobs'],
      [plansFor({ ...alone, clusterId: 'all' }, services), 'it is a server of a cluster; change each of its servers'],
    ] as const
    for (const [plans, reason] of refused) {
      expect(plans.kind).to.equal(undefined)
      const says = `UNAVAILABLE this server cannot change its plugins over HTTP: ${reason}`
      expect(await error(plans.plan({ action: 'install', name: 'a' }, testContext()))).to.equal(says)
      expect(await error(plans.apply('f'.repeat(64), testContext()))).to.equal(says)
    }
    expect(plansFor(alone, services).kind).to.include({ concurrency: 1 })
  })

  it('fail with errors that clients can tell apart, without paths of the machine', () => {
    const shown = (thrown: unknown) => {
      const { code, message, details } = forClients(thrown, { name: 'a' }) as {
        code: string
        message: string
        details: { reason?: string }
      }
      return [code, message, details.reason]
    }
    expect(shown(notFound('a', 'package', []))).to.deep.equal([
      'INVALID_VALUE',
      'a the registry has no such package, or hides it',
      'not found',
    ])
    expect(shown(notInstalled('a', undefined))).to.deep.equal(['INVALID_VALUE', 'a is not installed', 'not found'])
    expect(shown(setBusy('install b', 7, 'now'))[0]).to.equal('UNAVAILABLE')
    const unsafe = 'a its tarball has a link (…/passwd)'
    expect(shown(tarballUnsafe('a', 'has a link (/etc/x/passwd)'))).to.deep.equal(['INVALID_VALUE', unsafe, unsafe])
    for (const own of [planChanged(['x']), sourceLocal('a', 'folder')]) expect(forClients(own, { name: 'a' })).to.equal(own)
    expect(forClients('thrown', { name: 'a' })).to.equal('thrown')
  })
})
