import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { expect } from 'chai'
import { boxed, openSandbox, refusal, withSandbox } from './support/sandbox.ts'

/** A server of this machine that counts who reaches it, by address and by a file. */
async function openCanary(file: string) {
  let reached = 0
  const servers = [createServer(), createServer()]
  for (const server of servers) server.on('connection', socket => [reached++, socket.destroy()])
  const [first, second] = servers.map(server => once(server, 'listening'))
  servers[0]!.listen(0, '127.0.0.1')
  servers[1]!.listen(file)
  await Promise.all([first, second])
  return {
    port: (servers[0]!.address() as AddressInfo).port,
    reached: () => reached,
    [Symbol.dispose]: () => servers.forEach(server => server.close()),
  }
}
const knock = (where: object) =>
  `require('net').connect(${JSON.stringify(where)}).on('connect', () => { console.log('reached'); process.exit() }).on('error', e => console.log(e.code))`

withSandbox('what runs in the process sandbox', () => {
  const box = boxed()

  it('runs, reads what it is given, and tells how it ended', async () => {
    const { code, out, enforced } = await box.shell('read word; echo "got $word"; exit 3', { input: 'a word\n' })
    expect([code, out, enforced.network]).to.deep.equal([3, 'got a word\n', 'none'])
  })

  it('reaches no server of this machine, by address, by name or by a socket in a file', async () => {
    using canary = await openCanary(box.at('canary.sock'))
    for (const where of [{ port: canary.port, host: '127.0.0.1' }, { path: box.at('canary.sock') }])
      expect((await box.run('node', ['-e', knock(where)])).out).to.match(/^(ECONNREFUSED|ENOENT|ENETUNREACH)\n$/)
    expect(canary.reached()).to.equal(0)
  })

  it('reaches it where the network is allowed, so the canary sings', async () => {
    using canary = await openCanary(box.at('canary.sock'))
    const { out, enforced } = await box.run('node', ['-e', knock({ port: canary.port, host: '127.0.0.1' })], {
      limits: { networkAccess: true },
    })
    expect([out, enforced.network]).to.deep.equal(['reached\n', 'host'])
  })

  it('sees the system and nothing of people: no home, no passwords, no folders beside it', async () => {
    await box.write('beside/file', 'secret')
    const { out } = await box.shell(
      `ls -A / ; ls /root /home /var /run /etc/shadow /etc/ssl/private ${box.at('beside')} ${process.cwd()} 2>/dev/null; ls -A /tmp`
    )
    expect(out.trim().split('\n')).to.include.members(['usr', 'etc', 'proc', 'dev', 'tmp'])
    expect(out).to.not.match(/root|home|var|run|shadow|private|file|package/)
  })

  it('writes only to its own /tmp, which no other process sees', async () => {
    await mkdir(box.at('work'))
    const places = ['/x', '/usr/x', '/etc/x', '/dev/x', '/proc/sys/kernel/core_pattern', '/proc/sysrq-trigger', box.at('work/x')]
    const { out } = await box.shell(
      places.map(place => `(echo x > ${place}) 2>/dev/null && echo wrote ${place}`).join('; ') +
        '; echo x > /tmp/mine && ls /tmp/mine',
      {
        cwd: box.at('work'),
      }
    )
    expect(out).to.equal('/tmp/mine\n')
    expect([await readdir(box.at('work')), existsSync('/tmp/mine')]).to.deep.equal([[], false])
  })

  it('writes to what it is allowed, also below its working folder, and reads what it may read', async () => {
    await mkdir(box.at('work/out'), { recursive: true })
    await box.write('library/text', 'to be read\n')
    const { out } = await box.shell(
      `cat ${box.at('library/text')}; echo kept > out/x; (echo x > no) 2>/dev/null || echo refused; (echo x > ${box.at('library/x')}) 2>/dev/null || echo refused`,
      {
        cwd: box.at('work'),
        limits: { allowedPaths: [box.at('work/out')], readPaths: [box.at('library')] },
      }
    )
    expect(out).to.equal('to be read\nrefused\nrefused\n')
    expect(await readFile(box.at('work/out/x'), 'utf8')).to.equal('kept\n')
    await box.shell('echo again > x', { cwd: box.at('work/out'), limits: { allowedPaths: [box.at('work')] } })
    expect(await readFile(box.at('work/out/x'), 'utf8')).to.equal('again\n')
  })

  it('may write its working folder where the file system is not for reading only, and never the system', async () => {
    await mkdir(box.at('work'))
    const { out } = await box.shell('echo kept > x; (echo x > /usr/x) 2>/dev/null || echo refused', {
      cwd: box.at('work'),
      limits: { filesystemReadonly: false },
    })
    expect([out, await readFile(box.at('work/x'), 'utf8')]).to.deep.equal(['refused\n', 'kept\n'])
  })

  it('is led nowhere by links in what it may write', async () => {
    await box.write('secret/file', 'secret')
    await mkdir(box.at('work'))
    await symlink(box.at('secret'), box.at('work/there'))
    const { out } = await box.shell(
      `cat there/file 2>/dev/null; ln -s ${box.at('secret/file')} mine; cat mine 2>/dev/null; (echo x > mine) 2>/dev/null; echo end`,
      {
        cwd: box.at('work'),
        limits: { allowedPaths: [box.at('work')] },
      }
    )
    expect([out, await readFile(box.at('secret/file'), 'utf8')]).to.deep.equal(['end\n', 'secret'])
  })

  it('does not begin in a folder that a link has taken the place of', async () => {
    await box.write('secret/file', 'secret')
    await mkdir(box.at('work'))
    await symlink(box.at('secret'), box.at('work/there'))
    const wanted = { cwd: box.at('work/there'), limits: { readPaths: [box.at('work')] } }
    expect((await refusal(box.wrap('true', [], wanted))).message).to.contain('leads outside the folders')
  })

  it('is not given what a link leads to that a run before put in the place of a further folder', async () => {
    await box.write('secret/file', 'secret')
    await mkdir(box.at('work'))
    await symlink(box.at('secret'), box.at('work/more'))
    const [work, more] = [box.at('work'), box.at('work/more')]
    for (const limits of [{ allowedPaths: [work, more] }, { allowedPaths: [work], readPaths: [more] }])
      expect((await refusal(box.wrap('true', [], { limits }))).message).to.contain('leads outside the folders')
    const wanted = { cwd: work, limits: { readPaths: [more], filesystemReadonly: false } }
    expect((await refusal(box.wrap('true', [], wanted))).message).to.contain('leads outside the folders')
  })

  it('is shown nothing for a program of its own that it can make lead elsewhere', async () => {
    await box.write('victim/package.json', '{}')
    await box.write('victim/node_modules/a/program', '#!/bin/sh\necho ran\n')
    await box.write('victim/a.js', 'console.log("ran")')
    await box.write('work/named', `#!${box.at('victim/node_modules/a/program')}\n`)
    await symlink(box.at('victim/a.js'), box.at('work/link.js'))
    await symlink(box.at('victim/node_modules/a/program'), box.at('work/linked'))
    const limits = { allowedPaths: [box.at('work')] }
    const ways: [string, string[]][] = [
      [box.at('work/named'), []],
      [box.at('work/linked'), []],
      ['node', [box.at('work/link.js')]],
      ['node', ['--require', './link.js', '-p', '1']],
    ]
    for (const [command, args] of ways)
      expect((await refusal(box.wrap(command, args, { cwd: box.at('work'), limits }))).message).to.contain('leads out')
  })

  it('is not shown the folder round a program of its own, whose package.json it may have taken away', async () => {
    await box.write('package.json', '{}')
    await box.write('.env', 'secret')
    await box.write('work/server.js', `console.log(require('fs').existsSync('${box.at('.env')}'))`)
    const run = (limits: object) => box.run('node', [box.at('work/server.js')], { limits })
    expect((await run({ allowedPaths: [box.at('work')] })).out).to.equal('false\n')
    expect((await run({})).out).to.equal('true\n')
  })

  it('gets its own variables and none of the host, not even by way of the process before it', async () => {
    process.env.SVC_TEST_SECRET = 'a-secret-of-the-host'
    try {
      const { out } = await box.shell('env; cat /proc/*/environ | tr "\\0" "\\n"', { env: { TOKEN: 'its own' } })
      expect(out).to.contain('TOKEN=its own').and.contain('HOME=/tmp')
      expect(out).to.not.match(/a-secret-of-the-host|SVC_/)
    } finally {
      delete process.env.SVC_TEST_SECRET
    }
  })

  it('hands its secrets over where no list of processes shows them, and lets no variable load code outside', async () => {
    const { args, env } = await box.wrap('true', [], { env: { TOKEN: 'its own', LD_PRELOAD: '/x.so' } })
    expect(args.join(' ')).to.not.contain('its own')
    expect([env.TOKEN, env.LD_PRELOAD, args[args.indexOf('LD_PRELOAD') + 1]]).to.deep.equal(['its own', undefined, '/x.so'])
  })

  it('has no rights to gain: no capability, no further namespace, no other process to look at', async () => {
    const { out } = await box.shell(
      'grep -h Cap /proc/self/status | cut -f2 | sort -u; unshare -U true 2>/dev/null && echo namespace; mount -o remount,rw /usr 2>/dev/null && echo mounted; kill -9 -1; ls -d /proc/[0-9]* | wc -l'
    )
    const [capabilities, processes, ...more] = out.trim().split('\n')
    expect([capabilities, more]).to.deep.equal(['0'.repeat(16), []])
    expect(Number(processes)).to.be.below(6)
  })

  it('never shows the svc home, whatever would bring it into sight', async () => {
    await symlink(box.home(), box.at('innocent'))
    await mkdir(box.home('inner'))
    const program = box.home('program')
    await writeFile(program, '#!/bin/sh\n', { mode: 0o755 })
    const ways = [
      { limits: { allowedPaths: [box.home()] } },
      { limits: { allowedPaths: [box.home('inner')] } },
      { limits: { allowedPaths: [box.at('innocent')] } },
      { limits: { allowedPaths: [box.at('..')] } },
      { limits: { readPaths: [box.at('..')] } },
      { cwd: box.home() },
    ]
    for (const way of ways) {
      const { code, message, hint } = await refusal(box.wrap('true', [], way))
      expect([code, hint], JSON.stringify(way)).to.deep.equal(['SANDBOX_PATH', 'Use a folder outside the svc home'])
      expect(message).to.contain('which holds keys and conversations')
    }
    expect((await refusal(box.wrap(program))).code).to.equal('SANDBOX_PATH')
    expect((await box.shell(`cat ${box.home('key')} 2>/dev/null; echo end`)).out).to.equal('end\n')
  })

  it('sees an empty folder where the svc home lies in a folder of the system', async () => {
    await using own = await openSandbox('/usr/share')
    const { out, err } = await own.shell('ls -A /usr/share; (echo x > /usr/share/x) 2>/dev/null || echo end')
    expect([out, err]).to.deep.equal(['end\n', ''])
    await using missing = await openSandbox('/usr/share/no-such-home')
    expect((await refusal(missing.wrap('true'))).message).to.contain('does not exist yet')
  })

  it('refuses paths of the system, of everybody, and such as are not there, in words', async () => {
    const cases = {
      '/proc': /belongs to the system/,
      '/etc': /belongs to the system/,
      '/dev/shm': /belongs to the system/,
      '/tmp': /all programs/,
      work: /not an absolute path/,
      [box.at('nowhere')]: /does not exist/,
    }
    for (const [path, words] of Object.entries(cases)) {
      const { code, message } = await refusal(box.wrap('true', [], { limits: { allowedPaths: [path] } }))
      expect(code, path).to.equal('SANDBOX_PATH')
      expect(message, path).to.match(words)
    }
    const before = process.env.TMPDIR
    process.env.TMPDIR = box.at('gone')
    const { message } = await refusal(box.wrap('true', [], { limits: { allowedPaths: ['/tmp'] } }))
    if (before === undefined) delete process.env.TMPDIR
    else process.env.TMPDIR = before
    expect(message).to.match(/all programs/)
  })
})
