import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import type { Socket } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { expect } from 'chai'
import { askOn, askOnce, countSeen, openSilent } from '../../../test/support/ask-once.ts'
import { CONDITIONS } from '../../../test/support/entry.ts'
import { supervise, textOf } from './support/supervised.ts'

const closeOf = (socket: Socket) => new Promise(resolve => socket.resume().once('close', resolve))

const TWO = { settings: () => ({ count: 2 }) }

const FEW = 80

/** A supervisor in a process of its own; it and its worker may each have 80 open descriptors. */
async function superviseWithFew() {
  const limited = ['-c', `ulimit -n ${FEW} && exec "$@"`, 'sh', process.execPath, ...CONDITIONS]
  const child = spawn('sh', [...limited, new URL('./support/supervise.ts', import.meta.url).pathname], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    serialization: 'json',
  })
  const [{ report, worker }] = (await once(child, 'message')) as [{ report: { port: number }; worker: { pid: number } }]
  return {
    child,
    port: report.port,
    worker: worker.pid,
    async [Symbol.asyncDispose]() {
      child.kill()
      await once(child, 'exit')
    },
  }
}

/** Opens connections one after the other until the process has no descriptor left; one that was inherited may lie above the limit. */
async function useAll(pid: number, port: number): Promise<Socket[]> {
  const open: Socket[] = []
  while (readdirSync(`/proc/${pid}/fd`).filter(fd => Number(fd) < FEW).length < FEW) {
    open.push(await openSilent(port))
    await setTimeout(5)
  }
  return open
}

