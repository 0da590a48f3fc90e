import { copyFile, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { until } from '../support/wait.ts'
import { clientCalls } from '../support/project.ts'
import { newHome, type Service, startService } from '../support/service.ts'
import { describeWith } from '../support/needs.ts'

const SERVER = fileURLToPath(new URL('../support/running-server.mjs', import.meta.url))
const SECRET = 'a-secret-of-the-host'
const OWN = 'a-secret-of-the-server'

// Attacks as the code that a hostile server runs: in the process sandbox, without Node's permission model as a second fence.
describeWith('bubblewrap', 'a hostile stdio server in the process sandbox', function () {
  let folder: string
  let home: string
  let service: Service
  const listening = createServer(socket => socket.end('reached'))
  before(async () => {
    home = await newHome()
    folder = await mkdtemp(join(tmpdir(), 'svc-hostile-'))
    await mkdir(join(folder, 'server'))
    await copyFile(SERVER, join(folder, 'server/server.mjs'))
    await writeFile(join(folder, 'beside.txt'), SECRET)
    await writeFile(join(home, 'secret.txt'), SECRET)
    listening.listen(0, '127.0.0.1')
    await once(listening, 'listening')
    const clients = [{ name: 'hostile', command: join(folder, 'server/server.mjs'), env: { KEY: OWN }, sandbox: true }]
    await writeFile(join(home, 'svc.config.json'), JSON.stringify({ mcp: { clients } }))
    service = await startService({ home, args: ['--mcp'], env: { HOST_SECRET: SECRET } })
    await until(
      async () => (await fetch(`${service.url}/tools`)).text(),
      tools => tools.includes('hostile__run')
    )
  })
  after(async () => {
    await service[Symbol.asyncDispose]()
    listening.close()
    for (const path of [home, folder]) await rm(path, { recursive: true, force: true })
  })

  /** What the code answers, run by the server. */
  async function attack(code: string): Promise<unknown> {
    const { status, text } = await clientCalls(service, 'hostile__run', { code })
    expect(status, text).to.equal(200)
    const { content } = JSON.parse(text) as { content: { text: string }[] }
    return JSON.parse(content[0]!.text)
  }
  const FS = "const fs = await import('node:fs');"
  const refused = /^refused: (ENOENT|EACCES|EPERM|EROFS|ESRCH|ENXIO|ECONNREFUSED|ENETUNREACH|EINVAL|ENODEV|ETXTBSY|EISDIR)$/

  it('runs, with its own variables and none of the host', async () => {
    const env = (await attack('return process.env')) as Record<string, string>
    expect(env.KEY).to.equal(OWN)
    expect(
      Object.keys(env)
        .filter(name => name !== 'PWD')
        .toSorted()
    ).to.deep.equal(['HOME', 'KEY', 'PATH', 'TMPDIR'])
    expect(JSON.stringify(env)).to.not.include(SECRET)
  })

  it('reads no file of the host: no home, no folder beside it, no password', async () => {
    const paths = [
      join(home, 'secret.txt'),
      home,
      join(folder, 'beside.txt'),
      '/etc/shadow',
      '/root',
      '/home',
      '/var',
      '/sys',
      '/run',
      '/boot',
    ]
    for (const path of paths)
      expect(
        await attack(
          `${FS} return fs.statSync(${JSON.stringify(path)}).isDirectory() ? fs.readdirSync(${JSON.stringify(path)}).length : 1`
        ),
        path
      ).to.match(refused)
  })

  it('writes nothing of the host, its own program included', async () => {
    const own = join(folder, 'server/server.mjs')
    const before_ = await readFile(own, 'utf8')
    for (const path of [own, '/x', '/usr/x', '/usr/bin/env', '/etc/passwd', '/dev/x', '/bin/x'])
      expect(await attack(`${FS} fs.writeFileSync(${JSON.stringify(path)}, 'x')`), path).to.match(refused)
    // its /tmp is its own, and the folder of its program lies there, too
    for (const path of ['/tmp/own', join(folder, 'server/new.mjs'), join(folder, 'new')])
      expect(await attack(`${FS} fs.writeFileSync(${JSON.stringify(path)}, 'x')`)).to.equal(null)
    expect(await readFile(own, 'utf8')).to.equal(before_)
    expect(await readdir(folder, { recursive: true })).to.have.members(['beside.txt', 'server', 'server/server.mjs'])
  })

  it('reaches no server of this machine or another, svc itself included', async () => {
    const connect = (where: string) =>
      `const net = await import('node:net'); return new Promise((resolve, reject) => net.connect(${where}).on('connect', () => resolve('reached')).on('error', reject))`
    const { port } = listening.address() as { port: number }
    const own = new URL(service.url).port
    const sockets = (await readdir(join(home, 'run'))).filter(name => name.endsWith('.sock')).map(name => join(home, 'run', name))
    expect(sockets).to.not.be.empty
    const places = [
      `{ host: '127.0.0.1', port: ${port} }`,
      `{ host: '127.0.0.1', port: ${own} }`,
      "{ host: '169.254.169.254', port: 80 }",
      "{ host: '::1', port: 22 }",
    ]
    for (const place of [...places, ...sockets.map(path => JSON.stringify({ path }))])
      expect(await attack(connect(place)), place).to.match(refused)
    expect(await attack("const dns = await import('node:dns/promises'); return dns.lookup('example.com')")).to.match(
      /^refused: E/
    )
  })

  it('sees no process but its own, and no variable, folder or descriptor through /proc', async () => {
    const pids = (await attack(
      `${FS} return fs.readdirSync('/proc').filter(name => /^\\d+$/.test(name)).map(Number)`
    )) as number[]
    expect(pids.length).to.be.below(6)
    const { pid } = service.child
    expect(await attack(`process.kill(${pid}, 0)`)).to.match(refused)
    const code = `${FS} const all = []
      for (const pid of fs.readdirSync('/proc').filter(name => /^\\d+$/.test(name)))
        for (const name of ['environ', 'cmdline', 'root/etc/shadow', 'cwd/beside.txt', 'root${join(home, 'secret.txt')}', 'maps'])
          try { all.push(fs.readFileSync('/proc/' + pid + '/' + name, 'latin1')) } catch {}
      return all.join()`
    expect(await attack(code)).to.not.include(SECRET)
    const open = (await attack(
      `${FS} return fs.readdirSync('/proc/self/fd').flatMap(fd => { try { return [[Number(fd), fs.readlinkSync('/proc/self/fd/' + fd)]] } catch { return [] } })`
    )) as [number, string][]
    const strange = open.filter(([fd, target]) => fd > 2 && !/^(anon_inode:|pipe:|\/dev\/null$|\/proc\/)/.test(target))
    expect(strange).to.deep.equal([])
  })

  it('changes nothing of the kernel: no setting, mount, device, namespace or terminal', async () => {
    for (const path of [
      '/proc/sys/kernel/core_pattern',
      '/proc/sysrq-trigger',
      '/proc/sys/vm/overcommit_memory',
      '/proc/1/oom_score_adj',
      '/proc/1/exe',
      '/dev/mem',
      '/dev/kmsg',
      '/dev/sda',
    ])
      expect(await attack(`${FS} fs.closeSync(fs.openSync(${JSON.stringify(path)}, 'r+'))`), path).to.match(refused)
    expect(await attack(`${FS} return fs.openSync('/dev/tty', 'r+')`)).to.match(refused)
    const sh = (script: string) =>
      `const { spawnSync } = await import('node:child_process'); return spawnSync('sh', ['-c', ${JSON.stringify(script)}]).status`
    expect(await attack(sh('true'))).to.equal(0)
    for (const script of [
      'mount -t tmpfs none /usr',
      'umount /usr',
      'mount -o remount,rw /',
      'unshare -r true',
      'unshare -m true',
      'chroot / true',
      'mknod /tmp/sda b 8 0',
      'nsenter -t 1 -m true',
    ])
      expect(await attack(sh(script)), script).to.not.equal(0)
    expect(await attack(`${FS} return fs.readFileSync('/proc/self/status', 'utf8').match(/CapEff:\\s*(\\S+)/)[1]`)).to.equal(
      '0000000000000000'
    )
  })

  it('cannot look for svc by a link in its private folder', async () => {
    const path = JSON.stringify(join(home, 'secret.txt'))
    expect(await attack(`${FS} fs.symlinkSync(${path}, '/tmp/link'); return fs.readFileSync('/tmp/link', 'utf8')`)).to.match(
      refused
    )
  })
})
