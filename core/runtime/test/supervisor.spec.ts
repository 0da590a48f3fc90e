import { fork } from 'node:child_process'
import { once } from 'node:events'
import { type StartFailed, type SvcError } from '@svc/core'
import type { SupervisorEvent } from '@svc/runtime'
import { GenerationMemory } from '../supervisor/worker-handle.ts'
import { createBackoff } from '../supervisor/restart-policy.ts'
import { expect } from 'chai'
import { CONDITIONS } from '../../../test/support/entry.ts'
import { wait } from '../../../test/support/wait.ts'
import { failureOf } from '../../../test/support/failure.ts'
import { type Report, supervise, textOf } from './support/supervised.ts'

describe('the memory of a supervisor', () => {
  it('holds what workers of a generation have kept, and forgets it with the generation', () => {
    const memory = new GenerationMemory()
    memory.keep(1, 'a', 'first')
    memory.keep(1, 'a', 'second')
    expect([memory.kept(1, 'a'), memory.kept(2, 'a'), memory.kept(1, 'b')]).to.deep.equal(['second', undefined, undefined])
    memory.keep(2, 'a', 'failed start')
    memory.forget(2)
    expect(memory.kept(2, 'a')).to.equal(undefined)
    memory.keep(2, 'a', 'next')
    memory.startAt(2)
    // a worker that drains is of an earlier generation
    memory.keep(1, 'a', 'late')
    expect([memory.kept(1, 'a'), memory.kept(2, 'a')]).to.deep.equal([undefined, 'next'])
    // a pause leaves no worker of the former generation
    memory.passOn(2, 4)
    memory.startAt(4)
    expect([memory.kept(2, 'a'), memory.kept(4, 'a')]).to.deep.equal([undefined, 'next'])
  })
})

