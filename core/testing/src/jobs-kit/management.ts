import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { codeOf, type Principal } from '@svc/core'
import type { JobRequest } from '@svc/core/contracts'
import { errorCodeOf, type KitCase, outcome } from '../kit-case.ts'
import { as, ctx, doing, done, kind, type Opened, result } from './rig.ts'

const listing = (opened: Opened): KitCase[] => [
  opened('lists jobs by kind and state, newest first, page by page', async ({ jobs, other, addKind }) => {
    addKind(
      'a',
      doing(async () => {})
    )
    addKind(
      'b',
      doing(async () => {})
    )
    const due = Date.now() + 3_600_000
    const ids: string[] = []
    for (const name of ['a', 'b', 'a', 'b', 'a']) {
      await sleep(2)
      ids.push((await jobs.add({ kind: name, due }, ctx)).id)
    }
    const listed = async (query: object) => (await other.list({ limit: 10, ...query }, ctx)).jobs.map(({ id }) => id)
    assert.deepEqual(await listed({}), ids.toReversed())
    assert.deepEqual(await listed({ kind: 'a' }), [ids[4], ids[2], ids[0]])
    assert.deepEqual(await listed({ kind: 'b', state: 'queued' }), [ids[3], ids[1]])
    assert.deepEqual(await listed({ state: 'failed' }), [])
    const first = await jobs.list({ limit: 2 }, ctx)
    const rest = await jobs.list({ limit: 10, cursor: first.next! }, ctx)
    assert.deepEqual(
      [...first.jobs, ...rest.jobs].map(({ id }) => id),
      ids.toReversed()
    )
    assert.equal(await errorCodeOf(jobs.list({ limit: 10, cursor: 'nonsense' }, ctx)), 'INVALID_VALUE')
    assert.equal(await errorCodeOf(jobs.list({ limit: 0 }, ctx)), 'INVALID_VALUE')
    assert.equal(await errorCodeOf(jobs.list({ limit: 1, state: 'odd' as never }, ctx)), 'INVALID_VALUE')
  }),
]

const permissions = (opened: Opened): KitCase[] => [
  opened('lets only its plugin, admins and callers with its scope add jobs of a kind', async ({ jobs, addKind, plugin }) => {
    addKind(
      'guarded',
      doing(async () => {})
    )
    addKind(
      'open',
      doing(async () => {}, { scope: 'chat' })
    )
    const due = Date.now() + 3_600_000
    const add = (name: string, caller: typeof ctx) => errorCodeOf(jobs.add({ kind: name, due }, caller))
    assert.equal(await add('guarded', as('anna', 'chat')), 'FORBIDDEN')
    assert.equal(await add('guarded', as('plugin:@other/plugin')), 'FORBIDDEN')
    assert.equal(await add('guarded', as(`plugin:${plugin}`)), undefined)
    assert.equal(await add('guarded', as('root', 'admin')), undefined)
    assert.equal(await add('open', as('anna', 'chat')), undefined)
    assert.equal(await add('open', as('anna', 'read')), 'FORBIDDEN')
  }),
  opened('executes a job as the principal that added it', async ({ jobs, addKind }) => {
    const seen: Principal[] = []
    addKind('whoami', {
      description: 'A job of the kit',
      scope: 'chat',
      async *run(_, { principal }) {
        seen.push(principal)
        yield result(null)
      },
    })
    const { id } = await jobs.add({ kind: 'whoami' }, as('anna', 'chat', 'read'))
    await jobs.settled(id, 5_000, ctx)
    assert.deepEqual(seen, [{ id: 'anna', scopes: ['chat', 'read'] }])
  }),
  opened('hides the jobs of a principal from others', async ({ jobs, addKind }) => {
    addKind(
      'own',
      doing(async () => {}, { scope: 'chat' })
    )
    const [anna, ben, admin] = [as('anna', 'chat'), as('ben', 'chat'), as('root', 'admin')]
    const { id } = await jobs.add({ kind: 'own', due: Date.now() + 3_600_000 }, anna)
    for (const method of ['get', 'cancel', 'retry'] as const)
      assert.equal(await errorCodeOf(jobs[method](id, ben)), 'JOB_UNKNOWN')
    assert.equal(await errorCodeOf(jobs.log(id, 1, ben)), 'JOB_UNKNOWN')
    assert.deepEqual((await jobs.list({ limit: 10 }, ben)).jobs, [])
    for (const caller of [anna, admin]) assert.equal((await jobs.list({ limit: 10 }, caller)).jobs[0]?.id, id)
  }),
]

