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
})
