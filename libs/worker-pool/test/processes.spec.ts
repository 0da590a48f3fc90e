import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, openSync } from 'node:fs'
import { type Child, type ChildOptions, startChild } from '@svc/worker-pool/processes'
import { expect } from 'chai'
import { skipBecause } from '../../../test/support/needs.ts'

const shell = (script: string, more: Partial<ChildOptions> = {}) =>
  startChild({ file: '/bin/sh', args: ['-c', script], env: { PATH: process.env.PATH! }, ...more })
/** Whether it runs: what has ended and is not reaped yet does not. */
const isThere = (pid: number) => {
  const { stdout } = spawnSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' })
  return /^[^Z]/.test(stdout.trim())
}
/** The next line that it writes: the pid of something it has started. */
async function nextPid({ stdout }: Child): Promise<number> {
  const [line] = (await once(stdout, 'data')) as [Buffer]
  return Number(line.toString().trim())
}
const codeOf = (starting: Promise<unknown>) =>
  starting.then(
    () => expect.fail('it did not fail'),
    (error: Error & { code?: string; hint?: string }) => error
  )

describe('a child process', () => {
  it('is written to and read from, and tells how it ended and the end of its errors', async () => {
    await using child = await shell('read line; echo "got $line"; echo first >&2; printf "%09000d last" 0 >&2; exit 3', {
      tailBytes: 20,
    })
    child.stdin.write('hello\n')
    const [text] = (await once(child.stdout, 'data')) as [Buffer]
    expect([text.toString(), await child.exited]).to.deep.equal(['got hello\n', { code: 3, signal: null }])
    expect(child.errorTail()).to.equal('000000000000000 last')
  })

  it('gets the variables that it is given, and none of ours but a mark', async () => {
    await using child = await startChild({ file: '/usr/bin/env', args: [], env: { ONE: '1' } })
    const lines = (await child.stdout.toArray()).join('').trim().split('\n')
    expect(lines.map(line => line.replace(/[0-9a-f-]{36}$/, '…'))).to.have.members(['ONE=1', 'SVC_CHILD=…'])
    await using contained = await startChild({ file: '/usr/bin/env', args: [], env: {}, contained: true })
    expect(await contained.stdout.toArray()).to.deep.equal([])
  })

  it('gets no file that this process was itself started with', async () => {
    const program = `import { startChild } from '@svc/worker-pool/processes'
      const child = await startChild({ file: '/usr/bin/readlink', args: ['/proc/self/fd/40'], env: {} })
      console.log((await child.stdout.toArray()).join(''))`
    const args = [...process.execArgv, '--conditions=svc-source', '--input-type=module', '-e', program]
    const secret = openSync(import.meta.filename, 'r')
    // Node itself sees to the first of them, up to a gap
    const stdio = ['ignore', 'pipe', 'pipe', ...Array.from({ length: 37 }, () => 'ignore' as const), secret] as const
    const { stdout, stderr } = spawnSync(process.execPath, args, {
      cwd: import.meta.dirname,
      stdio: [...stdio],
      encoding: 'utf8',
    })
    closeSync(secret)
    expect(stdout.trim(), stderr).to.equal('/dev/null')
  })

  it('says why it could not be started, without the path of this machine', async () => {
    const missing = await codeOf(startChild({ file: '/secret/place/no-such-program', args: [], env: {} }))
    expect([missing.code, missing.message]).to.deep.equal([
      'CHILD_NOT_STARTED',
      'no-such-program could not be started: there is no such program, or no such working directory',
    ])
    const long = await codeOf(startChild({ file: '/bin/true', args: ['x'.repeat(200_000)], env: {} }))
    expect([long.code, long.hint]).to.deep.equal([
      'CHILD_NOT_STARTED',
      'Shorten the arguments, or pass the data on the standard input',
    ])
  })

  it('ends when its standard input is closed, where it is given the time', async () => {
    const child = await shell('trap "exit 9" TERM; cat >/dev/null; exit 4')
    expect(await child.end({ politeMs: 10_000 })).to.deep.equal({ code: 4, signal: null })
  })

  it('ends by SIGTERM where it does not, and by SIGKILL where it will not', async () => {
    const kind = await shell('trap "exit 9" TERM; echo $$; while :; do sleep 0.01; done')
    await nextPid(kind)
    expect(await kind.end()).to.deep.equal({ code: 9, signal: null })
    const stubborn = await shell('trap "" TERM; echo $$; while :; do sleep 0.01; done', { graceMs: 20 })
    await nextPid(stubborn)
    expect(await Promise.all([stubborn.end(), stubborn.end()])).to.deep.equal([
      { code: null, signal: 'SIGKILL' },
      { code: null, signal: 'SIGKILL' },
    ])
  })

  it('takes its grandchildren along, when it is ended', async () => {
    const child = await shell('sh -c "trap \\"\\" TERM; echo \\$\\$; while :; do sleep 0.01; done" & wait', { graceMs: 20 })
    const grandchild = await nextPid(child)
    await child.end()
    expect(isThere(grandchild)).to.equal(false)
  })

  it('takes them along when it ends by itself', async () => {
    const child = await shell('sleep 1000 & echo $!')
    const grandchild = await nextPid(child)
    expect(await child.exited).to.deep.equal({ code: 0, signal: null })
    expect(isThere(grandchild)).to.equal(false)
  })

  it('takes along what left its group and its session, and what came after it', async function () {
    if (!existsSync('/proc/self/environ')) skipBecause(this, 'this machine has no /proc')
    const child = await shell('setsid sh -c "echo \\$\\$; while :; do sleep 0.01; done" & wait')
    const escaped = await nextPid(child)
    expect(isThere(escaped)).to.equal(true)
    await child.end()
    expect(isThere(escaped)).to.equal(false)
  })

  it('is ended by a signal, and does not begin after it', async () => {
    const controller = new AbortController()
    const child = await shell('echo $$; sleep 1000', { signal: controller.signal })
    await nextPid(child)
    controller.abort(new Error('enough'))
    expect(await child.exited).to.deep.equal({ code: null, signal: 'SIGTERM' })
    expect((await codeOf(shell('true', { signal: controller.signal }))).message).to.equal('enough')
  })

  it('is ended by the exit of the process that started it', async () => {
    const program = `const { startChild } = await import('@svc/worker-pool/processes')
      const { stdout } = await startChild({ file: '/bin/sh', args: ['-c', 'trap "" HUP TERM; echo $$; while :; do sleep 0.01; done'], env: {} })
      stdout.on('data', line => { process.stdout.write(line, () => process.exit()) })`
    await using starter = await startChild({
      file: process.execPath,
      args: ['--conditions=svc-source', '--input-type=module', '-e', program],
      env: {},
      cwd: import.meta.dirname,
      contained: true, // nobody but itself ends what it has started
    })
    const child = await nextPid(starter)
    await starter.exited
    expect(isThere(child)).to.equal(false)
  })

  it('does not break who writes to it when it is gone', async () => {
    await using child = await shell('exec <&-; echo closed; sleep 1000')
    await once(child.stdout, 'data')
    const failed = await new Promise(resolve => child.stdin.write('x'.repeat(1_000_000), resolve))
    expect(failed).to.be.an('error')
    expect(isThere(child.pid)).to.equal(true)
  })
})
