import { once } from 'node:events'
import { createInterface, type Interface } from 'node:readline'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { spawn } from 'node:child_process'
import { changeLock, isAbandoned, packSet, planChange, verifySet } from '@svc/plugin-manager/set'
import { expect } from 'chai'
import { CONDITIONS } from '../../../../../test/support/entry.ts'
import { CODE, failing, openSetWorkspace, type SetWorkspace, plugin } from './support/workspace.ts'

const PROGRAM = fileURLToPath(new URL('support/installing.ts', import.meta.url))

async function line(lines: Interface, wanted: string): Promise<void> {
  for await (const word of lines) if (word === wanted) return
  throw new Error(`it ended before ${wanted}`)
}

describe('an install that is killed', function () {
  this.timeout(60_000)
  let workspace: SetWorkspace
  let next: string
  let asking: string
  let bundle: string
  before(async () => {
    workspace = await openSetWorkspace()
    next = await workspace.tarball(plugin('svc-plugin-one', '2.0.0', { scripts: { postinstall: 'node --version' } }), CODE)
    asking = await workspace.tarball(plugin('svc-plugin-one', '3.0.0', { peerDependencies: { '@svc/core': '*' } }), CODE)
    await workspace.change({ install: [{ spec: await workspace.tarball(plugin('svc-plugin-one'), CODE) }] })
    bundle = join(workspace.folder, 'bundle.tgz')
    await packSet(workspace.home, bundle)
  })
  after(() => workspace[Symbol.asyncDispose]())

  /** Kills a process that stands still at a step of its install; while it lives no other process can change anything. */
  async function killAt(step: string, spec = next, what = `install ${spec}`) {
    const child = spawn(process.execPath, [...CONDITIONS, PROGRAM, workspace.home, spec, step], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const gone = once(child, 'exit')
    try {
      await line(createInterface(child.stdout), step)
      const error = await failing(changeLock(workspace.home, lock => lock))
      expect(error.details).to.deep.include({ pid: child.pid, what })
      return (await workspace.lock()).plugins[0]!.version
    } finally {
      child.kill('SIGKILL')
      await gone
    }
  }
  const versionNow = async () => {
    const lock = await workspace.lock()
    expect(await verifySet(workspace.home, lock)).to.deep.equal([])
    return lock.plugins[0]!.version
  }

  for (const step of ['fetch', 'inspect', 'resolve', 'copy', 'install', 'scripts', 'hash', 'commit'])
    it(`leaves the old set whole and in force: at ${step}`, async () => {
      await killAt(step, step === 'resolve' ? asking : next)
      expect(await versionNow()).to.equal('1.0.0')
    })

  it('leaves the old set whole and in force where a bundle is being unpacked', async () => {
    await killAt('unpack', bundle, 'restoring a bundle')
    expect(await versionNow()).to.equal('1.0.0')
  })

  it('has the old set in force again where the new one was on trial: for a start, and for the next change', async () => {
    expect(await killAt('trial')).to.equal('2.0.0')
    expect(await isAbandoned(workspace.home)).to.equal(true)
    expect(await versionNow()).to.equal('1.0.0')
    await changeLock(workspace.home, lock => lock)
    expect([await isAbandoned(workspace.home), await versionNow()]).to.deep.equal([false, '1.0.0'])
  })

  it('has the new set whole and in force once it is committed; and the next change takes away all that was left', async () => {
    await killAt('committed')
    expect(await versionNow()).to.equal('2.0.0')
    const lock = await changeLock(workspace.home, item => item)
    await using change = await planChange(workspace.home, { uninstall: ['svc-plugin-one'] })
    expect(change.removed[0]!.version).to.equal('2.0.0')
    expect(readdirSync(join(workspace.home, 'plugins', 'sets'))).to.have.members([lock.set, lock.former])
    expect(readdirSync(join(workspace.home, 'plugins', 'staging'))).to.have.length(1)
  })
})
