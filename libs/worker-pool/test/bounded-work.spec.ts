import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createBoundedWork, workFile, type WorkOptions } from '@svc/worker-pool'
import { expect } from 'chai'
import { wait } from '../../../test/support/wait.ts'
import type { work } from './support/work.ts'

const file = workFile('./support/work', import.meta.url)
const open = (options: Partial<WorkOptions> = {}) => createBoundedWork<typeof work>({ file, ...options })
const ctx = () => ({ signal: new AbortController().signal })
const refusal = (running: Promise<unknown>) =>
  running.then(
    () => expect.fail('it was not refused'),
    (error: Error & { code?: string; details?: object; hint?: string }) => error
  )
const EVIL = { pattern: '^(a+)+$', text: `${'a'.repeat(40)}b` }

describe('bounded work', () => {
  it('does work in a process of its own, and answers what it answers', async () => {
    await using bounded = open()
    expect(await bounded.run('add', { a: 2, b: 3 }, ctx())).to.equal(5)
    expect(await bounded.run('later', 'äß𝕏', ctx())).to.equal('äß𝕏')
    expect(await bounded.run('pid', undefined, ctx())).to.not.equal(process.pid)
  })

  it('keeps one process for what comes next', async () => {
    await using bounded = open()
    const first = await bounded.run('pid', undefined, ctx())
    expect(await bounded.run('pid', undefined, ctx())).to.equal(first)
  })

  it('stops a regular expression that explodes, and works on', async () => {
    await using bounded = open({ workers: 1 })
    const { code, message } = await refusal(bounded.run('match', EVIL, ctx(), { timeMs: 200 }))
    expect({ code, message }).to.deep.equal({ code: 'WORK_TIMEOUT', message: 'match did not end within 200 ms and was stopped' })
    expect(await bounded.run('add', { a: 1, b: 1 }, ctx())).to.equal(2)
  })

  it('stops a loop, and what waits for nothing', async () => {
    await using bounded = open()
    const ends = await Promise.all([
      refusal(bounded.run('spin', undefined, ctx(), { timeMs: 100 })),
      refusal(bounded.run('wait', undefined, ctx(), { timeMs: 100 })),
    ])
    expect(ends.map(end => end.code)).to.deep.equal(['WORK_TIMEOUT', 'WORK_TIMEOUT'])
  })

  it('ends with the process alone, not with the host, what needs too much memory: bit by bit, at once, or of the stack', async () => {
    await using bounded = open({ memoryMb: 64, timeMs: 15_000 })
    for (const name of ['fill', 'heap', 'recurse'] as const)
      expect((await refusal(bounded.run(name, 0, ctx()))).code, name).to.equal('WORK_MEMORY')
    expect(await bounded.run('add', { a: 1, b: 1 }, ctx())).to.equal(2)
  })

  it('stops aborted tasks, running or waiting', async () => {
    await using bounded = open({ workers: 1, timeMs: 60_000 })
    const controller = new AbortController()
    const both = [refusal(bounded.run('spin', undefined, controller)), refusal(bounded.run('spin', undefined, controller))]
    setImmediate(() => controller.abort(new Error('enough')))
    expect((await Promise.all(both)).map(item => item.message)).to.deep.equal(['enough', 'enough'])
    expect(await bounded.run('add', { a: 1, b: 1 }, ctx())).to.equal(2)
  })

  it('does not begin what was aborted before', async () => {
    await using bounded = open()
    const { message } = await refusal(bounded.run('add', { a: 1, b: 1 }, { signal: AbortSignal.abort(new Error('before')) }))
    expect(message).to.equal('before')
  })

  it('tells what the work refused with its code, what else it threw in its words, and never a stack or a path', async () => {
    await using bounded = open()
    const refused = await refusal(bounded.run('refuse', undefined, ctx()))
    expect(refused).to.include({ code: 'NO_SUCH_THING', message: 'there is none', hint: 'take another' })
    expect(refused.details).to.deep.equal({ thing: 7 })
    expect(await refusal(bounded.run('fail', undefined, ctx()))).to.include({
      code: 'WORK_FAILED',
      message: 'fail failed: x is no function',
    })
    const { message } = await refusal(bounded.run('stray', undefined, ctx()))
    expect(message).to.equal("stray failed: Cannot find module '…\nRequire stack:\n- …")
    expect((await refusal(bounded.run('leak', undefined, ctx()))).code).to.equal('WORK_FAILED')
    expect((await refusal(bounded.run('exit', undefined, ctx()))).message).to.equal('exit failed: its process ended (3)')
  })

  it('rejects unknown tasks, and input that is not plain data', async () => {
    await using bounded = open()
    expect((await refusal(bounded.run('constructor' as 'fail', undefined, ctx()))).message).to.include('no work "constructor"')
    expect((await refusal(bounded.run('later', (() => 1) as unknown as string, ctx()))).message).to.match(/could not be cloned/)
    expect(await bounded.run('add', { a: 1, b: 1 }, ctx())).to.equal(2)
  })

  it('gives its processes no environment, no code from texts, no files to write, no processes', async () => {
    await using bounded = open()
    expect(await bounded.run('environment', undefined, ctx())).to.deep.equal([])
    for (const name of ['code', 'write', 'start'] as const)
      expect((await refusal(bounded.run(name, undefined, ctx()))).message, name).to.match(/disallowed|Access to this API/)
  })

  it('lets as many wait as it says, in their order', async () => {
    await using bounded = open({ workers: 1, waiting: 3 })
    const done: number[] = []
    const running = [1, 2, 3, 4].map(a => bounded.run('add', { a, b: 0 }, ctx()).then(item => done.push(item)))
    expect((await refusal(bounded.run('add', { a: 5, b: 0 }, ctx()))).code).to.equal('WORK_BUSY')
    await Promise.all(running)
    expect(done).to.deep.equal([1, 2, 3, 4])
  })

  it('lets principals take turns: who asks for much waits behind itself', async () => {
    await using bounded = open({ workers: 1, waitingEach: 3 })
    const done: string[] = []
    const ask = (id: string, a: number) =>
      bounded.run('add', { a, b: 0 }, { ...ctx(), principal: { id } }).then(item => done.push(`${id}${item}`))
    const running = [ask('ann', 1), ask('ann', 2), ask('ann', 3), ask('ann', 4), ask('bob', 1), ask('bob', 2), ask('cid', 1)]
    expect(await refusal(ask('ann', 5))).to.include({ code: 'WORK_BUSY', message: '3 tasks are already waiting' })
    await Promise.all(running)
    expect(done).to.deep.equal(['ann1', 'ann2', 'bob1', 'cid1', 'ann3', 'bob2', 'ann4'])
  })

  it('tells work that waits too long for its turn that it did, and does the rest', async () => {
    await using bounded = open({ workers: 1, timeMs: 60_000, waitMs: 50 })
    const controller = new AbortController()
    const first = refusal(bounded.run('spin', undefined, controller))
    const { code, message } = await refusal(bounded.run('add', { a: 1, b: 1 }, ctx()))
    expect({ code, message }).to.deep.equal({
      code: 'WORK_BUSY',
      message: 'the task was rejected after it had waited 50 ms for others',
    })
    controller.abort(new Error('enough'))
    await first
    expect(await bounded.run('add', { a: 1, b: 1 }, ctx())).to.equal(2)
  })

  it('stops everything when it is closed, and begins nothing after it', async () => {
    const bounded = open({ workers: 1, timeMs: 60_000 })
    const ends = [1, 2, 3].map(() => refusal(bounded.run('spin', undefined, ctx())))
    await bounded.close()
    expect((await Promise.all(ends)).map(end => end.code)).to.deep.equal(['WORK_CLOSED', 'WORK_CLOSED', 'WORK_CLOSED'])
    expect((await refusal(bounded.run('add', { a: 1, b: 1 }, ctx()))).code).to.equal('WORK_CLOSED')
  })

  it('does not keep a process alive that has no more to do', async () => {
    const host = program(`console.log(await run('pid'))`)
    const pid = await host.says()
    expect(await host.exit).to.deep.equal([0, null])
    await gone(pid)
  })

  it('is closed before its program ends, though nothing else holds the program', async () => {
    const host = program(`console.log(await run('pid')); await bounded.close(); process.exitCode = 7`)
    await gone(await host.says())
    expect(await host.exit).to.deep.equal([7, null])
  })

  it('does not outlive a host that is killed, however busy it is', async () => {
    const host = program(`console.log(await run('pid')); run('spin', 100); process.kill(process.pid, 'SIGKILL')`)
    const pid = await host.says()
    expect(await host.exit).to.deep.equal([null, 'SIGKILL'])
    await gone(pid)
  })
})

/** A program that has bounded work done, and forgets to close it. */
function program(words: string) {
  const code = `import { createBoundedWork } from '@svc/worker-pool'
    const bounded = createBoundedWork({ file: new URL('${file.href}'), idleMs: 600_000 })
    const run = (name, timeMs) => bounded.run(name, undefined, { signal: new AbortController().signal }, { timeMs })
    ${words}`
  const args = ['--conditions=svc-source', '--input-type=module', '-e', code]
  const child = spawn(process.execPath, args, { cwd: import.meta.dirname, stdio: ['ignore', 'pipe', 'inherit'] })
  const exit = once(child, 'exit')
  const line = once(child.stdout.setEncoding('utf8'), 'data')
  return { exit, says: async () => Number((await line)[0]) }
}

/** Waits until a process is gone; the limit of the test is the limit. */
async function gone(pid: number): Promise<void> {
  expect(pid).to.be.above(1)
  while (isThere(pid)) await wait()
}

function isThere(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
