import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { planChange, readLock } from '@svc/plugin-manager/set'
import { expect } from 'chai'
import { runSvc } from '../support/command.ts'
import { COMPILED, SVC } from '../support/entry.ts'
import { configureFew, TIDES, tidesFolder } from '../support/tides.ts'

describe('a command that changes the plugins of a home while another process does', () => {
  it('waits until the other one has ended', async () => {
    const home = await mkdtemp(join(tmpdir(), 'svc-waiting-'))
    try {
      await configureFew(home)
      const folder = await tidesFolder(home, { version: '1.0.0' })
      const installed = await runSvc(['plugins', 'install', folder, '--yes', '--isolation', 'in-process', '--trust'], { home })
      expect(installed.code, installed.err).to.equal(0)
      // as a server does while it takes over a revision of its cluster
      const changes = { disable: [false], uninstall: [] }
      for (const [word, enabled] of Object.entries(changes)) {
        const other = await planChange(home, { uninstall: [TIDES], offline: true })
        const env = { PATH: process.env.PATH, ...COMPILED, SVC_HOME: home }
        const args = [...SVC, 'plugins', word, TIDES]
        const child = spawn(process.execPath, args, { env, cwd: home, stdio: ['ignore', 'ignore', 'pipe'] })
        const [waits, ended] = [Promise.withResolvers<void>(), once(child, 'close')]
        let text = ''
        child.stderr.on('data', data => {
          text += String(data)
          if (text.includes('waiting until another process has changed the plugins')) waits.resolve()
        })
        await Promise.race([waits.promise, ended])
        await other[Symbol.asyncDispose]()
        expect(await ended, text).to.deep.equal([0, null])
        expect((await readLock(home)).plugins.map(plugin => plugin.enabled)).to.deep.equal(enabled)
      }
    } finally {
      await rm(home, { recursive: true, force: true, maxRetries: 10 })
    }
  }).timeout(120_000)
})
