import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { runSvc } from '../support/command.ts'
import { describeWith } from '../support/needs.ts'
import { inNewHome, startService } from '../support/service.ts'
import { until } from '../support/wait.ts'
import { openBrowser, openConsole } from './support/browser.ts'

const AUTH = { SVC_API_KEY: 'the-key-of-the-operator', SVC_SERVER__AUTH__ENABLED: 'true' }

/** The program that opens an address, as the operating system has one. It writes down what it gets. */
async function writeOpener(folder: string): Promise<string> {
  const opened = join(folder, 'opened')
  await mkdir(join(folder, 'bin'))
  for (const name of ['xdg-open', 'open']) {
    const file = join(folder, 'bin', name)
    await writeFile(file, `#!/bin/sh\nprintf '%s\\n' "$#" "$@" > '${opened}.part' && mv '${opened}.part' '${opened}'\n`)
    await chmod(file, 0o755)
  }
  return opened
}

describeWith('chromium', 'svc console --open', function () {
  this.timeout(120_000)
  let folder: string
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'svc-opener-'))
  })
  after(() => rm(folder, { recursive: true, force: true }))

  it('hands the address to the browser of the person, who is signed in there', async () => {
    const opened = await writeOpener(folder)
    await using service = await startService({ env: AUTH })
    const env = { ...AUTH, PATH: `${join(folder, 'bin')}:${process.env.PATH}` }
    const { code, out, err } = await runSvc(['console', '--open'], { home: service.home, env })
    expect(code, err).to.equal(0)
    const [count, url = ''] = (await until(() => readFile(opened, 'utf8').catch(() => ''), Boolean)).split('\n')
    expect([count, url]).to.deep.equal(['1', out.trim()])
    const browser = await openBrowser()
    try {
      await using view = await openConsole(browser, url)
      await view.page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor()
      expect(view.page.url()).to.equal(`${service.url}/console/overview`)
      expect(view.problems).to.deep.equal([])
    } finally {
      await browser.close()
    }
  })

  it('prints the address if the machine has no such program', async () => {
    await using service = await startService({ env: AUTH })
    const env = { ...AUTH, PATH: join(folder, 'nothing') }
    const { code, out, err } = await runSvc(['console', '--open'], { home: service.home, env })
    expect(code, err).to.equal(0)
    expect(out).to.match(/\/console#code=console_/)
  })
})

describe('a server without the console', function () {
  this.timeout(60_000)

  it('has none of its places, and all of its API', () =>
    inNewHome(async home => {
      const plugins = [{ use: '@svc/plugin-console', enabled: false }]
      await writeFile(join(home, 'svc.config.json'), JSON.stringify({ plugins }))
      await using service = await startService({ home })
      const status = async (path: string) => (await fetch(`${service.url}${path}`, { redirect: 'manual' })).status
      for (const path of ['/console', '/console/', '/console/overview', '/console/files/x.js'])
        expect(await status(path), path).to.equal(404)
      const root = await fetch(service.url, { headers: { accept: 'text/html' }, redirect: 'manual' })
      expect(root.headers.get('location') ?? '').not.to.contain('console')
      expect(await status('/api/v1/status')).to.equal(200)
    }))
})
