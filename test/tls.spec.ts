import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeCertificate, writeCertificate } from '@svc/testing'
import { expect } from 'chai'
import { runSvc } from './support/command.ts'
import { startService } from './support/service.ts'
import { workersOf } from './support/two-workers.ts'

describe('svc serve with TLS', () => {
  let folder = ''
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'svc-tls-'))
  })
  after(() => rm(folder, { recursive: true, force: true }))

  it('takes --ssl-cert and --ssl-key, says https, and takes up a new certificate while it runs', async () => {
    const made = makeCertificate()
    const { cert, key } = await writeCertificate(folder, made)
    await using service = await startService({ args: ['--ssl-cert', cert, '--ssl-key', key] })
    expect(service.url).to.match(/^https:/)
    expect(await healthOf(service.url, made.cert)).to.equal('healthy')
    const next = makeCertificate()
    await writeCertificate(folder, next)
    await service.seen(/a new certificate is in use/)
    expect(await healthOf(service.url, next.cert)).to.equal('healthy')
  })

  it('takes up a new certificate in each of its workers', async () => {
    const made = makeCertificate()
    const { cert, key } = await writeCertificate(folder, made)
    await using service = await startService({ args: ['--workers', '2', '--ssl-cert', cert, '--ssl-key', key] })
    await service.seen(/"event":"worker_ready"/)
    const next = makeCertificate()
    await writeCertificate(folder, next)
    await service.seen(/a new certificate is in use/, 2)
    // connections are dealt out in turn
    for (let times = 0; times < 4; times++) expect(await healthOf(service.url, next.cert)).to.equal('healthy')
  })

  it('replaces a worker that dies by one with the last valid certificate while the files are broken', async () => {
    const made = makeCertificate()
    const { cert, key } = await writeCertificate(folder, made)
    await using service = await startService({ args: ['--ssl-cert', cert, '--ssl-key', key] })
    const next = makeCertificate()
    await writeCertificate(folder, next)
    await service.seen(/a new certificate is in use/)
    await writeFile(cert, 'broken')
    await service.seen(/the server keeps the old certificate/)
    for (const times of [1, 2]) {
      const [pid] = await workersOf(service.home)
      process.kill(pid!, 'SIGKILL')
      await service.seen(/this worker uses the last valid certificate/, times)
      expect(await healthOf(service.url, next.cert)).to.equal('healthy')
    }
    // a reload reads the files: it fails, and the worker serves on
    const reload = await runSvc(['reload'], { home: service.home })
    expect(reload.code).to.equal(1)
    expect(reload.err).to.contain('CERTIFICATE_INVALID').and.contain('the old workers keep serving')
    expect(await healthOf(service.url, next.cert)).to.equal('healthy')
    const last = makeCertificate()
    await writeCertificate(folder, last)
    await service.seen(/a new certificate is in use/, 2)
    expect(await healthOf(service.url, last.cert)).to.equal('healthy')
    for (const file of await readdir(service.home, { recursive: true, withFileTypes: true }))
      if (file.isFile()) expect(await readFile(join(file.parentPath, file.name), 'latin1')).to.not.contain('PRIVATE KEY')
  })

  it('serves with the last valid certificate after a restore of the store while the files are broken', async () => {
    const made = makeCertificate()
    const { cert, key } = await writeCertificate(folder, made)
    await using service = await startService({ args: ['--ssl-cert', cert, '--ssl-key', key] })
    const backup = await runSvc(['store', 'backup', join(folder, 'backup.db')], { home: service.home })
    expect(backup.code, backup.err).to.equal(0)
    await writeFile(cert, 'broken')
    await service.seen(/the server keeps the old certificate/)
    for (const times of [1, 2]) {
      const restored = await runSvc(['store', 'restore', join(folder, 'backup.db')], { home: service.home })
      expect(restored.code, restored.err).to.equal(0)
      await service.seen(/this worker uses the last valid certificate/, times)
      expect(await healthOf(service.url, made.cert)).to.equal('healthy')
    }
    expect(service.child.exitCode).to.equal(null)
  })

  it('ends with what is wrong and the hint where the key is protected', async () => {
    const made = makeCertificate()
    const { cert, key } = await writeCertificate(folder, { ...made, key: made.locked })
    const failed = await startService({ args: ['--ssl-cert', cert, '--ssl-key', key] }).catch(String)
    expect(failed).to.include('protected by a password').and.include('openssl pkey')
  })

  it('ends with the hint where one of the two is missing', async () => {
    const { cert } = await writeCertificate(folder, makeCertificate())
    const failed = await startService({ args: ['--ssl-cert', cert] }).catch(String)
    expect(failed).to.include('server.ssl.key is missing').and.include('--ssl-key')
  })
})

function healthOf(url: string, ca: string): Promise<unknown> {
  const { promise, resolve, reject } = Promise.withResolvers<unknown>()
  request(`${url}/health`, { ca, agent: false }, response => {
    let text = ''
    response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
    response.on('end', () => resolve((JSON.parse(text) as { status: string }).status))
  })
    .on('error', reject)
    .end()
  return promise
}
