import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { runSvc } from './support/command.ts'
import { newHome } from './support/service.ts'

describe('a wrong store.url', function () {
  this.timeout(120_000)
  const homes: string[] = []
  after(async () => {
    for (const home of homes) await rm(home, { recursive: true, force: true })
  })
  const run = async (words: readonly string[], env: Record<string, string>, config: object = {}) => {
    const home = await newHome()
    homes.push(home)
    await writeFile(join(home, 'svc.config.json'), JSON.stringify(config))
    return runSvc(words, { home, env })
  }

  it('is explained by commands and by a start, without what it can contain', async () => {
    const cases: [string[], string][] = [
      [['serve', '--port', '0'], 'postgres//svc:s3cret@db/svc'],
      [['config', 'check'], 'mysql://svc:s3cret@db/svc'],
      [['store', 'status'], 'sqlite:/s3cret/x.db'],
      [['store', 'init'], 'svc:s3cret@db/svc'],
      [['tokens', 'list'], 'mysql://svc:s3cret@db/svc'],
    ]
    for (const [words, url] of cases) {
      const { code, out, err } = await run(words, { SVC_STORE__URL: url })
      expect(code, words.join(' ')).to.equal(1)
      expect(err, words.join(' ')).to.include('STORE_CONFIG_INVALID')
      expect(err).to.include('store.url must begin with postgres:// or postgresql://').and.include('set store.path')
      expect(err).to.not.include('not a known key')
      expect(out + err).to.not.include('s3cret')
    }
  })

  it('of another type is an error of the configuration', async () => {
    const { code, err } = await run(['config', 'check'], {}, { store: { url: 7 } })
    expect(code).to.equal(1)
    expect(err).to.include('store.url').and.not.include('not a known key')
  })

  it('leaves the URL of a store of another plugin alone', async () => {
    const plugins = [{ use: '@svc/plugin-store-sqlite', enabled: false }]
    const { err } = await run(['config', 'check'], { SVC_STORE__URL: 'mysql://svc:s3cret@db/svc' }, { plugins })
    expect(err).to.not.include('must begin with postgres://').and.not.include('s3cret')
  })
})
