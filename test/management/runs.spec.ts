import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { runSvc } from '../support/command.ts'
import { type Managed, type ManagedService, outcomeOf, startManaged } from '../support/management.ts'

const RUNS = '/api/v1/workflows'

const FLOWS = {
  steps: `name: steps
inputs: { type: object, properties: { who: { type: string }, fails: { type: boolean } } }
nodes:
  greet: { type: transform, value: "hello \${{ input.who }}", next: check }
  check: { type: condition, if: input.fails, branches: { true: broken, false: done } }
  broken: { type: transform, value: "\${{ input.none.such }}", next: done }
  done: { type: transform, value: "\${{ nodes.greet }}!" }
`,
  ask: `name: ask
nodes:
  may: { type: human, message: "May it?", next: done }
  done: { type: transform, value: done }
`,
}

interface Run {
  readonly workflow_id: string
  readonly status: string
  readonly result: { readonly value: unknown }
  readonly replay_of: string | null
  readonly replay_from: string | null
  readonly continued_by: string | null
}

describe('runs over HTTP', function () {
  this.timeout(120_000)
  let home: string
  let managed: ManagedService
  let [admin, runner, other, reader]: Managed[] = []

  before(async () => {
    home = await mkdtemp(join(tmpdir(), 'svc-home-'))
    await mkdir(join(home, 'workflows'))
    for (const [name, text] of Object.entries(FLOWS)) await writeFile(join(home, 'workflows', `${name}.yaml`), text)
    managed = await startManaged(home, { config: { workflows: { sync_wait_ms: 5_000 } }, workers: 2 })
    admin = await managed.as('admin', 'admin,read,workflows')
    runner = await managed.as('runner', 'workflows,read')
    other = await managed.as('other', 'workflows,read')
    reader = await managed.as('reader', 'read')
  })
  after(async () => {
    await managed?.[Symbol.asyncDispose]()
    await rm(home, { recursive: true, force: true })
  })

  const begin = async (workflow: string, input: object = {}, by = runner!, headers = {}) =>
    (await by.send('POST', `${RUNS}/run`, { workflow, input }, headers)).body as Run
  const statusOf = async (id: string, by = runner!) => (await by.get(`${RUNS}/${id}/status`)).body as Run
  const svc = (...args: string[]) => runSvc(['workflows', ...args], { home })

  describe('replayed', () => {
    it('from a node with another input, linked to the original at each worker', async () => {
      const first = await begin('steps', { who: 'ann', fails: false })
      const replay = await runner!.send('POST', `${RUNS}/${first.workflow_id}/replay`, {
        from: 'check',
        input: { who: 'bob', fails: false },
      })
      expect([replay.status, (replay.body as Run).result]).to.deep.equal([200, { value: 'hello ann!' }])
      const id = (replay.body as Run).workflow_id
      for (let at = 0; at < 10; at++)
        expect(await statusOf(id)).to.include({ replay_of: first.workflow_id, replay_from: 'check', status: 'completed' })
    })

    it('with the current definition, after a failure', async () => {
      const failed = await begin('steps', { who: 'ann', fails: true })
      expect(failed.status).to.equal('failed')
      await writeFile(join(home, 'workflows', 'steps.yaml'), FLOWS.steps.replace('${{ input.none.such }}', 'mended'))
      const replay = await runner!.send('POST', `${RUNS}/${failed.workflow_id}/replay`, { from: 'broken', definition: 'current' })
      expect((replay.body as Run).result).to.deep.equal({ value: 'hello ann!' })
      expect((await statusOf(failed.workflow_id)).continued_by).to.equal((replay.body as Run).workflow_id)
      await writeFile(join(home, 'workflows', 'steps.yaml'), FLOWS.steps)
    })

    it('on the command line, with its exit codes', async () => {
      const first = await begin('steps', { who: 'ann', fails: false }, admin)
      const good = await svc('replay', first.workflow_id, '--from', 'greet', '--input', '{"who":"eve","fails":false}', '--json')
      expect([good.code, (JSON.parse(good.out) as Run).result]).to.deep.equal([0, { value: 'hello eve!' }])
      const failing = await svc('replay', first.workflow_id, '--input', '{"fails":true}', '--json')
      expect([failing.code, (JSON.parse(failing.out) as Run).status]).to.deep.equal([1, 'failed'])
      const unknown = await svc('replay', first.workflow_id, '--from', 'nowhere')
      expect([unknown.code, unknown.out]).to.deep.equal([1, ''])
      expect(unknown.err).to.include('"nowhere" is not a node of the definition').and.include('Use one of: greet')
      expect((await svc('replay', first.workflow_id, '--input', '{')).code).to.equal(2)
    })

    it('not with bad input, of other principals, or while it runs', async () => {
      const { workflow_id: id } = await begin('steps', { who: 'ann', fails: false })
      const path = `${RUNS}/${id}/replay`
      const refused = async (body: unknown, by = runner!, at = path) => outcomeOf(await by.send('POST', at, body))
      for (const body of [
        { from: 1 },
        { from: '' },
        { from: 'x'.repeat(300) },
        { input: 'x' },
        { input: null },
        { definition: 'newest' },
        { parameters: [] },
        { more: 1 },
        [],
      ])
        expect((await refused(body)).status, JSON.stringify(body)).to.equal(400)
      expect(await refused({ from: 'nowhere' })).to.include({ status: 400, field: 'from' })
      expect(await refused({ from: 'broken' })).to.include({ status: 400, field: 'from' })
      expect(await refused({ input: { who: 1 } })).to.include({ status: 400 })
      expect(await refused({}, other)).to.include({ status: 404, reason: 'not found' })
      expect(await refused({}, reader)).to.include({ status: 403 })
      expect(await refused({}, runner, `${RUNS}/none/replay`)).to.include({ status: 404 })
      const open = await begin('ask', {}, runner, { prefer: 'respond-async' })
      expect(await refused({}, runner, `${RUNS}/${open.workflow_id}/replay`)).to.include({ status: 400, reason: 'has not ended' })
    })
  })

  describe('that failed for good', () => {
    const LETTERS = `${RUNS}/dead-letters`
    const idsOf = (body: unknown) => (body as { runs: Run[] }).runs.map(run => run.workflow_id)
    const listed = async (query = '', by = runner!) => idsOf((await by.get(`${LETTERS}?workflow=steps${query}`)).body)

    it('are listed, read with their failed steps, retried once and dropped, by their owner', async () => {
      const [one, two] = [await begin('steps', { who: 'ann', fails: true }), await begin('steps', { who: 'ann', fails: true })]
      const [first, second] = [one.workflow_id, two.workflow_id]
      for (let at = 0; at < 10; at++) expect((await listed()).slice(0, 2)).to.deep.equal([second, first])
      expect(await listed('&failure_code=EXPRESSION_FAILED&since=2020-01-01T00:00:00Z')).to.include.members([first, second])
      expect(await listed('&failure_code=NONE')).to.deep.equal([])
      expect(await listed('&until=2020-01-01T00:00:00Z')).to.deep.equal([])
      const page = (await runner!.get(`${LETTERS}?limit=1`)).body as { next_cursor: string }
      expect(idsOf((await runner!.get(`${LETTERS}?limit=1&cursor=${encodeURIComponent(page.next_cursor)}`)).body)).to.deep.equal([
        first,
      ])
      expect(await listed('', other)).to.deep.equal([])
      expect(await listed('', admin)).to.include.members([first, second])
      const { body } = await runner!.get(`${LETTERS}/${first}`)
      const { run, failed_steps: steps } = body as { run: Run; failed_steps: { step: string; error: { code: string } }[] }
      expect([run.workflow_id, steps.map(({ step, error }) => [step, error.code])]).to.deep.equal([
        first,
        [['broken', 'EXPRESSION_FAILED']],
      ])
      expect(outcomeOf(await other!.get(`${LETTERS}/${first}`))).to.include({ status: 404 })
      expect(outcomeOf(await other!.send('DELETE', `${LETTERS}/${first}`))).to.include({ status: 404 })
      expect(outcomeOf(await other!.send('POST', `${LETTERS}/${first}/retry`))).to.include({ status: 404 })
      expect(outcomeOf(await reader!.send('DELETE', `${LETTERS}/${first}`))).to.include({ status: 403 })
      const retry = (await runner!.send('POST', `${LETTERS}/${first}/retry`)).body as Run
      expect(retry.status).to.equal('failed')
      for (const again of [runner!.send('POST', `${LETTERS}/${first}/retry`), runner!.get(`${LETTERS}/${first}`)])
        expect(outcomeOf(await again)).to.include({ status: 400, reason: 'is not a dead letter' })
      expect((await runner!.send('DELETE', `${LETTERS}/${second}`)).body).to.deep.equal({ success: true })
      expect(outcomeOf(await runner!.send('DELETE', `${LETTERS}/${second}`))).to.include({ status: 404 })
      expect((await runner!.get(`${RUNS}/${second}/status`)).status).to.equal(404)
      expect(await listed())
        .to.include(retry.workflow_id)
        .and.not.include.members([first, second])
    })

    it('refuse bad queries', async () => {
      for (const query of [
        'limit=0',
        'limit=201',
        'limit=x',
        'since=yesterday',
        'since=2026-13-45T00:00:00Z',
        'cursor=none',
        'status=failed',
        'dead=1',
        'workflow=',
      ])
        expect((await runner!.get(`${LETTERS}?${query}`)).status, query).to.equal(400)
      for (const query of ['since=1', 'failure_code=', 'until=x'])
        expect((await runner!.get(`${RUNS}/runs?${query}`)).status, query).to.equal(400)
    })

    it('are on the command line', async () => {
      const { workflow_id: id } = await begin('steps', { who: 'ann', fails: true })
      const list = await svc('dead-letters', '--workflow', 'steps', '--code', 'EXPRESSION_FAILED', '--since', '1h', '--json')
      expect([list.code, idsOf(JSON.parse(list.out))[0]]).to.deep.equal([0, id])
      expect((await svc('dead-letters', '--until', '1d')).err).to.equal('no dead letters found\n')
      expect((await svc('dead-letters', '--since', 'once')).code).to.equal(2)
      const drop = await svc('drop', id, '--json')
      expect([drop.code, JSON.parse(drop.out)]).to.deep.equal([0, { workflow_id: id, dropped: true }])
      const again = await svc('drop', id)
      expect([again.code, again.err.split('\n')[0]]).to.deep.equal([1, 'RUN_UNKNOWN'])
    })
  })

  describe('changed in bulk', () => {
    const bulk = (body: unknown, by = runner!) => by.send('POST', `${RUNS}/runs/bulk`, body)

    it('are counted, cancelled and retried by filter', async () => {
      for (let at = 0; at < 3; at++) await begin('ask', {}, other, { prefer: 'respond-async' })
      const mine = { action: 'cancel', workflow: 'ask' }
      expect((await bulk({ ...mine, dry_run: true }, other)).body).to.deep.equal({ count: 3, job_id: null })
      expect((await bulk({ ...mine, owner: 'nobody-here' }, other)).body).to.deep.include({ count: 0, changed: 0 })
      expect((await bulk(mine, other)).body).to.deep.equal({ count: 3, job_id: null, changed: 3, pending: 0, failed: [] })
      expect((await bulk({ action: 'retry', failure_code: 'CANCELLED', workflow: 'ask' }, other)).body).to.deep.include({
        changed: 3,
      })
      expect((await bulk(mine, other)).body).to.deep.include({ count: 3, changed: 3 })
    })

    it('by the command line, which asks for --yes', async () => {
      await begin('steps', { who: 'ann', fails: true })
      const count = await svc('bulk', 'drop', '--workflow', 'steps', '--dry-run', '--json')
      expect(count.code).to.equal(0)
      const { count: found } = JSON.parse(count.out) as { count: number }
      expect(found).to.be.greaterThan(0)
      expect((await svc('bulk', 'drop', '--workflow', 'steps')).code).to.equal(2)
      expect((await svc('bulk', 'explode', '--workflow', 'steps', '--yes')).code).to.equal(2)
      expect((await svc('bulk', 'drop', '--yes')).code).to.equal(1)
      const drop = await svc('bulk', 'drop', '--workflow', 'steps', '--yes', '--json')
      expect([drop.code, JSON.parse(drop.out)]).to.deep.equal([
        0,
        { count: found, job_id: null, changed: found, pending: 0, failed: [] },
      ])
    })

    it('not with bad input', async () => {
      for (const body of [
        {},
        { action: 'cancel' },
        { action: 'explode', workflow: 'a' },
        { action: 'cancel', workflow: 1 },
        { action: 'cancel', status: 'failed' },
        { action: 'cancel', status: 'completed' },
        { action: 'retry', status: 'running' },
        { action: 'cancel', since: 'x' },
        { action: 'cancel', since: '2026-02-31T99:00:00Z' },
        { action: 'cancel', workflow: 'a', dry_run: 'yes' },
        { action: 'cancel', workflow: 'a', more: 1 },
      ])
        expect((await bulk(body)).status, JSON.stringify(body)).to.equal(400)
      expect((await bulk({ action: 'cancel', workflow: 'a' }, reader)).status).to.equal(403)
    })
  })
})