describe('a supervisor', () => {
  it('brings up a worker and answers with its report', async () => {
    const { supervisor } = supervise()
    await using _ = supervisor
    const { port } = await supervisor.start()
    expect(supervisor.state).to.deep.include({ state: 'running', report: { port } })
    expect(supervisor.workers.map(worker => worker.state)).to.deep.equal(['ready'])
    expect(await textOf(port)).to.equal(String(supervisor.workers[0]!.pid))
  })

  it('replaces a worker that was killed, at once, then after growing pauses, on the same port', async () => {
    const { supervisor, seen } = supervise()
    await using _ = supervisor
    const { port } = await supervisor.start()
    const pids = [await textOf(port)]
    for (const round of [1, 2]) {
      process.kill(Number(pids.at(-1)), 'SIGKILL')
      await seen('ready', round + 1)
      pids.push(await textOf(port))
    }
    expect(new Set(pids).size).to.equal(3)
    expect((await seen('exited', 2)).map(event => event.how)).to.deep.equal(['SIGKILL', 'SIGKILL'])
    expect((await seen('replacing', 2)).map(event => event.delayMs)).to.deep.equal([0, 200])
  })

  it('replaces a worker once its successor can be forked again', async function () {
    if (process.platform === 'win32') this.skip()
    const env: Record<string, string> = {}
    const { supervisor, seen } = supervise(env)
    await using _ = supervisor
    const { port } = await supervisor.start()
    const first = await textOf(port)
    env.LONG = 'x'.repeat(200_000) // E2BIG, which `fork` throws
    process.kill(Number(first), 'SIGKILL')
    await seen('replacing', 2)
    delete env.LONG
    await seen('ready', 2)
    expect(await textOf(port)).to.not.equal(first)
  })

  it('ends with the report of a first worker that cannot start', async () => {
    const { supervisor, seen } = supervise({ WEB_FAILS: 'report' })
    await using _ = supervisor
    const error = (await failureOf(supervisor.start())) as StartFailed
    expect(error.code).to.equal('START_FAILED')
    expect(error.problems[0]).to.include({ code: 'NO_WAY', message: 'it cannot be', plugin: 'web', hint: 'let it be' })
    expect(error.problems[1]).to.include({ code: 'INTERNAL_ERROR', message: 'nor this' })
    expect(supervisor.state.state).to.equal('failed')
    await seen('exited', 1)
    expect(supervisor.workers).to.deep.equal([])
  })

  it('ends when the first worker dies before it is ready', async () => {
    const { supervisor } = supervise({ WEB_FAILS: 'exit' })
    await using _ = supervisor
    const error = (await failureOf(supervisor.start())) as StartFailed
    expect(error.problems[0]).to.include({ code: 'WORKER_DIED', message: 'the worker ended before it was ready (code 3)' })
  })

  it('kills a first worker that never reports', async () => {
    const { supervisor } = supervise({ WEB_FAILS: 'hang' }, { startLimitMs: 500 })
    await using _ = supervisor
    const error = (await failureOf(supervisor.start())) as StartFailed
    expect(error.problems[0]).to.include({ code: 'WORKER_TIMEOUT' })
  })

  it('kills a worker that never lets go of its loop while it starts', async () => {
    const { supervisor } = supervise({ WEB_FAILS: 'block' }, { blockedLimitMs: 500 })
    await using _ = supervisor
    const error = (await failureOf(supervisor.start())) as StartFailed
    expect(error.problems[0]).to.include({ code: 'WORKER_BLOCKED' })
    expect(error.problems[0]!.hint).to.include('isolation: process')
  })

  it('runs as many workers as the first one says', async () => {
    const { supervisor, seen } = supervise({}, { settings: () => ({ count: 2 }) })
    await using _ = supervisor
    await supervisor.start()
    const ready = await seen('ready', 2)
    expect(ready[1]!.report).to.deep.equal(ready[0]!.report)
    expect(supervisor.workers).to.have.length(2)
  })

  it('lets a worker end its request when it stops', async () => {
    const { supervisor, seen } = supervise()
    const { port } = await supervisor.start()
    const response = await fetch(`http://127.0.0.1:${port}/slow`, { headers: { connection: 'close' } })
    const stopped = supervisor.stop()
    expect(supervisor.workers[0]!.state).to.equal('draining')
    expect(await response.text()).to.equal('begun ended')
    await stopped
    expect(supervisor.state.state).to.equal('stopped')
    expect((await seen('exited', 1)).map(event => event.how)).to.deep.equal(['code 0'])
    expect(await failureOf(textOf(port))).to.be.instanceOf(TypeError)
  })

  it('kills what does not drain within the limit', async () => {
    const { supervisor, seen } = supervise({ WEB_DRAINS: 'never' }, { settings: () => ({ drainLimitMs: 100 }) })
    await supervisor.start()
    await supervisor.stop()
    expect((await seen('exited', 1)).map(event => event.how)).to.deep.equal(['SIGKILL'])
  })

  it('kills at once when it is stopped a second time', async () => {
    const { supervisor, seen } = supervise({ WEB_DRAINS: 'never' })
    await supervisor.start()
    await Promise.all([supervisor.stop(), supervisor.stop()])
    expect((await seen('exited', 1)).map(event => event.how)).to.deep.equal(['SIGKILL'])
    await supervisor.stop()
  })

  it('stops while it starts', async () => {
    const { supervisor } = supervise({ WEB_FAILS: 'hang' }, { settings: () => ({}) })
    const started = failureOf(supervisor.start())
    await Promise.all([supervisor.stop(), supervisor.stop()])
    expect((await started).code).to.equal('WORKER_DIED')
  })

  it('leaves workers that drain and end when it is killed itself', async () => {
    const child = fork(new URL('./support/supervise.ts', import.meta.url).pathname, { execArgv: [...CONDITIONS] })
    const [event] = (await once(child, 'message')) as [Extract<SupervisorEvent<Report>, { event: 'ready' }>]
    const { port } = event.report
    const response = await fetch(`http://127.0.0.1:${port}/slow`, { headers: { connection: 'close' } })
    child.kill('SIGKILL')
    expect(await response.text()).to.equal('begun ended')
    await gone(event.worker.pid)
  })
})

/** Waits until a process that is no child of ours has ended. */
async function gone(pid: number): Promise<void> {
  try {
    process.kill(pid, 0)
  } catch (error) {
    expect((error as SvcError).code).to.equal('ESRCH')
    return
  }
  await wait()
  return gone(pid)
}

describe('the pause before what died comes back', () => {
  it('is none at first, then doubles from 0.2 s to 10 s, and is forgotten after a stable minute', () => {
    let time = 0
    const next = createBackoff(() => time)
    const pauses = Array.from({ length: 9 }, () => {
      time += 30_000
      return next()
    })
    expect(pauses).to.deep.equal([0, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000])
    time += 60_001
    expect(next()).to.equal(0)
  })
})
