import { mkdir, mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { Host, type Manifest, type StartFailed } from '@svc/core'
import { Conversations, Store, Tools } from '@svc/core/contracts'
import { isolate } from '@svc/runtime/isolation'
import { failureOf } from '@svc/testing'
import { expect } from 'chai'
import { setTimeout as wait } from 'node:timers/promises'
import { failed, type Hostile, openCanary, openHostile, withSandbox } from './support/hostile.ts'

withSandbox('what an isolated plugin reaches for', () => {
  let folder: string
  let canary: Awaited<ReturnType<typeof openCanary>>
  let hostile: Hostile
  let hosts = 0
  const at = (name: string) => join(folder, name)
  before(async () => {
    // apart from /tmp, of which it has its own
    folder = await realpath(await mkdtemp('/var/tmp/svc-hostile-'))
    for (const name of ['library', 'out', 'beside']) await mkdir(at(name))
    await writeFile(at('library/book'), 'to be read')
    await writeFile(at('beside/secret'), 'not to be read')
    canary = await openCanary()
    Object.assign(process.env, { SVC_TEST_GIVEN: 'given', SVC_TEST_KEPT: 'kept' })
    hostile = await openHostile({
      permissions: {
        env: ['SVC_TEST_GIVEN', 'SVC_TEST_ABSENT'],
        network: [`localhost:${canary.port}`, `${hostname()}`, '*.example.com', '169.254.169.253'],
        read: [at('library'), at('not-there')],
        write: ['<hostile.folder>'],
      },
      config: { hostile: { folder: at('out') } },
    })
  })
  after(async () => {
    await hostile?.[Symbol.asyncDispose]()
    await canary[Symbol.asyncDispose]()
    delete process.env.SVC_TEST_GIVEN
    delete process.env.SVC_TEST_KEPT
    await rm(folder, { recursive: true })
  })

  const count = (kind: string) => hostile.report().refusals?.[kind] ?? 0
  /** Waits until so many are counted; more are a fault. */
  const counted = async (kind: string, wanted: number) => {
    while (count(kind) < wanted) await wait(5)
    expect(count(kind)).to.equal(wanted)
  }
  const reported = (text: string) => hostile.until(text)

  it('runs in the sandbox, and says so', () => {
    expect(hostile.report()).to.include({ state: 'running', isolation: 'process', hold: 'sandbox', restarts: 0 })
  })

  it('uses no service and no slot that it was not permitted to use', async () => {
    const module = new URL('support/hostile/index.ts', import.meta.url).href
    const held = (permissions: Manifest['permissions']) => ({
      name: 'svc-plugin-greedy',
      module,
      confinement: { folder, permissions: permissions ?? {} },
    })
    const declares = { requires: { store: Store, tools: Tools, host: Host }, optional: { conversations: Conversations } }
    const error = await failureOf(isolate(held({ services: ['tools'] }), {}, declares))
    expect(error).to.include({ code: 'NOT_PERMITTED', plugin: 'svc-plugin-greedy' })
    expect(error).to.have.deep.property('details', { services: ['conversations', 'store'] })
    await isolate(held({ services: ['tools', 'sto*', 'conversations'] }), {}, declares)
  })

  it('joins no hook without permission, and gets an error that names the hook', async () => {
    const error = (await failureOf(openHostile({ permissions: { hooks: ['chat.*'] } }))) as StartFailed
    expect(error.problems.map(problem => [problem.code, problem.plugin])).to.deep.equal([['NOT_PERMITTED', 'svc-plugin-hostile']])
    expect(error.problems[0]!.hint).to.include('"hooks": ["gong.struck"]')
  })

  it('has the variables that it declares, and no other of the host', async () => {
    expect(await hostile.attack('variable', 'SVC_TEST_GIVEN')).to.equal('given')
    expect((await hostile.attack('variables')).split(' ')).to.not.include.members(['SVC_TEST_KEPT'])
  })

  it('is logged by name for a variable that it does not declare, with the line to add', async () => {
    const before = count('env')
    expect(await hostile.attack('variable', 'SVC_TEST_KEPT')).to.equal('undefined')
    await reported('svc-plugin-hostile tried to read the variable SVC_TEST_KEPT, which its manifest does not declare')
    expect(hostile.lines.find(line => line.includes('SVC_TEST_KEPT'))).to.include('\\"env\\": [\\"SVC_TEST_KEPT\\"]')
    for (const usual of ['NODE_DEBUG', 'npm_config_x', 'FORCE_COLOR', 'SVC_TEST_ABSENT']) await hostile.attack('variable', usual)
    await hostile.attack('variable', 'SVC_TEST_KEPT')
    await hostile.attack('variable', 'SVC_TEST_OTHER')
    await counted('env', before + 2)
  })

  it('reaches the host that it declares, by fetch, by node:http and by a fetch that guards itself', async () => {
    for (const what of ['fetch', 'get', 'guarded'])
      expect(await hostile.attack(what, `http://localhost:${canary.port}/`), what).to.equal('the canary sings')
    expect(canary.reached()).to.equal(3)
    expect(await failed(hostile.attack('guarded', 'http://127.0.0.1/'))).to.match(/CONNECTION_FAILED/)
  })

  it('reaches no other host: not declared, an address of this machine, one of its cloud, a name that leads inside', async () => {
    const before = canary.reached()
    const tries = [
      'undeclared.test',
      `127.0.0.1:${canary.port}`,
      `127.1:${canary.port}`,
      `localhost:${canary.port + 1}`,
      '169.254.169.254',
      '[::1]',
      hostname(),
    ]
    for (const host of tries) await failed(hostile.attack('fetch', `http://${host}/`))
    for (const host of tries)
      expect(await hostile.attack('get', `http://${host}/`)).to.match(/is not declared|not public|no address/)
    await reported('svc-plugin-hostile tried to reach undeclared.test, which its manifest does not declare')
    await reported(`tried to reach 127.0.0.1:${canary.port}`)
    await reported('tried to reach 169.254.169.254,')
    hosts = tries.length
    expect(canary.reached()).to.equal(before)
  })

  it('connects no socket with a host that it does not declare', async () => {
    const before = canary.reached()
    for (const where of [`127.0.0.1 ${canary.port}`, '169.254.169.254 80', 'undeclared.test 443'])
      expect(await failed(hostile.attack('connect', where))).to.match(/ECONNREFUSED|EACCES/)
    expect(canary.reached()).to.equal(before)
    for (const where of [`127.0.0.1:${canary.port}`, '169.254.169.254', 'undeclared.test'])
      await reported(`svc-plugin-hostile tried to reach ${where}, which its manifest does not declare`)
  })

  it('reads and writes what it declares', async () => {
    expect(await hostile.attack('read', at('library/book'))).to.equal('to be read')
    expect(await hostile.attack('write', at('out/mine'))).to.equal('written')
    expect(await readFile(at('out/mine'), 'utf8')).to.equal('mine')
    expect(await hostile.attack('write', '/tmp/mine')).to.equal('written')
  })

  it('reads nothing else, and each attempt is logged by name and counted', async () => {
    const before = count('read')
    for (const path of [at('beside/secret'), '/etc/shadow', '/srv/keys/id_rsa']) {
      expect(await failed(hostile.attack('read', path)), path).to.match(/ERR_ACCESS_DENIED|ENOENT|EACCES/)
      await reported(`svc-plugin-hostile tried to read ${path}, which its manifest does not declare`)
    }
    await failed(hostile.attack('readLater', at('beside/later')))
    await reported(`tried to read ${at('beside/later')}`)
    await counted('read', before + 4)
  })

  it('is held by the permissions of Node as well, within the sandbox', async () => {
    // that alone would not find it
    expect(await failed(hostile.attack('read', '/var/lib/elsewhere'))).to.include('ERR_ACCESS_DENIED')
  })

  it('gets an error with the missing permission and the line to add, in place of a flag of Node', async () => {
    const line = (kind: string, what: string) =>
      `${what} is not declared: add "svc": { "permissions": { "${kind}": ["${what}"] } } to its package.json`
    const read = `ERR_ACCESS_DENIED ${line('read', '/var/lib/elsewhere')}`
    for (const how of ['read', 'readLater']) expect(await failed(hostile.attack(how, '/var/lib/elsewhere'))).to.include(read)
    const writes = count('write')
    const written = await failed(hostile.attack('write', '/var/lib/mine'))
    expect(written)
      .to.include(`ERR_ACCESS_DENIED ${line('write', '/var/lib/mine')}`)
      .and.to.not.include('--allow')
    await counted('write', writes + 1)
    expect(await failed(hostile.attack('start', '/bin/false'))).to.match(/ERR_ACCESS_DENIED .*\/bin\/false; run it in-process/)
    for (const scheme of ['http', 'https']) {
      const asked = await failed(hostile.attack('fetch', `${scheme}://undeclared.test/x`))
      expect(asked).to.include(`fetch failed: ${line('network', 'undeclared.test')}`)
    }
    hosts++
    expect(await failed(hostile.attack('fetch', 'nonsense'))).to.include('Failed to parse URL')
  })

  it('writes nowhere else, and each attempt is logged by name and counted', async () => {
    const before = count('write')
    for (const path of [at('beside/mine'), at('library/mine'), '/etc/mine', '/usr/mine']) {
      await failed(hostile.attack('write', path))
      await reported(`svc-plugin-hostile tried to write to ${path}, which its manifest does not declare`)
    }
    await counted('write', before + 4)
    expect(await failed(readFile(at('beside/mine')))).to.match(/ENOENT/)
  })

  it('starts no other program, and each attempt is logged by name and counted, as for hosts', async () => {
    const before = count('process')
    await failed(hostile.attack('start', '/bin/sh'))
    await reported('svc-plugin-hostile tried to start /bin/sh')
    await counted('process', before + 1)
    // each was tried twice, and a client may ask once more
    expect(count('network')).to.be.within(2 * hosts, 3 * hosts)
  })
})
