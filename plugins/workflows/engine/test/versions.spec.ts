import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { codeOf } from '@svc/core'
import { Workflows } from '@svc/core/contracts'
import { testContext } from '@svc/testing'
import { expect } from 'chai'
import { ctx, inFolder, node, openEngine, until } from './support.ts'

const text = (version: string, type = 'transform') => `name: grows
version: "${version}"
nodes:
  go: { type: wait, event: go, next: done }
  done: { type: ${type}, value: "${version}" }
`
const old = node(
  async function* () {
    yield { type: 'output', output: 'old' }
  },
  { settings: { type: 'object', properties: { value: {} } } }
)

describe('versions of a workflow side by side', () => {
  it('keep their runs over a change of the file and a restart, and are listed with them', async function () {
    this.timeout(20_000)
    await inFolder(async folder => {
      const file = join(folder, 'grows.yaml')
      const config = { workflows: { roots: [folder] } }
      const db = join(folder, 'store.db')
      const ids: string[] = []
      {
        await using host = await openEngine({ config, db })
        const workflows = host.service(Workflows)
        for (const version of ['1', '2', '2']) {
          await writeFile(file, text(version))
          const { id } = await workflows.start({ workflow: 'grows' }, ctx)
          await until(async () => (await workflows.get(id, ctx)).waiting.length > 0)
          ids.push(id)
        }
        await writeFile(file, text('3'))
        const versions = await workflows.versions('grows', ctx)
        expect(versions.map(({ version, isCurrent, open }) => [version, isCurrent, open])).to.have.deep.members([
          ['3', true, 0],
          ['2', false, 2],
          ['1', false, 1],
        ])
        expect(versions[0]!.version).to.equal('3')
        const first = await workflows.get(ids[0]!, ctx)
        expect(versions.find(({ version }) => version === '1')!.definition).to.equal(first.definition)
        // others see the current version only, and no runs
        const other = testContext({ principal: { id: 'other', scopes: ['workflows'] } })
        expect((await workflows.versions('grows', other)).map(({ version, open }) => [version, open])).to.deep.equal([['3', 0]])
        expect(await workflows.versions('nothing', ctx).catch(codeOf)).to.equal('WORKFLOW_UNKNOWN')
        expect(await workflows.versions('../grows.yaml', ctx).catch(codeOf)).to.equal('INVALID_VALUE')
      }
      await using host = await openEngine({ config, db })
      const workflows = host.service(Workflows)
      for (const id of ids) await workflows.signal(id, { name: 'go', data: null }, ctx)
      const results = await Promise.all(ids.map(async id => (await workflows.settled(id, 10_000, ctx)).result))
      expect(results).to.deep.equal(['1', '2', '2'])
      expect((await workflows.versions('grows', ctx)).map(({ open }) => open)).to.deep.equal([0, 0, 0])
    })
  })

  it('whose node types are gone say so: in the list, and in the error of the run, which the current version can replay', async () => {
    await inFolder(async folder => {
      const file = join(folder, 'grows.yaml')
      const config = { workflows: { roots: [folder] } }
      const db = join(folder, 'store.db')
      let id = ''
      {
        await using host = await openEngine({ config, db, nodes: { old } })
        const workflows = host.service(Workflows)
        await writeFile(file, text('1', 'old'))
        id = (await workflows.start({ workflow: 'grows' }, ctx)).id
        await until(async () => (await workflows.get(id, ctx)).waiting.length > 0)
      }
      await writeFile(file, text('2'))
      await using host = await openEngine({ config, db })
      const workflows = host.service(Workflows)
      const [, first] = await workflows.versions('grows', ctx)
      expect(first).to.deep.include({ version: '1', open: 1, missing: ['old'] })
      await workflows.signal(id, { name: 'go', data: null }, ctx)
      const run = await workflows.settled(id, 10_000, ctx)
      expect([run.status, run.error?.code, run.error?.message]).to.deep.equal([
        'failed',
        'NODE_TYPE_UNKNOWN',
        'the node "done" has the type "old", which no loaded plugin provides',
      ])
      const { id: replay } = await workflows.replay(id, { from: 'done', definition: 'current' }, ctx)
      expect((await workflows.settled(replay, 10_000, ctx)).result).to.equal('2')
    })
  })
})
