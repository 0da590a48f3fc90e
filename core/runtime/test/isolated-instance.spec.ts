import { spawn, type StdioOptions } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, open, readdir, readlink, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startHost, systemContext } from '@svc/core'
import { Checks } from '@svc/core/contracts'
import { isolate } from '@svc/runtime/isolation'
import { expect } from 'chai'
import { CONDITIONS } from '../../../test/support/entry.ts'
import { wait } from '../../../test/support/wait.ts'
import { Sleepless } from './support/sleepless-plugin.ts'
import { Fading } from './support/fading-plugin.ts'
import { failureOf } from '../../../test/support/failure.ts'

const ctx = systemContext(new AbortController().signal)

describe('the process of an isolated plugin', () => {
  it('has after its death all that it had before, or is not taken back', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'svc-fading-'))
    const ends: string[] = []
    const second = Promise.withResolvers<void>()
    const onGone = (how: string) => void (ends.push(how) === 2 && second.resolve())
    const module = new URL('./support/fading-plugin.ts', import.meta.url).href
    const fading = await isolate({ name: 'fading', module }, { contracts: [Fading], respawn: true, onGone })
    const config = { fading: { trace: join(folder, 'trace') } }
    const host = await startHost({ plugins: [{ use: fading, name: 'fading' }], config })
    const service = host.service(Fading)
    expect(await failureOf(service.go(ctx))).to.include({ code: 'PLUGIN_GONE' })
    await second.promise
    expect(ends[1]).to.include('it has no go any more')
    expect(await failureOf(service.go(ctx))).to.include({ code: 'PLUGIN_GONE' })
    await host.close()
    await rm(folder, { recursive: true })
  })

  it('is killed when its module does not load in time after a death, though it waits for nothing that hangs', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'svc-sleepless-'))
    const ends: string[] = []
    const second = Promise.withResolvers<void>()
    const onGone = (how: string) => void (ends.push(how) === 2 && second.resolve())
    const module = new URL('./support/sleepless-plugin.ts', import.meta.url).href
    const env = { TRACE: join(folder, 'trace') }
    const limits = { respawn: true, startLimitMs: 4_000, onGone, env }
    const sleepless = await isolate({ name: 'sleepless', module }, { contracts: [Sleepless, Checks], ...limits })
    const host = await startHost({ plugins: [{ use: sleepless, name: 'sleepless' }] })
    expect(await failureOf(host.service(Sleepless).go(ctx))).to.include({ code: 'PLUGIN_GONE' })
    await second.promise
    expect(ends[1]).to.include('did not end before its deadline')
    await host.close()
    await rm(folder, { recursive: true })
  }).timeout(30_000)

  it('has no file that its host was started with, outlives Ctrl-C on the terminal of its host, and ends when its host dies', async () => {
    const entry = new URL('./support/isolating-host.ts', import.meta.url).pathname
    const secret = await open(new URL('./support/clock.ts', import.meta.url))
    const stdio: StdioOptions = ['ignore', 'pipe', 2, ...Array.from({ length: 20 }, () => 'ignore' as const), secret.fd]
    const host = spawn(process.execPath, [...CONDITIONS, entry], { stdio, detached: true })
    let pid = 0
    try {
      const [line] = (await once(host.stdout!, 'data')) as [Buffer]
      pid = Number(line)
      const files = await Promise.all(
        (await readdir(`/proc/${pid}/fd`)).map(file => readlink(`/proc/${pid}/fd/${file}`).catch(() => ''))
      )
      expect(files.filter(file => file.endsWith('clock.ts'))).to.deep.equal([])
      await secret.close()
      // the group is what a terminal tells of Ctrl-C
      process.kill(-host.pid!, 'SIGINT')
      const [reported] = (await once(host.stdout!, 'data')) as [Buffer]
      expect(String(reported)).to.equal(`the plugin answers: ${pid}`)
    } finally {
      host.kill('SIGKILL')
    }
    const alive = () => {
      try {
        return process.kill(pid, 0)
      } catch {
        return false
      }
    }
    while (alive()) await wait()
  })
})
