import { once } from 'node:events'
import { connect } from 'node:net'
import type { StartFailed } from '@svc/core'
import { expect } from 'chai'
import { failureOf } from '../../../test/support/failure.ts'
import { supervise, textOf } from './support/supervised.ts'

describe('a supervisor of several workers, one after the other or at once', () => {
  it('deals 64 short connections out to two workers: no worse than 35 to 65 one at a time, and to both when all come at once', async () => {
    const { supervisor, seen } = supervise({}, { settings: () => ({ count: 2 }) })
    await using _ = supervisor
    const { port } = await supervisor.start()
    await seen('ready', 2)
    const oneByOne: string[] = []
    while (oneByOne.length < 64) oneByOne.push(await textOf(port))
    const atOnce = await Promise.all(Array.from({ length: 64 }, () => textOf(port)))
    // at once each takes the next as soon as it can: how even that is depends on the machine, and `bench gates` tells it
    for (const [answers, least] of [
      [oneByOne, 0.35],
      [atOnce, 1 / 64],
    ] as const)
      for (const { pid } of supervisor.workers)
        expect(answers.filter(answer => answer === String(pid)).length).to.be.at.least(Math.ceil(64 * least))
  })

  it('closes a connection that a worker was dealt and had not taken when it died', async () => {
    const { supervisor, seen } = supervise()
    await using _ = supervisor
    const { port } = await supervisor.start()
    const [worker] = supervisor.workers
    process.kill(worker!.pid, 'SIGSTOP')
    const socket = connect(port, '127.0.0.1')
    await once(socket, 'connect')
    const closed = new Promise(resolve => socket.on('error', () => {}).on('close', resolve))
    socket.write('GET / HTTP/1.1\r\n')
    process.kill(worker!.pid, 'SIGKILL')
    await closed
    await seen('ready', 2)
  })

  it('kills and replaces a worker that gives no sign of life', async () => {
    const settings = () => ({ hangLimitMs: 2_000 })
    const { supervisor, seen } = supervise({}, { settings })
    await using _ = supervisor
    const { port } = await supervisor.start()
    const [worker] = supervisor.workers
    process.kill(worker!.pid, 'SIGSTOP')
    expect((await seen('hung', 1))[0]!.worker.pid).to.equal(worker!.pid)
    await seen('ready', 2)
    expect(await textOf(port)).to.not.equal(String(worker!.pid))
  })

  it('gives up when workers die in a row and none is stable', async () => {
    const { supervisor, events } = supervise()
    await using _ = supervisor
    await supervisor.start()
    const gaveUp = supervisor.gaveUp
    const killer = setInterval(() => {
      for (const { pid, state } of supervisor.workers) if (state === 'ready') process.kill(pid, 'SIGKILL')
    }, 10)
    const problem = await gaveUp.finally(() => clearInterval(killer))
    expect(problem).to.include({ code: 'CRASH_LOOP' })
    expect(supervisor.state.state).to.equal('failed')
    expect(events.flatMap(event => (event.event === 'replacing' ? [event.delayMs] : []))).to.deep.equal([0, 200, 400, 800])
  })

  it('goes on trying while another worker serves, and says that workers die in a row', async () => {
    const settings = () => ({ count: 2, env: { WEB_FAILS: 'exit' } })
    const { supervisor, seen, events } = supervise({}, { settings, restartPolicy: { firstMs: 1, stableMs: 1, deaths: 1 } })
    await using _ = supervisor
    const { port } = await supervisor.start()
    const looping = await seen('looping', 1)
    expect(looping.map(({ deaths, how }) => [deaths, how])).to.deep.equal([[2, 'code 3']])
    expect(events.filter(event => event.event === 'replacing')).to.have.length(2)
    expect(supervisor.state.state).to.equal('running')
    expect(await textOf(port)).to.equal(String(supervisor.workers[0]!.pid))
  })

  it('brings up the next generation, then lets the old one drain', async () => {
    const { supervisor, seen } = supervise()
    await using _ = supervisor
    const { port } = await supervisor.start()
    const slow = await fetch(`http://127.0.0.1:${port}/slow`, { headers: { connection: 'close' } })
    const [old] = supervisor.workers
    const { workers } = await supervisor.reload()
    expect(workers.map(({ state, generation }) => [state, generation])).to.deep.equal([
      ['draining', 0],
      ['ready', 1],
    ])
    expect(await textOf(port)).to.equal(String(workers[1]!.pid))
    expect(await slow.text()).to.equal('begun ended')
    expect((await seen('exited', 1))[0]!.worker.pid).to.equal(old!.pid)
  })

  it('waits with the next generation while two of them drain', async function () {
    this.timeout(30_000)
    const { supervisor } = supervise({ WEB_DRAINS: 'never' })
    await using _ = { [Symbol.asyncDispose]: () => (void supervisor.stop(), supervisor.stop()) }
    await supervisor.start()
    const [oldest] = supervisor.workers
    const generations = () => supervisor.workers.map(({ state, generation }) => `${state} ${generation}`)
    await supervisor.reload()
    await supervisor.reload()
    const third = supervisor.reload()
    await new Promise(resolve => setImmediate(resolve))
    expect(generations()).to.deep.equal(['draining 0', 'draining 1', 'ready 2'])
    process.kill(oldest!.pid, 'SIGKILL')
    await third
    expect(generations()).to.deep.equal(['draining 1', 'draining 2', 'ready 3'])
  })

  it('keeps the old generation when the next one cannot start', async () => {
    const { supervisor } = supervise()
    await using _ = supervisor
    const { port } = await supervisor.start()
    process.env.WEB_FAILS = 'report'
    const error = (await failureOf(supervisor.reload()).finally(() => delete process.env.WEB_FAILS)) as StartFailed
    expect(error.problems.map(problem => problem.code)).to.deep.equal(['NO_WAY', 'INTERNAL_ERROR'])
    expect(await textOf(port)).to.equal(String(supervisor.workers[0]!.pid))
    expect(supervisor.state.state).to.equal('running')
    await supervisor.reload()
  })
})
