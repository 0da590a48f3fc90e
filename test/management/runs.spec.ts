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
  large: `name: large
inputs: { type: object, properties: { text: { type: string } } }
nodes:
  all: { type: transform, value: { text: "\${{ input.text }}" }, next: short }
  short: { type: transform, value: short }
result: { all: "\${{ nodes.all.text }}" }
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
  readonly paused_at: string | null
}

describe('runs over HTTP', function () {
  this.timeout(120_000)
  let home: string
  let managed: ManagedService
  let token: string
  let [admin, runner, other, reader]: Managed[] = []

  before(async () => {
    home = await mkdtemp(join(tmpdir(), 'svc-home-'))
    await mkdir(join(home, 'workflows'))
    for (const [name, text] of Object.entries(FLOWS)) await writeFile(join(home, 'workflows', `${name}.yaml`), text)
    managed = await startManaged(home, { config: { workflows: { sync_wait_ms: 5_000 } }, workers: 2 })
    admin = await managed.as('admin', 'admin,read,workflows')
    runner = await managed.as('runner', 'workflows,read')
    token = (await runSvc(['tokens', 'create', '--name', 'ranges', '--scope', 'admin,workflows'], { home })).out.trim()
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
      await writeFile(join(home, 'workflows', 'steps.yaml'), FLOWS.steps.replace('${{ input.none.such }}', 'fixed'))
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
      expect((await bulk({ ...mine, owner: 'unknown' }, other)).body).to.deep.include({ count: 0, changed: 0 })
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
      const all = await svc('bulk', 'drop', '--yes')
      expect([all.code, all.err]).to.satisfy(([code, err]: [number, string]) => code === 2 && /at least one condition/.test(err))
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

  describe('paused', () => {
    it('keep their question and their answer, go on when resumed, and are the same at each worker', async () => {
      const { workflow_id: id } = await begin('ask', {}, runner, { prefer: 'respond-async' })
      const paused = await runner!.send('POST', `${RUNS}/${id}/pause`)
      expect([paused.status, typeof (paused.body as Run).paused_at]).to.deep.equal([200, 'string'])
      for (let at = 0; at < 10; at++)
        expect(await statusOf(id)).to.include({ status: 'running', paused_at: (paused.body as Run).paused_at })
      const listed = (await runner!.get(`${RUNS}/runs?paused=true`)).body as { runs: Run[] }
      expect(listed.runs.map(run => run.workflow_id)).to.deep.equal([id])
      expect((await runner!.send('POST', `${RUNS}/${id}/answer`, { step: 'may', value: true })).status).to.equal(200)
      expect(await statusOf(id)).to.include({ status: 'running' })
      expect((await runner!.send('POST', `${RUNS}/${id}/resume`)).status).to.equal(200)
      for (let status = 'running'; status === 'running'; { status } = await statusOf(id));
      expect((await statusOf(id)).result).to.deep.equal({ value: 'done' })
      expect(outcomeOf(await runner!.send('POST', `${RUNS}/${id}/pause`))).to.include({
        status: 400,
        reason: 'has ended: completed',
      })
    })

    it('are refused to others, and where there is nothing to do', async () => {
      const { workflow_id: id } = await begin('ask', {}, runner, { prefer: 'respond-async' })
      for (const what of ['pause', 'resume']) {
        expect(outcomeOf(await other!.send('POST', `${RUNS}/${id}/${what}`))).to.include({ status: 404, reason: 'not found' })
        expect(outcomeOf(await reader!.send('POST', `${RUNS}/${id}/${what}`))).to.include({ status: 403 })
        expect(outcomeOf(await runner!.send('POST', `${RUNS}/none/${what}`))).to.include({ status: 404 })
        // a workflow belongs to all
        expect(outcomeOf(await runner!.send('POST', `${RUNS}/${what}`, { workflow: 'ask' }))).to.include({ status: 403 })
        for (const body of [{}, { workflow: 1 }, { workflow: '' }, { workflow: 'ask', more: 1 }])
          expect((await admin!.send('POST', `${RUNS}/${what}`, body)).status, JSON.stringify(body)).to.equal(400)
        expect((await admin!.send('POST', `${RUNS}/${what}`, { workflow: 'none' })).status).to.equal(404)
      }
      expect(outcomeOf(await runner!.send('POST', `${RUNS}/${id}/resume`))).to.include({ status: 400, reason: 'is not paused' })
      expect((await runner!.get(`${RUNS}/runs?paused=maybe`)).status).to.equal(400)
    })

    it('with their workflow: new runs wait over a reload, and begin when it is resumed', async () => {
      expect((await admin!.send('POST', `${RUNS}/pause`, { workflow: 'steps' })).body).to.deep.equal({ success: true })
      const began = Date.now()
      const waiting = (await runner!.send('POST', `${RUNS}/run`, { workflow: 'steps', input: { who: 'ann', fails: false } })).body
      const { workflow_id: id, message } = waiting as Run & { message: string }
      expect([message, Date.now() - began < 4_000]).to.deep.equal(['The workflow is paused.', true])
      const listed = (await runner!.get(RUNS)).body as { workflows: { name: string; paused_at: string | null }[] }
      expect(listed.workflows.filter(item => item.paused_at !== null).map(item => item.name)).to.deep.equal(['steps'])
      expect((await runSvc(['reload'], { home })).code).to.equal(0)
      expect(await statusOf(id)).to.include({ status: 'running' })
      expect(outcomeOf(await runner!.send('POST', `${RUNS}/${id}/resume`))).to.include({
        reason: 'waits because its workflow is paused',
      })
      expect((await admin!.send('POST', `${RUNS}/resume`, { workflow: 'steps' })).body).to.deep.equal({
        success: true,
        released: 1,
      })
      for (let status = 'running'; status === 'running'; { status } = await statusOf(id));
      expect((await statusOf(id)).result).to.deep.equal({ value: 'hello ann!' })
    })

    it('on the command line, with its exit codes', async () => {
      const { workflow_id: id } = await begin('ask', {}, admin, { prefer: 'respond-async' })
      const pause = await svc('pause', id, '--json')
      expect([pause.code, typeof (JSON.parse(pause.out) as Run).paused_at]).to.deep.equal([0, 'string'])
      expect((await svc('status', id)).out).to.match(/ {2}ask {2}paused /)
      expect((await svc('runs', '--paused')).out).to.match(new RegExp(`${id} +ask +paused`))
      const resume = await svc('resume', id)
      expect([resume.code, resume.out]).to.deep.equal([0, `${id} is resumed\n`])
      expect((await svc('resume', id)).code).to.equal(1)
      expect((await svc('pause')).code).to.equal(2)
      expect((await svc('pause', id, '--workflow', 'ask')).code).to.equal(2)
      expect((await svc('pause', '--workflow', 'ask', '--json')).out).to.equal('{"workflow":"ask","paused":true}\n')
      expect((await svc('resume', '--workflow', 'ask', '--json')).out).to.equal(
        '{"workflow":"ask","paused":false,"released":0}\n'
      )
    })
  })

  describe('with many steps', () => {
    const steps = async (id: string, query = '', by = runner!) =>
      (await by.get(`${RUNS}/${id}/steps${query}`)).body as {
        steps: { step: string; input: unknown; output: unknown; error: { code: string } | null }[]
        next_cursor: string | null
        last_event: number
      }

    it('list them page by page, briefly, and one by one, with the event from which their events go on', async () => {
      const { workflow_id: id } = await begin('steps', { who: 'ann', fails: true })
      const all = await steps(id)
      expect(all.next_cursor).to.equal(null)
      const names = all.steps.map(({ step }) => step)
      expect(names.length).to.be.above(2)
      const first = await steps(id, '?limit=2&detail=brief')
      const rest = await steps(id, `?limit=200&detail=brief&cursor=${first.next_cursor}`)
      expect([...first.steps, ...rest.steps].map(({ step }) => step)).to.deep.equal(names)
      expect(rest.next_cursor).to.equal(null)
      expect([...first.steps, ...rest.steps].every(({ input, output }) => input === null && output === null)).to.equal(true)
      const one = await steps(id, '?step=greet')
      expect(one.steps.map(({ step, output }) => [step, output])).to.deep.equal([['greet', 'hello ann']])
      // nothing happened after it: the stream ends at once, without an event
      const events = await runner!.get(`${RUNS}/${id}/events?after=${all.last_event}`)
      expect(events.text).not.to.include('event: node_')
      for (const query of ['?limit=0', '?limit=10001', '?detail=short', '?cursor=x', '?cursor=-1', '?page=2'])
        expect(outcomeOf(await runner!.get(`${RUNS}/${id}/steps${query}`)).status, query).to.equal(400)
      expect(outcomeOf(await other!.get(`${RUNS}/${id}/steps`)).status).to.equal(404)
    })
  })

  describe('with a large result', () => {
    const text = 'grüße '.repeat(20_000)
    const whole = Buffer.from(JSON.stringify({ all: text }))

    it('refer to it as a file, which is read in ranges by its owner', async () => {
      const run = (await begin('large', { text })) as Run & { result_file: { url: string; size: number } }
      expect([run.status, run.result, run.result_file]).to.deep.equal([
        'completed',
        undefined,
        { url: `${RUNS}/${run.workflow_id}/result`, size: whole.length },
      ])
      const { url } = run.result_file
      expect(await statusOf(run.workflow_id)).to.deep.include({ result: null, result_file: run.result_file })
      const { steps } = (await runner!.get(`${RUNS}/${run.workflow_id}/steps`)).body as {
        steps: { step: string; output: unknown; output_file: { url: string } | null }[]
      }
      expect(steps.map(({ step, output, output_file: file }) => [step, output, file?.url])).to.deep.equal([
        ['all', null, `${url}?step=all`],
        ['short', 'short', undefined],
      ])
      expect((await runner!.get(steps[0]!.output_file!.url)).body).to.deep.equal({ text })
      const range = async (value: string, more = {}) => {
        const headers = { authorization: `Bearer ${token}`, range: value, ...more }
        const answer = await fetch(managed.service.url + url, { headers })
        const got = Buffer.from(await answer.arrayBuffer())
        return { status: answer.status, headers: Object.fromEntries(answer.headers), bytes: got }
      }
      const all = await runner!.get(url)
      expect([all.status, all.headers['accept-ranges'], all.body]).to.deep.equal([200, 'bytes', { all: text }])
      // parts that are cut within a letter give the whole together, at whichever worker
      const parts: Buffer[] = []
      for (let from = 0; from < whole.length; from += 40_001) {
        const part = await range(`bytes=${from}-${from + 40_000}`)
        const last = Math.min(whole.length, from + 40_001) - 1
        expect([part.status, part.headers['content-range']]).to.deep.equal([206, `bytes ${from}-${last}/${whole.length}`])
        parts.push(part.bytes)
      }
      expect(Buffer.concat(parts).equals(whole)).to.equal(true)
      expect((await range('bytes=-10')).bytes.equals(whole.subarray(-10))).to.equal(true)
      expect((await range('bytes=-999999999')).bytes.length).to.equal(whole.length)
      const etag = String(all.headers.etag)
      expect((await range('bytes=0-1', { 'if-range': etag })).status).to.equal(206)
      expect((await range('bytes=0-1', { 'if-range': '"other"' })).status).to.equal(200)
      for (const ignored of [
        'bytes=5-2',
        'bytes=0-1,4-5',
        'lines=0-1',
        'bytes=-',
        'bytes=x-',
        'bytes',
        `bytes=0-${'9'.repeat(30)}`,
      ])
        expect((await range(ignored)).status, ignored).to.equal(200)
      for (const outside of [`bytes=${whole.length}-`, 'bytes=-0', 'bytes=999999999-'])
        expect(await range(outside).then(({ status, headers }) => [status, headers['content-range']])).to.deep.equal([
          416,
          `bytes */${whole.length}`,
        ])
      expect(outcomeOf(await other!.get(url))).to.include({ status: 404, reason: 'not found' })
      expect(outcomeOf(await reader!.get(url))).to.include({ status: 403 })
      expect((await admin!.get(url)).status).to.equal(200)
    })

    it('send no result that there is not, and keep a small one in the record', async () => {
      const small = (await begin('large', { text: 'x' })) as Run & { result_file?: unknown }
      expect([small.result, small.result_file]).to.deep.equal([{ all: 'x' }, undefined])
      expect((await runner!.get(`${RUNS}/${small.workflow_id}/result`)).body).to.deep.equal({ all: 'x' })
      const open = await begin('ask', {}, runner, { prefer: 'respond-async' })
      expect(outcomeOf(await runner!.get(`${RUNS}/${open.workflow_id}/result`))).to.include({ status: 400, field: 'workflow_id' })
      expect(outcomeOf(await runner!.get(`${RUNS}/${small.workflow_id}/result?step=none`))).to.include({
        status: 404,
        field: 'step',
      })
      expect((await runner!.get(`${RUNS}/${small.workflow_id}/result?step=`)).status).to.equal(400)
      expect((await runner!.get(`${RUNS}/${small.workflow_id}/result?more=1`)).status).to.equal(400)
    })
  })
})