const kinds = (opened: Opened): KitCase[] => [
  opened('adds jobs of an internal kind only for a request with its value', async ({ jobs, addKind, plugin }) => {
    addKind(
      'inner',
      doing(async () => {}, { internal: 'only-its-plugin', scope: 'chat' })
    )
    const due = Date.now() + 3_600_000
    const add = (internal: string | undefined, caller: typeof ctx) =>
      errorCodeOf(jobs.add({ kind: 'inner', due, ...(internal === undefined ? {} : { internal }) }, caller))
    for (const caller of [as('root', 'admin'), as('system', '*'), as('anna', 'chat'), as(`plugin:${plugin}`)])
      for (const value of [undefined, '', 'a guess']) assert.equal(await add(value, caller), 'FORBIDDEN')
    assert.equal(await add('only-its-plugin', as('anna', 'chat')), undefined)
  }),
  opened('lists the kinds, and which of them the caller can start', async ({ jobs, addKind, plugin }) => {
    const input = { type: 'object', properties: { n: { type: 'integer' } } }
    addKind(
      'b.admins',
      doing(async () => {}, { concurrency: 2, input })
    )
    addKind(
      'a.open',
      doing(async () => {}, { scope: 'chat', timeoutMs: 1_000, attempts: 7 })
    )
    addKind(
      'c.inner',
      doing(async () => {}, { internal: 'only-its-plugin', scope: 'chat' })
    )
    const kinds = await jobs.kinds(as('anna', 'chat'))
    const shown = kinds.filter(({ name }) => /^[abc]\./.test(name))
    assert.deepEqual(
      shown.map(({ name, canStart, isInternal }) => [name, canStart, isInternal]),
      [
        ['a.open', true, false],
        ['b.admins', false, false],
        ['c.inner', false, true],
      ]
    )
    const [open, admins] = shown
    assert.deepEqual([open!.plugin, open!.scope, open!.timeoutMs, open!.attempts], [plugin, 'chat', 1_000, 7])
    assert.deepEqual([admins!.concurrency, admins!.input, open!.concurrency, open!.input], [2, input, undefined, undefined])
    assert.ok(!JSON.stringify(kinds).includes('only-its-plugin'))
    const forAdmin = await jobs.kinds(as('root', 'admin'))
    assert.deepEqual(
      forAdmin.filter(({ canStart }) => !canStart).map(({ name }) => name),
      ['c.inner']
    )
  }),
]

const checking = (opened: Opened): KitCase[] => [
  opened('checks the kind and the input of a job before it adds it', async ({ jobs, addKind }) => {
    const input = { type: 'object', required: ['n'], properties: { n: { type: 'integer' }, d: { type: 'string', default: 'x' } } }
    addKind(
      'typed',
      kind(
        async function* (task) {
          yield result(task.input)
        },
        { input }
      )
    )
    const failed = async (request: JobRequest) => (await outcome(jobs.add(request, ctx))).error as Error & { details: object }
    const unknown = (await failed({ kind: 'typde' })) as Error & { details: object; hint?: string }
    assert.equal(codeOf(unknown), 'JOB_KIND_UNKNOWN')
    assert.match(String(unknown.hint), /typed/)
    assert.ok((unknown.details as { known?: string[] }).known?.includes('typed'))
    const problem = await failed({ kind: 'typed', input: { n: 'one' } })
    assert.equal(codeOf(problem), 'INVALID_VALUE')
    assert.equal((problem.details as { field?: string }).field, 'input.n')
    for (const odd of [{ due: -1 }, { group: '' }, { key: 'x'.repeat(201) }])
      assert.equal(codeOf(await failed({ kind: 'typed', input: { n: 1 }, ...odd })), 'INVALID_VALUE')
    assert.deepEqual((await done(jobs, { kind: 'typed', input: { n: 1 } })).result, { n: 1, d: 'x' })
  }),
]

export const managementCases = [listing, permissions, kinds, checking] as const
