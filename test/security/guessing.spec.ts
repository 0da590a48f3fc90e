import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { until } from '../support/wait.ts'
import { type Client, createClient } from '../support/client.ts'
import { runSvc } from '../support/command.ts'
import { routesOf, type Stranger, serveStrangers } from '../support/stranger.ts'

const KEY = 'the-key-of-this-server-and-no-other'
const LIMIT = 10
const MINUTE = 60_000

/** The clock of the server, moved on by what stands in a file. */
const CLOCK = `import { readFileSync } from 'node:fs'
const moved = () => Number(readFileSync(process.env.CLOCK_FILE, 'utf8'))
const [now, date] = [performance.now.bind(performance), Date.now]
performance.now = () => now() + moved()
Date.now = () => date() + moved()`

const GUARDED: Stranger = {
  name: 'svc-plugin-guarded',
  isolation: 'in-process',
  svc: { kind: 'routes', ...routesOf({ guarded: { method: 'GET', path: '/guarded', scope: 'read' } }) },
  code: `import { definePlugin } from '@svc/core'
import { Routes } from '@svc/core/contracts'
const route = { method: 'GET', path: '/guarded', summary: 'Is guarded', scope: 'read', handle: async () => ({ body: {} }) }
export default definePlugin({ setup: scope => void scope.add(Routes, 'guarded', route) })`,
}

