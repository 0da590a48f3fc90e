import { runChild, type RunOptions } from '@svc/worker-pool/processes'
import { expect } from 'chai'

const run = (script: string, more: Partial<RunOptions> = {}) =>
  runChild({
    file: '/bin/sh',
    args: ['-c', script],
    env: { PATH: process.env.PATH! },
    timeoutMs: 15_000,
    most: 1000,
    floodBytes: 1_000_000,
    graceMs: 20,
    ...more,
  })

describe('running a child to its end', () => {
  it('answers what it wrote, how it ended and how long it took', async () => {
    const { durationMs, ...rest } = await run('cat; echo no >&2; exit 2', { input: 'yes ü' })
    expect(rest).to.deep.equal({
      code: 2,
      signal: null,
      stdout: { text: 'yes ü', bytes: 6, truncated: false },
      stderr: { text: 'no\n', bytes: 3, truncated: false },
    })
    expect(durationMs).to.be.within(0, 15_000)
  })

  it('keeps the beginning and the end of too much, whole characters only', async () => {
    const { stdout, code } = await run(
      'printf "begin"; i=0; while [ $i -lt 100 ]; do printf "ääääääääää"; i=$((i+1)); done; printf "the end"',
      {
        most: 101,
      }
    )
    expect([code, stdout.truncated, stdout.bytes]).to.deep.equal([0, true, 2012])
    expect(stdout.text).to.equal(`begin${'ä'.repeat(23)}\n[… 1911 bytes are left out here …]\n${'ä'.repeat(21)}the end`)
  })

  it('keeps all of what just fits', async () => {
    const { stdout } = await run('printf "%01000d" 7')
    expect(stdout).to.deep.equal({ text: `${'0'.repeat(999)}7`, bytes: 1000, truncated: false })
  })

  it('ends what takes too long, with all that it started', async () => {
    const { stopped, signal } = await run('sleep 1000 & wait', { timeoutMs: 50 })
    expect([stopped, signal]).to.deep.equal(['timeout', 'SIGTERM'])
  })

  it('ends what never stops writing, on whichever output, and keeps little of it', async () => {
    for (const script of ['yes', 'yes >&2', 'trap "" TERM; yes & yes >&2']) {
      const { stopped, stdout, stderr } = await run(script)
      expect(stopped, script).to.equal('flood')
      expect(stdout.text.length + stderr.text.length, script).to.be.below(2_200)
    }
  })

  it('rejects with the reason of who aborted it', async () => {
    const controller = new AbortController()
    const running = run('echo started >&2; sleep 1000', { signal: controller.signal })
    setImmediate(() => controller.abort(new Error('enough')))
    expect(await running.catch((error: Error) => error.message)).to.equal('enough')
  })

  it('lets a program end that does not read what it is given', async () => {
    const { code } = await run('exit 5', { input: 'x'.repeat(1_000_000) })
    expect(code).to.equal(5)
  })
})
