import { Conversations } from '@svc/core/contracts'
import { conversationsKit, testHost } from '@svc/testing'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pluginFolder } from '../../../../test/support/plugin-folder.ts'

describe('conversations by the kit', () => {
  const open = async () => {
    const folder = await mkdtemp(join(tmpdir(), 'svc-conversations-'))
    const start = () =>
      testHost(['store-sqlite', 'conversations'].map(pluginFolder), { config: { store: { path: join(folder, 'svc.db') } } })
    const hosts = [await start(), await start()] as const
    return {
      conversations: hosts[0].service(Conversations),
      other: hosts[1].service(Conversations),
      searches: true,
      async close() {
        for (const host of hosts) await host.close()
        await rm(folder, { recursive: true, force: true })
      },
    }
  }
  for (const one of conversationsKit(open)) it(one.title, one.run)
})
