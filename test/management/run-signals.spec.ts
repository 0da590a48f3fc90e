import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { runSvc } from '../support/command.ts'
import { type Managed, type ManagedService, startManaged } from '../support/management.ts'

const RUNS = '/api/v1/workflows'

const PAYS = (version: string) => `name: pays
version: "${version}"
inputs: { type: object, properties: { n: { type: integer } } }
signals: { paid: { type: object, required: [amount], properties: { amount: { type: number } } } }
queries: { offer: { description: What it costs, value: "\${{ nodes.offer.price }}" }, late: { value: "\${{ nodes.pay }}" } }
nodes:
  offer: { type: transform, value: { price: 12 }, next: pay }
  pay: { type: wait, event: paid, next: more }
  more: { type: condition, if: input.n > 0, branches: { true: again, false: end } }
  again: { type: continue_as_new, input: { n: "\${{ input.n - 1 }}" } }
`

interface Run {
  readonly workflow_id: string
  readonly status: string
  readonly definition: string
  readonly next_run: string | null
  readonly previous_run: string | null
  readonly first_run: string | null
  readonly waiting_for?: readonly unknown[]
}
interface Versions {
  readonly versions: readonly {
    readonly definition: string
    readonly version: string
    readonly is_current: boolean
    readonly open_runs: number
  }[]
}

