import { mkdir, mkdtemp, readdir, readFile, rename, rm, stat, statfs, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect } from 'chai'
import { systemContext } from '@svc/core'
import { reachServer } from '@svc/runtime'
import { auditLedger, CRASH_ENV as env, type Ledger, newLedger, startLoad } from './support/crash-loop.ts'
import { coverReadOnly, removeDisk, smallDisk } from '../plugins/storage/sqlite/test/broken-files.ts'
import { runSvc } from './support/command.ts'
import { inNewHome, post, type Service, startService } from './support/service.ts'
import { sideBySideIn } from './support/side-by-side.ts'
import { configureFew } from './support/tides.ts'
import { skipBecause } from './support/needs.ts'

/** Runs `svc` to its end. */
const svc = (home: string, ...args: string[]) => runSvc(args, { home, share: true })

/** What has been acknowledged up to now; what is sent later may be there, too. */
const acknowledgedNow = ({ known, sent, acknowledged }: Ledger): Ledger => ({
  known: new Map([...known].map(([name, { id, acknowledged: turns }]) => [name, { id, acknowledged: [...turns] }])),
  sent,
  acknowledged,
})

describe('the store of a running server', () => {
  const itCurated = sideBySideIn(inNewHome)
  const it = sideBySideIn<string>(run =>
    inNewHome(async home => {
      await configureFew(home)
      await run(home)
    })
  )

  itCurated('is backed up under load with every turn acknowledged before, and restored for the next server', async home => {
    const file = join(home, 'backup.db')
    const ledger = newLedger()
    let then: Ledger
    {
      const service = await startService({ home, env, args: ['--workers', '2'] })
      const load = startLoad(service.url, ledger, { clients: 6, seed: 1 })
      await load.reached(60)
      then = acknowledgedNow(ledger)
      const { code, out, err } = await svc(home, 'store', 'backup', file, '--json')
      expect(code, err).to.equal(0)
      expect(JSON.parse(out)).to.include({ file, store: join(home, 'svc.db') })
      expect((await stat(file)).mode & 0o777).to.equal(0o600)
      await load.reached(90)
      await service.kill()
      await load.broken()
    }
    const restored = await svc(home, 'store', 'restore', file, '--json')
    expect(restored.code, restored.err).to.equal(0)
    expect((await readdir(home)).filter(name => name.startsWith('svc.db.bak-'))).to.have.length(1)
    await using service = await startService({ home, env })
    expect(await auditLedger(service.url, then)).to.deep.equal([])
    expect(then.acknowledged).to.be.at.least(60)
  }).timeout(120_000)

  it('is restored while it runs: the server is back by the answer, with what the backup has and nothing later', async home => {
    await using service = await startService({ home, env, args: ['--workers', '2'] })
    const say = async (message: string) => {
      const { body } = await post(`${service.url}/api/v1/chat`, { message })
      return `${service.url}/api/v1/conversations/${String(body.conversation_id)}`
    }
    const before = await say('before')
    expect(await svc(home, 'store', 'backup', 'b.db')).to.include({ code: 0 })
    const after = await say('after')
    await writeFile(join(home, 'broken.db'), 'no database')
    expect((await svc(home, 'store', 'restore', 'broken.db')).err).to.match(/^BACKUP_INVALID/)
    expect((await fetch(after)).status, 'nobody has paused').to.equal(200)
    const restored = await svc(home, 'store', 'restore', 'b.db')
    expect(restored.code, restored.err).to.equal(0)
    expect(restored.err).to.contain(`${service.url} serves again`)
    expect([(await fetch(before)).status, (await fetch(after)).status]).to.deep.equal([200, 404])
    expect((await fetch(await say('again'))).status).to.equal(200)
    expect(await service.stop()).to.equal(0)
  })

  it('resumes its server when the process that paused it exits without a message', async home => {
    await using service = await startService({ home, env })
    const server = await reachServer(home)
    const ctx = systemContext(new AbortController().signal)
    const pause = server.control.pause(ctx)[Symbol.asyncIterator]()
    expect(await pause.next()).to.deep.equal({ done: false, value: 'paused' })
    expect((await server.control.info(ctx)).workers).to.deep.equal([])
    expect(
      await fetch(service.url).then(
        () => 'served',
        () => 'refused'
      )
    ).to.equal('refused')
    server[Symbol.dispose]()
    await service.seen(/"event":"reloaded"/)
    expect((await fetch(`${service.url}/health`)).status).to.equal(200)
  })

  it('is not written over without --force, and says so as the command line does', async home => {
    await using service = await startService({ home })
    await post(`${service.url}/api/v1/chat`, { message: 'hello' })
    expect(await svc(home, 'store', 'backup', 'b.db')).to.include({ code: 0 })
    const again = await svc(home, 'store', 'backup', 'b.db')
    expect(again.code).to.equal(1)
    expect(again.err)
      .to.match(/^BACKUP_EXISTS/)
      .and.contain('--force')
    expect(await svc(home, 'store', 'backup', 'b.db', '--force')).to.include({ code: 0 })
    const wrong = await svc(home, 'store', 'backup')
    expect(wrong.code).to.equal(2)
    expect(wrong.err).to.match(/^COMMAND_LINE_INVALID/)
    const help = await svc(home, 'store', 'restore', '--help')
    expect(help.out).to.contain('EXAMPLES').and.contain('svc store restore ./svc-backup.db')
  })

  it('that is missing or damaged causes 503 and appears in /health without a path; the next request works after it is put back', async home => {
    await using service = await startService({ home })
    const chat = (message: string) => post(`${service.url}/api/v1/chat`, { message })
    expect((await chat('one')).status).to.equal(200)
    await rename(join(home, 'svc.db'), join(home, 'away.db'))
    const refused = await chat('two')
    expect([refused.status, refused.body.error_code]).to.deep.equal([503, 'UNAVAILABLE'])
    const health = await fetch(`${service.url}/health`)
    expect(health.status).to.equal(503)
    const healthText = await health.text()
    for (const said of [healthText, JSON.stringify(refused.body)]) expect(said).to.not.contain(home)
    expect(healthText).to.contain('unhealthy')
    await rename(join(home, 'away.db'), join(home, 'svc.db'))
    await expectWell(service)
    copyOf(join(home, 'svc.db'), join(home, 'good.db'))
    await writeFile(join(home, 'bad.db'), (await readFile(join(home, 'good.db'))).fill(0xab, 4096))
    await rename(join(home, 'bad.db'), join(home, 'svc.db'))
    await expectProblem(service, /svc\.db is damaged/)
    await rename(join(home, 'good.db'), join(home, 'svc.db'))
    await expectWell(service)
  })

  it('that another program has locked causes 503 and appears in /health; the next request works after the lock is released', async home => {
    await using service = await startService({ home, env: { SVC_STORE__BUSY_TIMEOUT_MS: '100' } })
    const { conversation } = await talk(service, 'one')
    using other = new DatabaseSync(join(home, 'svc.db'))
    other.exec('BEGIN IMMEDIATE')
    await expectProblem(service, /locked/)
    expect((await fetch(conversation)).status, 'who reads is held up by nobody').to.equal(200)
    other.exec('COMMIT')
    await expectWell(service)
  })

  it('that is not a database fails the start with code, message, location and hint', async home => {
    await startService({ home }).then(service => service.stop())
    await rename(join(home, 'svc.db'), join(home, 'away.db'))
    await rename(join(home, 'profiles.yaml'), join(home, 'svc.db'))
    const { code, err } = await svc(home, 'serve', '--port', '0')
    expect(code).to.equal(1)
    expect(err)
      .to.match(/svc\.db is not a database {3}\(.*svc\.db\)/)
      .and.contain('svc store restore <backup>')
  })
})