describe('connections of a supervisor', () => {
  it('wait while its only worker is dead, and are answered by the next one', async () => {
    const { supervisor, seen } = supervise()
    await using _ = supervisor
    const { port } = await supervisor.start()
    const [{ pid } = { pid: 0 }] = supervisor.workers
    process.kill(pid, 'SIGKILL')
    await seen('exited', 1)
    const asked = await Promise.all(Array.from({ length: 200 }, () => askOnce(port)))
    expect(countSeen(asked)).to.deep.equal({ answered: 200, reset: 0, refused: 0, hung: 0 })
    expect(supervisor.workers.map(worker => worker.pid)).to.not.include(pid)
  })

  it('are never refused and never hang while its only worker is killed again and again', async function () {
    this.timeout(60_000)
    // a worker that has served for a moment is stable here: its successor comes at once
    const { supervisor, seen } = supervise({}, { restartPolicy: { stableMs: 1 } })
    await using _ = supervisor
    const { port } = await supervisor.start()
    const clients = askOn(port, 8)
    for (let kills = 1; kills <= 6; kills++) {
      await clients.more(50)
      process.kill(supervisor.workers.find(worker => worker.state === 'ready')!.pid, 'SIGKILL')
      await seen('ready', kills + 1)
    }
    const { answered, reset, refused, hung } = await clients.end()
    expect({ refused, hung }).to.deep.equal({ refused: 0, hung: 0 })
    expect(answered).to.be.at.least(300)
    // those that the dead worker had: it had answered, was answering, or was sent one at most that it had not taken
    expect(reset).to.be.at.most(6 * 8)
  })

  it('of a thousand clients at once are all answered', async () => {
    const { supervisor, seen } = supervise({}, TWO)
    await using _ = supervisor
    const { port } = await supervisor.start()
    await seen('ready', 2)
    const asked = await Promise.all(Array.from({ length: 1000 }, () => askOnce(port)))
    expect(countSeen(asked)).to.deep.equal({ answered: 1000, reset: 0, refused: 0, hung: 0 })
  })

  it('go to the other worker while one does not take what it was sent; that one is sent no second one', async () => {
    const { supervisor, seen } = supervise({}, TWO)
    await using _ = supervisor
    const { port } = await supervisor.start()
    await seen('ready', 2)
    const [stopped, free] = supervisor.workers.map(worker => worker.pid)
    process.kill(stopped!, 'SIGSTOP')
    const held = askOnce(port)
    const others = await Promise.all(Array.from({ length: 20 }, () => textOf(port)))
    expect(new Set(others)).to.deep.equal(new Set([String(free)]))
    process.kill(stopped!, 'SIGCONT')
    expect(await held).to.equal('answered')
  })

  it('reach a worker again that had no free descriptor for one', async function () {
    if (process.platform !== 'linux') this.skip()
    await using few = await superviseWithFew()
    const held = await useAll(few.worker, few.port)
    for (let more = 0; more < 3; more++) held.push(await openSilent(few.port))
    for (const socket of held) socket.destroy()
    expect(await askOnce(few.port)).to.equal('answered')
  })

  it('that wait with all descriptors of the supervisor make room for the successor of a worker that died', async function () {
    if (process.platform !== 'linux') this.skip()
    await using few = await superviseWithFew()
    process.kill(few.worker, 'SIGSTOP')
    const held = await useAll(few.child.pid!, few.port)
    const ready = new Promise<void>(resolve =>
      few.child.on('message', message => (message as { event: string }).event === 'ready' && resolve())
    )
    process.kill(few.worker, 'SIGKILL')
    await ready
    expect(await askOnce(few.port)).to.equal('answered')
    for (const socket of held) socket.destroy()
  })

  it('that were kept open are let go without a request lost when the next generation takes over', async () => {
    const { supervisor, seen } = supervise()
    await using _ = supervisor
    const { port } = await supervisor.start()
    const kept = await Promise.all(Array.from({ length: 20 }, () => openSilent(port)))
    const answerOf = async (socket: Socket) => {
      socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
      return String((await once(socket, 'data'))[0])
    }
    const first = await Promise.all(kept.map(answerOf))
    expect(first.filter(text => /connection: close/i.test(text))).to.deep.equal([])
    const clients = askOn(port, 4)
    await supervisor.reload()
    const last = await Promise.all(kept.map(answerOf))
    const asked = await clients.end()
    for (const text of last) expect(text).to.match(/^HTTP\/1\.1 200 [^]*connection: close/i)
    expect(asked).to.include({ reset: 0, refused: 0, hung: 0 })
    expect(asked.answered).to.be.above(0)
    await seen('exited', 1)
  })

  it('are refused while it is paused; then the same port is open again, for all workers', async () => {
    const { supervisor, seen } = supervise({}, TWO)
    await using _ = supervisor
    const { port } = await supervisor.start()
    await seen('ready', 2)
    await supervisor.pause(async () => {
      expect(supervisor.workers).to.deep.equal([])
      expect(await askOnce(port)).to.equal('refused')
    })
    const ready = await seen('ready', 4)
    expect(ready.map(item => item.report.port)).to.deep.equal([port, port, port, port])
    expect(await askOnce(port)).to.equal('answered')
  })

  it('that no worker takes are closed: those too many at once, the others in time, and all are reported', async () => {
    const { supervisor, seen } = supervise({}, { maxWaiting: 2, waitMs: 500 })
    await using _ = supervisor
    const { port } = await supervisor.start()
    const [{ pid } = { pid: 0 }] = supervisor.workers
    process.kill(pid, 'SIGSTOP')
    const sent = askOnce(port)
    const began = performance.now()
    const [first, second] = [await openSilent(port), await openSilent(port)]
    const ends = Promise.all([closeOf(first), closeOf(second)])
    await closeOf(await openSilent(port))
    expect([first.closed, second.closed]).to.deep.equal([false, false])
    await ends
    expect(performance.now() - began).to.be.at.least(490)
    const [{ count } = { count: 0 }] = await seen('unserved', 1)
    expect(count).to.equal(3)
    process.kill(pid, 'SIGCONT')
    expect(await sent).to.equal('answered')
  })

  it('that wait are closed when it stops', async () => {
    const { supervisor } = supervise({ WEB_DRAINS: 'never' })
    const { port } = await supervisor.start()
    const [{ pid } = { pid: 0 }] = supervisor.workers
    process.kill(pid, 'SIGSTOP')
    const [sent, waiting] = [await openSilent(port), await openSilent(port)]
    const ends = Promise.all([closeOf(sent), closeOf(waiting)])
    await Promise.all([supervisor.stop(), supervisor.stop()])
    await ends
    expect(await askOnce(port)).to.equal('refused')
  })
})
