import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { setImmediate as immediate } from 'node:timers/promises'
import { type Exit, startChild } from '@svc/worker-pool/processes'
import { expect } from 'chai'
import { boxed, openSandbox, withSandbox } from './support/sandbox.ts'
import { skipBecause } from '../../../../test/support/needs.ts'

const MIB = 1_048_576
const GREEDY = 'const all = []; for (;;) all.push(Buffer.alloc(8 * 1024 * 1024, 1))'
/** Endless: a shell that starts itself twice, and those again. */
const BOMB = 'b() { b | b & wait; }; b'

/** Processes of this machine with a word in their command line. */
const running = (word: string) =>
  execFileSync('ps', ['-eo', 'stat=,args='], { encoding: 'utf8' })
    .split('\n')
    .filter(line => line.includes(word) && !line.startsWith('Z')).length
/** Says so itself, once it has left its session. */
const leaving = (word: string) => `setsid sh -c 'echo started; sleep ${word}' & wait`

/** All names below a folder of control groups; those of other programs may go while it is read. */
function entriesBelow(folder: string): string[] {
  for (;;) {
    try {
      return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    }
  }
}

withSandbox('the limits of the process sandbox', () => {
  const box = boxed()

  it('end what needs too much memory, and only that', async function () {
    const { memory } = await box.sandbox.probe(box.ctx)
    if (memory === null) return skipBecause(this, 'the sandbox can limit no memory on this machine')
    const { code, met, enforced } = await box.run('node', ['-e', GREEDY], { limits: { memoryBytes: 128 * MIB } })
    expect([code === 0, enforced.memory]).to.deep.equal([false, memory])
    expect(met.outOfMemory).to.equal(memory.startsWith('cgroup'))
    const fine = await box.run('node', ['-e', 'console.log(Buffer.alloc(16 * 1024 * 1024, 1).length)'], {
      limits: { memoryBytes: 128 * MIB },
    })
    expect([fine.code, fine.met.outOfMemory]).to.deep.equal([0, false])
  })

  it('count the files in its /tmp and its shared memory as well', async () => {
    const { out } = await box.shell(
      'head -c 64M /dev/zero > /tmp/x 2>/dev/null || echo full; head -c 64M /dev/zero > /dev/shm/x 2>/dev/null || echo full',
      { limits: { memoryBytes: 32 * MIB } }
    )
    expect(out).to.match(/^(full\nfull\n)?$/)
    const { code } = await box.shell('head -c 64M /dev/zero > /tmp/x', { limits: { memoryBytes: 32 * MIB } })
    expect(code).to.not.equal(0)
  })

  it('hold a fork bomb, and end it whole', async function () {
    const { pids } = await box.sandbox.probe(box.ctx)
    if (pids === null) return skipBecause(this, 'the sandbox can limit no processes on this machine')
    const word = `bomb-${process.pid}`
    const { met, enforced } = await box.run('sh', ['-c', BOMB, word], { limits: { pids: 20 }, timeoutMs: 500 })
    expect(enforced.pids).to.equal(pids)
    expect(met.outOfPids).to.equal(pids.startsWith('cgroup'))
    expect(running(word)).to.equal(0)
  })

  it('end a flood of output, and what takes too long', async () => {
    expect((await box.run('yes', [])).stopped).to.equal('flood')
    expect((await box.run('sleep', ['1000'], { timeoutMs: 100 })).stopped).to.equal('timeout')
  })

  it('let no grandchild survive, whatever it does to get away', async () => {
    const word = `987${process.pid}`
    const { out } = await box.shell(
      `trap "" TERM; setsid nohup sleep ${word} >/dev/null 2>&1 & (setsid sh -c 'trap "" TERM HUP; sleep ${word}' &) ; echo started`
    )
    expect([out, running(word)]).to.deep.equal(['started\n', 0])
  })

  it('let none survive the death of the host', async () => {
    const word = `985${process.pid}`
    const { id, file, args, env } = await box.wrap('sh', ['-c', leaving(word)])
    const program = `require('child_process').spawn(${JSON.stringify(file)}, ${JSON.stringify(args)}, { env: {}, stdio: ['pipe', 'inherit', 'inherit'], detached: true })`
    const host = await startChild({ file: process.execPath, args: ['-e', program], env: { ...env }, contained: true })
    await once(host.stdout, 'data')
    expect(running(word)).to.be.above(0)
    // Its output closes when the last of them that holds it is gone.
    const closed = once(host.stdout, 'close')
    process.kill(host.pid, 'SIGKILL')
    await closed
    expect(running(word)).to.equal(0)
    await box.sandbox.release(id, box.ctx)
  })

  it('let none survive an abort', async () => {
    const word = `986${process.pid}`
    const { id, file, args, env } = await box.wrap('sh', ['-c', leaving(word)])
    const controller = new AbortController()
    const child = await startChild({ file, args, env, contained: true, signal: controller.signal })
    await once(child.stdout, 'data')
    expect(running(word)).to.be.above(0)
    controller.abort()
    await child.exited
    await box.sandbox.release(id, box.ctx)
    expect(running(word)).to.equal(0)
  })

  it('let none survive an abort that comes while the sandbox is still being made', async () => {
    const word = `984${process.pid}`
    for (let round = 0; round < 4; round++) {
      const { id, ...line } = await box.wrap('sleep', [word])
      const child = await startChild({ ...line, contained: true })
      // the first moment at which there is a process in the new namespace
      const children = `/proc/${child.pid}/task/${child.pid}/children`
      for (let looks = 0; looks < 10_000 && readFileSync(children, 'utf8') === ''; looks++) await immediate()
      await child.end()
      expect(running(word), `round ${round}`).to.equal(0)
      await box.sandbox.release(id, box.ctx)
    }
  })

  it('leave nothing behind: no group of what has ended, what never began, and what is still there at the close', async () => {
    const groups = () =>
      ['/sys/fs/cgroup', '/sys/fs/cgroup/memory', '/sys/fs/cgroup/pids'].flatMap(folder =>
        existsSync(folder) ? entriesBelow(folder).filter(name => name.includes(`svc-${process.pid}-`)) : []
      )
    let ended: Promise<Exit> | undefined
    {
      await using own = await openSandbox()
      await own.run('true', [], { limits: { memoryBytes: 64 * MIB, pids: 10 } })
      expect(groups()).to.deep.equal([])
      const { id } = await own.wrap('true')
      await own.sandbox.release(id, own.ctx)
      expect(await own.sandbox.release(id, own.ctx)).to.deep.equal({ outOfMemory: false, outOfPids: false })
      const left = await own.wrap('sh', ['-c', 'echo started; sleep 1000'])
      const child = await startChild({ ...left, contained: true })
      await once(child.stdout, 'data')
      ended = child.exited
    }
    expect([groups(), (await ended)?.signal]).to.deep.equal([[], 'SIGKILL'])
  })
})