describe('signals, queries, chains and versions of runs over HTTP', function () {
  this.timeout(120_000)
  let home: string
  let managed: ManagedService
  let [runner, other, reader]: Managed[] = []
  before(async () => {
    home = await mkdtemp(join(tmpdir(), 'svc-home-'))
    await mkdir(join(home, 'workflows'))
    await writeFile(join(home, 'workflows', 'pays.yaml'), PAYS('1'))
    managed = await startManaged(home, { config: { workflows: { sync_wait_ms: 100 } }, workers: 2 })
    runner = await managed.as('runner', 'workflows,read')
    other = await managed.as('other', 'workflows,read')
    reader = await managed.as('reader', 'read')
  })
  after(async () => {
    await managed?.[Symbol.asyncDispose]()
    await rm(home, { recursive: true, force: true })
  })
  const svc = (...args: string[]) => runSvc(['workflows', ...args], { home })
  const statusOf = async (id: string) => (await runner!.get(`${RUNS}/${id}/status`)).body as Run
  const begin = async (n: number) => {
    const { workflow_id: id } = (await runner!.send('POST', `${RUNS}/run`, { workflow: 'pays', input: { n } })).body as Run
    while (!(await statusOf(id)).waiting_for) await new Promise(resolve => setTimeout(resolve, 20))
    return id
  }

  it('checks events and reads queries at each worker and on the command line', async () => {
    const id = await begin(0)
    for (let at = 0; at < 10; at++)
      expect(((await runner!.get(`${RUNS}/${id}/queries/offer`)).body as { value: unknown }).value).to.equal(12)
    const listed = (await runner!.get(`${RUNS}/${id}/queries`)).body as { queries: unknown; signals: object }
    expect(listed.queries).to.deep.equal([
      { name: 'offer', description: 'What it costs' },
      { name: 'late', description: null },
    ])
    expect(Object.keys(listed.signals)).to.deep.equal(['paid'])
    for (const [body, field] of [
      [{ name: 'payed', data: { amount: 1 } }, 'name'],
      [{ name: 'paid', data: { amount: 'x' } }, 'data.amount'],
      [{ name: 'paid' }, 'data'],
    ] as const) {
      const refused = await runner!.send('POST', `${RUNS}/${id}/events`, body)
      expect([refused.status, (refused.body as { details: { field: string } }).details.field], refused.text).to.deep.equal([
        400,
        field,
      ])
    }
    for (const path of ['queries/none', 'queries/late', 'queries/%5F%5Fproto%5F%5F'])
      expect((await runner!.get(`${RUNS}/${id}/${path}`)).status, path).to.equal(400)
    for (const path of [`${id}/queries`, `${id}/queries/offer`, 'none/queries']) {
      expect((await other!.get(`${RUNS}/${path}`)).status, path).to.equal(404)
      expect((await reader!.get(`${RUNS}/${path}`)).status, path).to.equal(403)
    }
    const asked = await svc('query', id, 'offer', '--json')
    expect([asked.code, JSON.parse(asked.out)]).to.deep.equal([0, { workflow_id: id, name: 'offer', value: 12 }])
    expect((await svc('query', id)).out).to.match(/offer .*query .*What it costs[^]*paid .*event/)
    expect((await svc('query', id, 'none')).code).to.not.equal(0)
    expect((await svc('signal', id, 'paid', '--data', '{')).code).to.equal(2)
    expect((await svc('signal', id, 'paid', '--data', '{"amount": "x"}')).code).to.equal(1)
    const sent = await svc('signal', id, 'paid', '--data', '{"amount": 3}', '--json')
    expect([sent.code, sent.out.trim()]).to.deep.equal([0, '{"success":true}'])
    while ((await statusOf(id)).status === 'running') await new Promise(resolve => setTimeout(resolve, 20))
    expect((await statusOf(id)).status).to.equal('completed')
  })

  it('are refused with a hint while a paused run takes none, and accepted when it goes on', async () => {
    const id = await begin(0)
    expect((await runner!.send('POST', `${RUNS}/${id}/pause`)).status).to.equal(200)
    const send = () =>
      runner!.send('POST', `${RUNS}/${id}/events`, { name: 'paid', data: { amount: 1, note: 'x'.repeat(1_000_000) } })
    const statuses: number[] = []
    let last = await send()
    for (; last.status === 200 && statuses.length < 20; last = await send()) statuses.push(last.status)
    expect(statuses).to.have.length(9)
    const { error_code: code, details } = last.body as { error_code: string; details: Record<string, string> }
    expect([last.status, code, details.field, details.reason]).to.deep.equal([
      400,
      'INVALID_VALUE',
      'name',
      'the inbox of the run is full',
    ])
    expect(details.hint).to.match(/^Resume the run/)
    const told = await svc('signal', id, 'paid', '--data', '{"amount": 3}')
    expect([told.code, told.err]).to.satisfy(([exit, err]: [number, string]) => exit === 1 && /Resume the run/.test(err))
    expect((await runner!.send('POST', `${RUNS}/${id}/resume`)).status).to.equal(200)
    while ((await statusOf(id)).status === 'running') await new Promise(resolve => setTimeout(resolve, 20))
    expect((await statusOf(id)).status).to.equal('completed')
  })

  it('follows a chain, and lists versions with their open runs', async () => {
    const first = await begin(1)
    await writeFile(join(home, 'workflows', 'pays.yaml'), PAYS('2'))
    const listed = async (by = runner!) => ((await by.get(`${RUNS}/versions?workflow=pays`)).body as Versions).versions
    const [two, one] = await listed()
    expect([two, one].map(item => [item!.version, item!.is_current, item!.open_runs])).to.deep.equal([
      ['2', true, 0],
      ['1', false, 1],
    ])
    expect((await statusOf(first)).definition).to.equal(one!.definition)
    expect((await listed(other)).map(({ version }) => version)).to.deep.equal(['2'])
    expect((await reader!.get(`${RUNS}/versions?workflow=pays`)).status).to.equal(403)
    expect((await runner!.get(`${RUNS}/versions?workflow=none`)).status).to.equal(404)
    expect((await runner!.get(`${RUNS}/versions`)).status).to.equal(400)

    await runner!.send('POST', `${RUNS}/${first}/events`, { name: 'paid', data: { amount: 1 } })
    while ((await statusOf(first)).next_run === null) await new Promise(resolve => setTimeout(resolve, 20))
    const next = await statusOf((await statusOf(first)).next_run!)
    expect([next.previous_run, next.first_run, next.definition]).to.deep.equal([first, first, two!.definition])
    // to the first run, which has ended
    const handed = await runner!.send('POST', `${RUNS}/${first}/events`, { name: 'paid', data: { amount: 2 } })
    expect(handed.status, handed.text).to.equal(200)
    while ((await statusOf(next.workflow_id)).status === 'running') await new Promise(resolve => setTimeout(resolve, 20))
    expect((await statusOf(next.workflow_id)).status).to.equal('completed')
    const shown = await svc('versions', 'pays', '--json')
    expect(shown.code, shown.err).to.equal(0)
    expect((JSON.parse(shown.out) as Versions).versions.map(({ version, open_runs: open }) => [version, open])).to.deep.equal([
      ['2', 0],
      ['1', 0],
    ])
    expect((await svc('versions', 'none')).code).to.equal(1)
    expect((await svc('versions', 'pays')).out).to.match(/current/)
  })
})