/** Bytes left for conversations before the disk is full. */
const ROOM = 500_000

describe('the store of a running server on a small disk', () => {
  it('is 503 and shown in /health while it is full or read-only, has all that was acknowledged, and works once there is room', async function () {
    const disk = await mkdtemp(join(tmpdir(), 'svc-disk-'))
    const mounted = join(disk, 'small')
    skipBecause(this, smallDisk(mounted, 2))
    try {
      await using service = await startService({ env: { SVC_STORE__PATH: join(mounted, 'svc.db') } })
      const filler = join(mounted, 'filler')
      const { bavail, bsize } = await statfs(mounted)
      await writeFile(filler, Buffer.alloc(Math.max(0, bavail * bsize - ROOM)))
      const acknowledged: string[] = []
      for (let status = 200; status === 200; ) {
        const said = await talk(service, 'x'.repeat(20_000))
        status = said.status
        if (status === 200) acknowledged.push(said.conversation)
      }
      expect(acknowledged).to.have.length.above(0)
      await expectProblem(service, /full/, { message: 'x'.repeat(20_000), mayStillFit: 100 })
      for (const item of acknowledged) expect((await fetch(item)).status).to.equal(200)
      await rm(filler)
      await expectWell(service)
      for (const item of acknowledged) expect((await fetch(item)).status).to.equal(200)
      await mkdir(join(disk, 'copy'))
      copyOf(join(mounted, 'svc.db'), join(disk, 'copy', 'svc.db'))
      coverReadOnly(mounted, join(disk, 'copy'))
      try {
        await expectProblem(service, /read-only/)
      } finally {
        removeDisk(mounted)
      }
      await expectWell(service)
      for (const item of acknowledged) expect((await fetch(item)).status).to.equal(200)
    } finally {
      removeDisk(mounted)
      await rm(disk, { recursive: true })
    }
  })
})

/** All that is in a store that somebody has open, as one file. */
function copyOf(store: string, file: string): void {
  using db = new DatabaseSync(store, { readOnly: true })
  db.prepare('VACUUM INTO ?').run(file)
}

/** A first turn, and where its conversation is. */
async function talk({ url }: Service, message: string) {
  const { status, body } = await post(`${url}/api/v1/chat`, { message })
  return { status, body, conversation: `${url}/api/v1/conversations/${String(body.conversation_id)}` }
}

/**
 * That a chat and `/health` are both 503, the log says why, and neither answer tells a path. On a full disk some chats may still
 * fit: SQLite uses the pages of its log again when a checkpoint comes.
 */
async function expectProblem(service: Service, reason: RegExp, { message = 'two', mayStillFit = 0 } = {}): Promise<void> {
  let { status, body } = await talk(service, message)
  for (let left = mayStillFit; status === 200 && left > 0; left--) ({ status, body } = await talk(service, message))
  expect([status, body.error_code]).to.deep.equal([503, 'UNAVAILABLE'])
  const health = await fetch(`${service.url}/health`)
  const healthText = await health.text()
  expect([health.status, (JSON.parse(healthText) as { checks: { database: string } }).checks.database]).to.deep.equal([
    503,
    'unhealthy',
  ])
  await service.seen(reason)
  for (const said of [healthText, JSON.stringify(body)]) expect(said).to.not.contain('svc.db')
}

async function expectWell(service: Service): Promise<void> {
  expect((await talk(service, 'three')).status).to.equal(200)
  expect((await fetch(`${service.url}/health`)).status).to.equal(200)
}
