import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { changesOf, type Managed, startManaged, until } from '../support/admin-caller.ts'
import { runSvc } from '../support/command.ts'

const STORE = '/api/v1/store'

interface Shown {
  readonly id: string
  readonly kind: string
  readonly state: string
  readonly finished_at: string | null
  readonly progress: { readonly progress: number; readonly total: number } | null
  readonly result?: { readonly name: string; readonly bytes: number; readonly records: number }
  readonly error: { readonly code: string; readonly message: string } | null
}

describe('the management API of the store', () => {
  let home: string
  let server: Managed & AsyncDisposable
  before(async () => {
    home = await mkdtemp(join(tmpdir(), 'svc-store-api-'))
    server = await startManaged(home, 'log: { level: info }\n')
  })
  after(async () => {
    await server?.[Symbol.asyncDispose]()
    await rm(home, { recursive: true, force: true })
  })
  const ended = async (id: string) => {
    const read = () => server.admin.expect<Shown>(200, 'GET', `/api/v1/jobs/${id}`)
    await until('the backup ends', async () => (await read()).finished_at !== null)
    return read()
  }

  it('reports its engine, size, spaces and role from every worker', async () => {
    for (let at = 0; at < 10; at++) {
      const status = await server.reader.expect<{ spaces: { name: string; version: number }[]; bytes: number }>(200, 'GET', STORE)
      expect(status).to.include({ kind: 'sqlite', durable: true, scope: 'machine', role: 'primary', can_back_up: true })
      expect(status.bytes).to.be.greaterThan(10_000)
      expect(status.spaces.map(({ name }) => name)).to.include.members(['auth_tokens', 'jobs', 'conversations'])
      expect(JSON.stringify(status)).to.not.include(home)
    }
  })

  it('backs up into the home as a job with progress, while requests go on', async () => {
    const { admin } = server
    const job = await admin.expect<Shown>(202, 'POST', `${STORE}/backup`)
    expect(job.kind).to.equal('store.backup')
    for (let at = 0; at < 4; at++) expect((await admin.send('GET', '/health')).status).to.equal(200)
    const { state, result, progress } = await ended(job.id)
    expect(state).to.equal('completed')
    expect(progress!.progress).to.equal(progress!.total)
    const { entries } = await server.admin.expect<{ entries: readonly { message: string }[] }>(
      200,
      'GET',
      `/api/v1/jobs/${job.id}/log`
    )
    expect(entries.map(({ message }) => message).join('\n')).to.match(
      /^copying \d+ bytes to \S+\.db\nchecked \S+\.db: \d+ bytes, \d+ records/
    )
    const files = await readdir(join(home, 'backups'))
    expect(files).to.deep.equal([result!.name])
    // it is a store that the command line accepts
    const { code, err } = await runSvc(['store', 'restore', join(home, 'backups', files[0]!)], {
      home: await mkdtemp(join(home, 'other-')),
    })
    expect(code, err).to.equal(0)
    const changes = await changesOf(server, 'store')
    expect(changes[0]).to.deep.include({ change: 'store_backup_started', principal: 'api-key', after: { job: job.id } })
  })

  it('makes one backup at a time', async () => {
    const jobs = await Promise.all([1, 2, 3].map(() => server.admin.expect<Shown>(202, 'POST', `${STORE}/backup`)))
    for (const { id } of jobs) expect((await ended(id)).state).to.equal('completed')
  })

  it('makes no more backups when there are too many', async () => {
    await mkdir(join(home, 'backups'), { recursive: true })
    for (let at = 0; at < 20; at++) await writeFile(join(home, 'backups', `${at}.db`), '')
    const { id } = await server.admin.expect<Shown>(202, 'POST', `${STORE}/backup`)
    const { state, error } = await ended(id)
    expect([state, error!.code]).to.deep.equal(['failed', 'STORE_BACKUP_FULL'])
    expect(JSON.stringify(error)).to.not.include(home)
  })

  it('refuses a path, parameters, and callers without the scope', async () => {
    const { admin, reader, unfit } = server
    await admin.refused(400, 'INVALID_VALUE', 'POST', `${STORE}/backup?file=/tmp/x`)
    const added = await admin.send('POST', '/api/v1/jobs', { kind: 'store.backup', input: { file: '/tmp/svc-anywhere.db' } })
    expect(added.status).to.equal(400)
    await admin.refused(400, 'INVALID_VALUE', 'GET', `${STORE}?path=1`)
    await reader.refused(403, 'FORBIDDEN', 'POST', `${STORE}/backup`)
    await unfit.refused(403, 'FORBIDDEN', 'GET', STORE)
  })

  it('refuses a body with a path', async () => {
    const answer = await server.admin.send('POST', `${STORE}/backup`, { file: '/tmp/svc-anywhere.db' })
    expect(answer.status, answer.text).to.be.oneOf([202, 400])
    expect(await readdir('/tmp')).to.not.include('svc-anywhere.db')
  })
})
