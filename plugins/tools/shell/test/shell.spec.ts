import { readdir, readFile, watch } from 'node:fs/promises'
import { Tools } from '@svc/core/contracts'
import { testHost } from '@svc/testing'
import { expect } from 'chai'
import { openShell, withSandbox } from './support/shell.ts'

const PLUGIN = new URL('..', import.meta.url)
const failing = (starting: Promise<unknown>) =>
  starting.then(
    () => expect.fail('it started'),
    (error: Error) => error.message
  )

describe('run_command', () => {
  it('is there only where it is switched on', async () => {
    await using host = await testHost([PLUGIN])
    expect(host.slot(Tools).get('run_command')).to.equal(undefined)
  })

  it('fails the start where it is switched on without a program to run, or without a sandbox', async () => {
    const start = (shell: object) => failing(testHost([PLUGIN], { config: { tools: { shell: { enabled: true, ...shell } } } }))
    expect(await start({})).to.contain('tools.shell.commands is empty')
    expect(await start({ commands: ['./build.sh'] })).to.contain('tools.shell.commands contains the relative path "./build.sh"')
    expect(await start({ commands: ['ls'] })).to.contain('no loaded plugin provides a process sandbox')
  })
})

withSandbox('run_command in its sandbox', () => {
  it('answers both outputs and the exit code, as text and as data', async () => {
    await using shell = await openShell()
    const { content, structured } = await shell.call({
      command: ['sh', '-c', 'cat a.txt; cat; echo no >&2; exit 3'],
      input: 'from the input\n',
    })
    const { duration_ms, ...rest } = structured as { duration_ms: number }
    expect(rest).to.deep.equal({
      exit_code: 3,
      signal: null,
      stdout: 'hello\nfrom the input\n',
      stderr: 'no\n',
      truncated: false,
    })
    expect(duration_ms).to.be.above(0)
    expect(content).to.deep.equal([{ type: 'text', text: 'hello\nfrom the input\n[standard error]\nno\n[exit code 3]' }])
  })

  it('takes each word of the command as it is: nothing is a pattern, a variable or a further command', async () => {
    await using shell = await openShell()
    const words = ['*', '$HOME', '; ls', '`ls`', '"', '-n']
    expect((await shell.run(['echo', ...words])).stdout).to.equal(`${words.join(' ')}\n`)
  })

  it('sees the folders of the tools and none beside them, whatever links say, and writes none', async () => {
    await using shell = await openShell()
    const { stdout } = await shell.run([
      'sh',
      '-c',
      `pwd; ls; ls leak/ ${shell.at('beside')}; echo x > b.txt; echo x > /tmp/b && echo kept`,
    ])
    expect(stdout).to.equal(`${shell.at('root')}\na.txt\ninner\nleak\nkept\n`)
    expect(await readdir(shell.at('root'))).to.have.members(['a.txt', 'inner', 'leak'])
  })

  it('writes in them where the configuration says so, and its effects tell it', async () => {
    await using shell = await openShell({ write: true })
    expect((await shell.run(['sh', '-c', 'echo kept > x'], { cwd: 'inner' })).exit_code).to.equal(0)
    expect(await readFile(shell.at('root/inner/x'), 'utf8')).to.equal('kept\n')
    expect(shell.tool.effects).to.deep.equal(['read', 'write', 'execute'])
    await using open = await openShell({ network: true })
    expect(open.tool.effects).to.deep.equal(['read', 'execute', 'network'])
  })

  it('gets the variables that the configuration names, and no others of ours', async () => {
    process.env.SVC_TEST_SHELL = 'handed on'
    process.env.SVC_TEST_OTHER = 'not handed on'
    try {
      await using shell = await openShell({ env: ['SVC_TEST_SHELL'] })
      const { stdout } = await shell.run(['sh', '-c', 'env'])
      expect(stdout).to.contain('SVC_TEST_SHELL=handed on').and.not.contain('not handed on').and.not.contain('SVC_HOME')
    } finally {
      delete process.env.SVC_TEST_SHELL
      delete process.env.SVC_TEST_OTHER
    }
  })

  it('keeps the beginning and the end of a long output, and ends one that does not stop', async () => {
    await using shell = await openShell({ max_output_bytes: 1024 })
    const long = await shell.run(['sh', '-c', 'echo first; head -c 100000 /dev/zero | tr "\\0" x; echo last'])
    expect([long.truncated, long.exit_code, long.stdout.length < 1200]).to.deep.equal([true, 0, true])
    expect(long.stdout).to.match(/^first\nx+\n\[… \d+ bytes are left out here …\]\nx+last\n$/)
    const endless = await shell.run(['yes'])
    expect([endless.stopped, endless.exit_code]).to.deep.equal(['output', null])
  })

  it('ends a command that its caller aborted', async () => {
    await using shell = await openShell({ write: true })
    const controller = new AbortController()
    const watching = watch(shell.at('root/inner'), { signal: AbortSignal.timeout(15_000) })[Symbol.asyncIterator]()
    const begun = watching.next()
    const command = ['sh', '-c', 'echo > inner/begun; trap "" TERM; sleep 1000']
    const running = shell.call({ command }, controller.signal).then(
      () => 'it answered',
      (error: Error) => error.message
    )
    await begun
    await watching.return?.()
    controller.abort(new Error('enough'))
    expect(await running).to.equal('enough')
  })

  it('says which limit a command met', async () => {
    await using shell = await openShell({ memory_limit: '64M' })
    const { structured, content } = await shell.call({
      command: ['node', '-e', 'const all = []; for (;;) all.push(Buffer.alloc(8388608, 1))'],
    })
    const { exit_code, stopped } = structured as { exit_code: number | null; stopped?: string }
    expect(exit_code).to.not.equal(0)
    // A machine without control groups does not know: the program says it itself.
    if (stopped !== undefined) expect(`${stopped} ${JSON.stringify(content)}`).to.match(/^memory .*exceeded its memory limit/)
  })

  it('refuses to run anything in folders with the svc home in them', async () => {
    await using shell = await openShell({}, 'root/inner/home')
    const { code, message } = await shell.run(['ls']).then(
      () => expect.fail('it ran'),
      (error: Error & { code?: string }) => error
    )
    expect(code).to.equal('SANDBOX_PATH')
    expect(message).to.contain('it would show the svc home')
  })
})
