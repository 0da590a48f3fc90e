import { existsSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Checks, Counts, Store } from '@svc/core/contracts'
import { testHost } from '@svc/testing'
import { expect } from 'chai'
import { SPACE, temporaryFolder, ctx } from './support.ts'

const PLUGIN = new URL('..', import.meta.url)

describe('the plugin store-sqlite', () => {
  it('provides the store on store.path and says in the health that it is there', async () => {
    await using folder = await temporaryFolder()
    const path = join(folder.path, 'deep', 'my.db')
    {
      await using host = await testHost([PLUGIN], { config: { store: { path } } })
      const store = host.service(Store)
      expect(await store.open(SPACE, ctx)).to.deep.equal({ version: 0 })
      await store.batch([{ op: 'put', collection: 'notes', key: 'a', value: { n: 1 } }], {}, ctx)
      const check = host.slot(Checks).get('database')!
      expect(await check.probe(ctx)).to.deep.equal({
        status: 'healthy',
        detail: { kind: 'sqlite', durable: true, scope: 'machine', role: 'primary', clock_offset_ms: 0 },
      })
    }
    await using host = await testHost([PLUGIN], { config: { store: { path } } })
    const store = host.service(Store)
    expect(await store.open(SPACE, ctx)).to.deep.equal({ version: 1 })
    expect(await store.get('notes', 'a', ctx)).to.deep.equal({ key: 'a', version: 1, value: { n: 1 } })
  })

  it('stores the file in the svc home by default', async () => {
    await using folder = await temporaryFolder()
    const before = process.env.SVC_HOME
    process.env.SVC_HOME = join(folder.path, 'home')
    try {
      await using host = await testHost([PLUGIN])
      await host.service(Store).open(SPACE, ctx)
      expect(existsSync(join(folder.path, 'home', 'svc.db'))).to.equal(true)
    } finally {
      if (before === undefined) delete process.env.SVC_HOME
      else process.env.SVC_HOME = before
    }
  })

  it('says in the health why it does not work, without any path', async () => {
    await using folder = await temporaryFolder()
    const path = join(folder.path, 'svc.db')
    await using host = await testHost([PLUGIN], { config: { store: { path } } })
    const check = host.slot(Checks).get('database')!
    renameSync(path, `${path}.away`)
    const report = await check.probe(ctx)
    expect(report.status).to.equal('unhealthy')
    expect(report.reason).to.be.a('string').and.not.include(folder.path)
    renameSync(`${path}.away`, path)
    expect((await check.probe(ctx)).status).to.equal('healthy')
  })

  it('starts with a file of counts that is damaged, counts anew, and says so in the health and in the log', async () => {
    await using folder = await temporaryFolder()
    const path = join(folder.path, 'svc.db')
    writeFileSync(`${path}.counts`, 'what a power cut left, '.repeat(500))
    const lines: string[] = []
    const log = { level: 'warn', destination: { write: (line: string) => void lines.push(line) } } as const
    await using host = await testHost([PLUGIN], { config: { store: { path } }, log })
    const { counted } = await host.service(Counts).count('k', [{ ms: 60_000, limit: 1 }], ctx)
    expect(counted).to.equal(true)
    const report = await host.slot(Checks).get('database')!.probe(ctx)
    expect([report.status, lines.length]).to.deep.equal(['degraded', 1])
    expect(report.reason).to.match(/^the file of counts was damaged/)
    expect(lines[0]).to.include('the file of counts was damaged')
  })
})
