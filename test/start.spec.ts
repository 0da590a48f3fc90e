import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { createClient } from './support/client.ts'
import { newHome, startService } from './support/service.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

/** What a person has: npm's own settings must not come from the npm that runs these tests. */
const env = (home: string) => ({
  ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('npm_'))),
  SVC_HOME: home,
})

describe('npm start in the repository', () => {
  let home = ''
  beforeEach(async () => {
    home = await newHome()
  })
  afterEach(() => rm(home, { recursive: true, force: true }))

  it('passes arguments through and installs nothing when nothing has changed, every time', async () => {
    for (const mode of ['plan', 'review']) {
      await using service = await startService({
        command: ['npm', 'start', '--'],
        cwd: ROOT,
        env: env(home),
        home,
        args: ['--mode', mode],
      })
      expect(service.output()).not.to.match(/install/i)
      const client = createClient(service.url, { keepAlive: false })
      expect((await client.get('/api/v1/config/effective')).body).to.include({ mode })
    }
  })

  it('takes another configuration file that is named behind it', async () => {
    const file = join(home, 'other.mjs')
    await writeFile(file, "export default { selection: { mode: 'plan' } }\n")
    await using service = await startService({
      command: ['npm', 'start', '--'],
      cwd: ROOT,
      env: env(home),
      home,
      args: ['--config', file],
    })
    const client = createClient(service.url, { keepAlive: false })
    expect((await client.get('/api/v1/config/effective')).body).to.include({ mode: 'plan' })
  })

  it('drains and ends when npm gets a signal', async () => {
    await using service = await startService({ command: ['npm', 'start', '--'], cwd: ROOT, env: env(home), home })
    const ended = once(service.child, 'exit')
    service.child.kill('SIGTERM')
    expect(await ended).to.deep.equal([0, null])
    const left = await createClient(service.url, { keepAlive: false })
      .get('/health/live')
      .catch((error: NodeJS.ErrnoException) => error.code)
    expect(left).to.equal('ECONNREFUSED')
  })

  it('has the command line beside it', async () => {
    const { version } = JSON.parse(await readFile(new URL('../cli/package.json', import.meta.url), 'utf8')) as { version: string }
    const { stdout, stderr } = await promisify(execFile)('npm', ['run', '--silent', 'svc', '--', '--version'], {
      cwd: ROOT,
      env: env(home),
    })
    expect(stdout).to.include(version)
    expect(stderr).not.to.match(/install/i)
  })
})
