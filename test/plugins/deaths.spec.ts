import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { until } from '../support/wait.ts'
import { createClient } from '../support/client.ts'
import { runSvc } from '../support/command.ts'
import { startService } from '../support/service.ts'
import { configureFew, DIES, TIDES, tidesFolder } from '../support/tides.ts'
import { describeWith } from '../support/needs.ts'

describeWith('bubblewrap', 'an installed plugin that crashes repeatedly', function () {
  this.timeout(120_000)

  it('fails only its own calls, is restarted, and is finally quarantined, as svc plugins list and doctor, /health and /metrics show', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'svc-deaths-'))
    const home = join(folder, 'home')
    const svc = (...args: string[]) => runSvc(['plugins', ...args], { home, cwd: folder })
    try {
      await configureFew(folder, { isolation: { plugins: { [TIDES]: { restarts: 1 } } } }, ['metrics'])
      const installed = await svc(
        'install',
        await tidesFolder(folder, { version: '1.0.0', files: { 'index.js': DIES } }),
        '--yes'
      )
      expect(installed.code, installed.err).to.equal(0)
      await using service = await startService({ home, cwd: folder })
      const client = createClient(service.url)
      const notify = async (die: boolean) => (await client.post('/api/v1/chat', { message: `/tool tides {"die": ${die}}` })).text
      const status = async () => {
        const { plugins } = JSON.parse((await svc('list', TIDES, '--json')).out) as {
          plugins: { health: string; restarts: number }[]
        }
        return `${plugins[0]?.health} ${plugins[0]?.restarts}`
      }
      expect(await notify(false)).to.contain('high water')
      expect(await status()).to.equal('running 0')
      expect(await notify(true)).to.contain('"success":false')
      await until(status, word => word === 'running 1')
      expect(await notify(false)).to.contain('high water')
      expect(await notify(true)).to.contain('"success":false')
      await until(status, word => word === 'quarantined 1')
      expect((await svc('list', TIDES)).out).to.contain('quarantined')
      const { code, out } = await svc('doctor')
      expect(code).to.equal(1)
      expect(out.replaceAll(/\s+/g, ' '))
        .to.contain(
          `fail server ${TIDES} is quarantined: its process crashed too often, or ended workers Run svc reload to restart it`
        )
        .and.contain('ok start')
      const health = await client.get('/health')
      expect([health.status, health.text]).to.satisfy(
        ([status, text]: [number, string]) =>
          status === 200 && /"status":\s*"degraded"/.test(text) && /"plugins":\s*"degraded"/.test(text)
      )
      expect((await client.get('/metrics')).text).to.match(
        new RegExp(`^svc_plugin_quarantined\\{[^}]*"${TIDES}"[^}]*\\} 1$`, 'm')
      )
      const turn = await client.post('/api/v1/chat', { message: 'hello' })
      expect([turn.status, turn.text.includes('You said: hello')]).to.deep.equal([200, true])
      const reload = await runSvc(['reload'], { home, cwd: folder })
      expect(reload.code, reload.err).to.equal(0)
      client.close()
      // its restarts are those of the server, from when its old worker has ended: what is counted never falls then
      await until(status, word => word === 'running 1')
      expect((await svc('doctor')).out).to.match(/ok +server +all plugins run/)
    } finally {
      await rm(folder, { recursive: true, force: true, maxRetries: 10 })
    }
  })
})