describe('guessing a credential', function () {
  this.timeout(60_000)
  let folder: string
  let service: Awaited<ReturnType<typeof serveStrangers>>
  let client: Client
  let addresses = 0

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'svc-clock-'))
    await writeFile(join(folder, 'now'), '0')
    service = await serveStrangers([GUARDED], {
      beside: ['auth-api-key', 'auth-bearer'],
      config: { server: { auth: { enabled: true }, trusted_proxies: ['127.0.0.1'] } },
      env: {
        SVC_API_KEY: KEY,
        CLOCK_FILE: join(folder, 'now'),
        NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(CLOCK)}`,
      },
      args: ['--workers', '2'],
    })
    await service.seen(/"event":"worker_ready"/)
    client = createClient(service.url, { keepAlive: false })
  })
  after(async () => {
    client.close()
    await service[Symbol.asyncDispose]()
    await rm(folder, { recursive: true })
  })

  /** An address that no other case has used; each request of it is a connection of its own, so that both workers are met. */
  const newAddress = () => {
    const address = `198.51.100.${++addresses}`
    const ask = (headers: Readonly<Record<string, string>>) =>
      client.send({ method: 'GET', path: '/guarded', headers: { ...headers, 'x-forwarded-for': address } })
    const guess = async (header = 'x-api-key') => {
      for (let n = 0; n < LIMIT; n++) {
        const value = header === 'authorization' ? `Bearer wrong-${n}` : `wrong-${n}`
        expect((await ask({ [header]: value })).status, `guess ${n}`).to.equal(401)
      }
    }
    const statuses = async (headers: Readonly<Record<string, string>>, times = 6) => {
      const all = await Promise.all(Array.from({ length: times }, () => ask(headers)))
      return [...new Set(all.map(item => item.status))]
    }
    return { ask, guess, statuses }
  }

  it('reveals nothing beyond the limit: a valid credential also gets 429 with Retry-After, on every worker', async () => {
    const { ask, guess, statuses } = newAddress()
    await guess()
    expect(await statuses({ 'x-api-key': KEY })).to.deep.equal([429])
    const { headers, body } = await ask({ 'x-api-key': KEY })
    expect(Number(headers['retry-after'])).to.be.within(1, 60)
    expect(body).to.include({ error_code: 'RATE_LIMITED' })
    expect(await statuses({ 'x-api-key': 'another' })).to.deep.equal([429])
    expect((await ask({})).status, 'nothing shown is no guess').to.equal(401)
  })

  it('is seen in each of the headers for keys and tokens, and in all of them together', async () => {
    for (const header of ['authorization', 'x-goog-api-key']) {
      const { guess, statuses } = newAddress()
      await guess(header)
      const each: Record<string, string>[] = [{ authorization: `Bearer ${KEY}` }, { 'x-api-key': KEY }, { 'x-goog-api-key': KEY }]
      for (const headers of each) expect(await statuses(headers)).to.deep.equal([429])
    }
  })

  it('does not block a credential that was valid from this address in another header', async () => {
    const { ask, guess, statuses } = newAddress()
    expect((await ask({ 'x-api-key': KEY })).status).to.equal(200)
    await guess('x-goog-api-key')
    await until(
      () => statuses({ authorization: `Bearer ${KEY}` }),
      all => all.length === 1 && all[0] === 200
    )
  })

  it('does not block a credential that was valid from this address on any worker', async () => {
    const { ask, guess, statuses } = newAddress()
    expect((await ask({ 'x-api-key': KEY })).status).to.equal(200)
    await guess()
    await until(
      () => statuses({ 'x-api-key': KEY }),
      all => all.length === 1 && all[0] === 200
    )
    expect(await statuses({ 'x-api-key': 'another' })).to.deep.equal([429])
  })

  it('is not made easier by what was seen at another address', async () => {
    const [first, other] = [newAddress(), newAddress()]
    expect(await first.statuses({ 'x-api-key': KEY })).to.deep.equal([200])
    await other.guess()
    expect(await other.statuses({ 'x-api-key': KEY })).to.deep.equal([429])
    expect(await first.statuses({ 'x-api-key': KEY })).to.deep.equal([200])
  })

  it('beside a good credential counts like any other', async () => {
    const { ask, statuses } = newAddress()
    expect(await statuses({ 'x-api-key': KEY })).to.deep.equal([200])
    for (let n = 0; n < LIMIT; n++)
      expect((await ask({ 'x-api-key': KEY, authorization: `Bearer wrong-${n}` })).status).to.equal(401)
    expect(await statuses({ 'x-api-key': KEY, authorization: 'Bearer another' })).to.deep.equal([429])
    expect(await statuses({ 'x-api-key': KEY })).to.deep.equal([200])
  })

  it('does not bring back a token that was revoked', async () => {
    const { ask, guess, statuses } = newAddress()
    const tokens = (...args: string[]) => runSvc(['tokens', ...args], { home: service.home, cwd: service.folder })
    const { out } = await tokens('create', '--name', 'guest')
    const headers = { authorization: `Bearer ${out.trim()}` }
    expect((await ask(headers)).status).to.equal(200)
    await guess()
    expect((await tokens('revoke', 'guest')).code).to.equal(0)
    for (const status of await statuses(headers)) expect(status).to.be.oneOf([401, 429])
  })

  it('leaves no credential in the store', async () => {
    const { statuses } = newAddress()
    expect(await statuses({ 'x-api-key': KEY })).to.deep.equal([200])
    for (const name of await readdir(service.home))
      if (name.startsWith('svc.db')) expect((await readFile(join(service.home, name))).includes(KEY), name).to.equal(false)
  })

  it('is possible again a minute later; what was good counts for ten minutes', async () => {
    const [regular, guest] = [newAddress(), newAddress()]
    expect(await regular.statuses({ 'x-api-key': KEY })).to.deep.equal([200])
    await guest.guess()
    await writeFile(join(folder, 'now'), `${MINUTE + 1_000}`)
    expect((await guest.ask({ 'x-api-key': KEY })).status).to.equal(200)
    await writeFile(join(folder, 'now'), `${9 * MINUTE}`)
    await regular.guess()
    expect(await regular.statuses({ 'x-api-key': KEY })).to.deep.equal([200])
    await writeFile(join(folder, 'now'), `${20 * MINUTE}`)
    // The clock of the store has not moved: its window is still full.
    expect((await regular.ask({ 'x-api-key': 'wrong' })).status).to.equal(429)
    expect(await regular.statuses({ 'x-api-key': KEY })).to.deep.equal([429])
  })
})
