import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Store } from '@svc/core/contracts'
import { jobsKit } from '@svc/testing'
import { openStore, openTwo } from './support.ts'

describe('background jobs', () => {
  describe('in memory', () => {
    const open = async () => {
      const host = await openStore('store-memory')
      return openTwo(host.service(Store), host.service(Store), () => host.close())
    }
    for (const testCase of jobsKit(open)) it(testCase.title, testCase.run)
  })

  describe('in a file', () => {
    const open = async () => {
      const folder = await mkdtemp(join(tmpdir(), 'svc-jobs-'))
      const config = { store: { path: join(folder, 'svc.db') } }
      const [first, second] = [await openStore('store-sqlite', config), await openStore('store-sqlite', config)]
      return openTwo(first.service(Store), second.service(Store), async () => {
        await Promise.all([first.close(), second.close()])
        await rm(folder, { recursive: true, force: true })
      })
    }
    for (const testCase of jobsKit(open)) it(testCase.title, testCase.run)
  })
})
