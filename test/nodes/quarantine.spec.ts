import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Postgres, startPostgres } from '@svc/testing/engines'
import { expect } from 'chai'
import { createClient } from '../support/client.ts'
import { runSvc } from '../support/command.ts'
import { describeWith, itWith } from '../support/needs.ts'
import { startNode } from '../support/nodes.ts'
import type { Service } from '../support/service.ts'
import { DIES, TIDES, tidesFile } from '../support/tides.ts'
import { until } from '../support/wait.ts'

describeWith('postgres', 'an isolated plugin that crashes too often on one node of a cluster', () => {
  const stack = new AsyncDisposableStack()
  let postgres: Postgres
  let folder: string
  before(async () => {
    postgres = stack.use(await startPostgres({ settings: { max_connections: 120 } }))
    folder = await mkdtemp(join(tmpdir(), 'svc-quarantine-'))
    stack.defer(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }))
  })
  after(() => stack.disposeAsync())

  itWith('bubblewrap', it)(
    'is quarantined on all nodes, those that join later too, and a reload of one releases it',
    async () => {
      const config = { store: { url: postgres.url }, isolation: { plugins: { [TIDES]: { restarts: 1 } } } }
      const start = async () => stack.use(await startNode({ config, few: ['metrics'] }))
      const svc = async ({ home }: Service, ...args: string[]) => {
        const { code, out, err } = await runSvc(args, { home, cwd: folder })
        expect(code, err).to.equal(0)
        return out
      }
      const stateOf = async ({ url }: Service) => {
        const { text } = await createClient(url, { keepAlive: false }).get('/metrics')
        const value = (name: string) => new RegExp(`^svc_plugin_${name}\\{[^}]*"${TIDES}"[^}]*\\} (\\d+)$`, 'm').exec(text)?.[1]
        return `${value('quarantined') === '1' ? 'quarantined' : 'running'} ${value('restarts_total')}`
      }
      const turn = async ({ url }: Service, die = false) =>
        (await createClient(url, { keepAlive: false }).post('/api/v1/chat', { message: `/tool tides {"die": ${die}}` })).text
      const works = (node: Service) =>
        until(
          () => turn(node),
          text => text.includes('high water')
        )
      const isOut = (node: Service, restarts: number) =>
        until(
          () => stateOf(node),
          state => state === `quarantined ${restarts}`
        )

      const one = await start()
      await svc(one, 'plugins', 'install', await tidesFile(folder, { version: '1.0.0', files: { 'index.js': DIES } }), '--yes')
      const two = await start()
      for (const node of [one, two]) await works(node)
      await turn(one, true)
      await works(one)
      await turn(one, true)
      await isOut(one, 1)
      // it is not tried on one node after the other
      await isOut(two, 0)
      expect(await turn(two)).to.not.include('high water')
      await two.seen(/it ended too often in another worker/)

      const three = await start()
      await isOut(three, 0)
      await svc(two, 'reload')
      for (const node of [two, one, three]) await works(node)
      await one.seen(/is released from quarantine/)
      expect(await stateOf(three)).to.match(/^running /)
    }
  ).timeout(300_000)
})
