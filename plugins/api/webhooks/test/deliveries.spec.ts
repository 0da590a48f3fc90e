import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { typeFilter } from '@svc/api-types'
import { asSvcError, codeOf, Events, systemContext } from '@svc/core'
import { type Job, Jobs, type JobRequest, type Route, Routes, Secrets } from '@svc/core/contracts'
import { service, testHost } from '@svc/testing'
import { expect } from 'chai'
import { Webhook } from 'standardwebhooks'
import { meantType } from '../src/event-types.ts'
import { headersFor } from '../src/deliveries.ts'

const ctx = systemContext(new AbortController().signal, 'test')
const unused = () => Promise.reject(new Error('unused'))

/** The plugin with jobs that are only collected, and secrets in memory. It collects events only in a server, which is not here. */
async function openPlugin() {
  const added: JobRequest[] = []
  const values = new Map<string, string>()
  const jobs: Jobs = {
    add: async request => void added.push(request) as unknown as Job,
    prepare: unused,
    kinds: unused,
    wake: unused,
    get: unused,
    list: unused,
    log: unused,
    settled: unused,
    cancel: unused,
    retry: unused,
  }
  const secrets: Secrets = {
    async read(name) {
      const value = values.get(name)
      if (value === undefined)
        throw Object.assign(new Error('unknown'), { name: 'SvcError', code: 'SECRET_UNKNOWN', details: {} })
      return { value, version: '1' }
    },
    async *changes() {},
    list: async () => [],
    async set(name, value) {
      values.set(name, value)
      return { name, source: 'sealed', state: 'ready' }
    },
    remove: unused,
    reseal: unused,
  }
  const plugins = [new URL('..', import.meta.url).href, new URL('../../../storage/memory', import.meta.url).href]
  const host = await testHost(plugins, { strict: false, give: [service(Jobs, jobs), service(Secrets, secrets)] })
  const routes = host.slot(Routes)
  const ask = (name: string, request: Partial<Parameters<NonNullable<Route['handle']>>[0]>) =>
    routes.get(name)!.handle!({ params: {}, query: {}, headers: {}, body: undefined, ...request }, ctx)
  return { host, ask, added, [Symbol.asyncDispose]: () => host.close() }
}

describe('the headers of a delivery', () => {
  it('are signed for receivers that follow Standard Webhooks, with each secret', () => {
    const [one, two] = [1, 2].map(() => `whsec_${randomBytes(32).toString('base64')}`)
    const headers = headersFor('evt-1', '{"a":1}', [one!, two!])
    for (const secret of [one!, two!]) expect(new Webhook(secret).verify('{"a":1}', headers)).to.deep.equal({ a: 1 })
    const other = new Webhook(`whsec_${randomBytes(32).toString('base64')}`)
    expect(() => other.verify('{"a":1}', headers)).to.throw()
  })
})

describe('a filter by type', () => {
  it('selects names and beginnings, with or without svc.', () => {
    const cases: readonly (readonly [string[], string, boolean])[] = [
      [[], 'turn_failed', true],
      [['*'], 'turn_failed', true],
      [['turn_*'], 'turn_failed', true],
      [['svc.turn_*'], 'turn_failed', true],
      [['turn_'], 'turn_failed', false],
      [['run_*', 'turn_failed'], 'turn_failed', true],
      [['run_*'], 'turn_failed', false],
      [['svc.*'], 'turn_failed', true],
    ]
    for (const [list, type, isIn] of cases) expect(typeFilter(list)(type), list.join()).to.equal(isIn)
  })

  it('takes all types of the documents, and those of plugins', async () => {
    const text = await readFile(new URL('../../../../docs/reference/events.md', import.meta.url), 'utf8')
    const named = [...text.matchAll(/`([a-z]+(?:_[a-z]+)+|reloaded)`/g)].map(([, type]) => type!)
    expect(named).to.include.members(['turn_completed', 'mcp_server_connected', 'config_file_changed'])
    for (const type of [...named, 'invoice_paid', 'run_failed', 'turn_*']) expect(meantType(type), type).to.equal(undefined)
  })

  it('refuses a typing error, and names the type that is meant', async () => {
    await using plugin = await openPlugin()
    const add = (type: string) => plugin.ask('webhook_add', { body: { url: 'https://hooks.example/', types: ['run_*', type] } })
    for (const type of ['turn_complete', 'svc.turn_complete', 'trun_completed'])
      expect(await add(type).catch((error: unknown) => asSvcError(error, 'INTERNAL_ERROR').message)).to.equal(
        `no event has the type "${type}": did you mean "turn_completed"?`
      )
    const { body } = await add('turn_completed')
    const { webhook } = body as { webhook: { id: string } }
    const change = plugin.ask('webhook_change', { params: { id: webhook.id }, body: { types: ['job_complete'] } })
    expect(await change.catch((error: unknown) => codeOf(error))).to.equal('INVALID_VALUE')
  })
})

describe('the secret of a webhook', () => {
  it('changes with a rotation, and both sign for a day; changes are events without the path of the URL', async () => {
    await using plugin = await openPlugin()
    const ending = new AbortController()
    const changes: string[] = []
    const reading = (async () => {
      for await (const event of plugin.host
        .service(Events)
        .subscribe({ categories: ['AUDIT'] }, { ...ctx, signal: ending.signal }))
        changes.push(JSON.stringify([event.type, event.data]))
    })()
    const url = 'https://hooks.example/services/a-path-that-is-a-credential'
    const added = await plugin.ask('webhook_add', { body: { url, types: ['run_*'] } })
    const { webhook, secret } = added.body as { webhook: { id: string }; secret: string }
    expect(added.status).to.equal(201)
    const rotated = await plugin.ask('webhook_change', { params: { id: webhook.id }, body: { rotate_secret: true } })
    const next = (rotated.body as { secret: string }).secret
    expect(next)
      .to.match(/^whsec_/)
      .and.not.equal(secret)
    await plugin.ask('webhook_remove', { params: { id: webhook.id } })
    const gone = await plugin.ask('webhook', { params: { id: webhook.id } }).catch((error: unknown) => codeOf(error))
    expect(gone).to.equal('INVALID_VALUE')
    ending.abort()
    await reading
    expect(changes.map(change => (JSON.parse(change) as string[])[0])).to.deep.equal([
      'webhook_added',
      'webhook_changed',
      'webhook_removed',
    ])
    expect(changes.join()).to.not.include('a-path-that').and.not.include('whsec_')
  })
})
