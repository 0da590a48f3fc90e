import { type AuthScheme, AuthSchemes, type Json, Routes } from '@svc/core/contracts'
import { item } from '@svc/testing'
import { expect } from 'chai'
import { PATH, serveRuns, until } from './support/runs.ts'

/** Whoever says a name is that. */
const byName: AuthScheme = {
  headers: ['x-name'],
  challenge: 'Name',
  authenticate: async ({ headers }) => (headers['x-name'] ? { id: headers['x-name'], scopes: ['workflows'] } : undefined),
}
const [ADA, BOB] = [{ 'x-name': 'ada' }, { 'x-name': 'bob' }]
const serveNamed = () => serveRuns({ server: { port: 0, auth: { enabled: true } } }, [item(AuthSchemes, 'name', byName)])

/** What each route of a run that takes a body takes. */
const BODIES: Readonly<Record<string, Json>> = { events: { name: 'paid', data: 1 }, answer: { step: 'ask', value: true } }
/** Both in letters that stand in no other place of an answer. */
const UNKNOWN = 'run_0'

describe("another principal's run", () => {
  it('gets the same answer as an unknown run, in every route, whether it is running or has ended', async () => {
    await using served = await serveNamed()
    const begin = async (workflow: string) => {
      const { body } = await served.call(
        'POST',
        `${PATH}/run`,
        { workflow },
        { ...ADA, prefer: 'wait=0', 'idempotency-key': 'k' + workflow }
      )
      return body.workflow_id as string
    }
    const runs = [await begin('ask'), await begin('fail')]
    while ((await served.call('GET', `${PATH}/${runs[1]}/status`, undefined, ADA)).body.status === 'running');
    const routes = served.host
      .slot(Routes)
      .entries()
      .map(([, route]) => route)
    const named = routes.filter(({ path }) => path.startsWith(`${PATH}/:id/`))
    expect(named).to.have.length(13)
    for (const { method, path } of named)
      for (const id of runs) {
        const ask = async (run: string, headers: Record<string, string>) => {
          const body = method === 'POST' ? BODIES[path.split('/').at(-1)!] : undefined
          const { status, text } = await served.call(method, path.replace(':id', run), body, headers)
          return { status, text: text.replaceAll(run, 'RUN') }
        }
        const unknown = await ask(UNKNOWN, BOB)
        expect(unknown.status, `${method} ${path}`).to.equal(404)
        expect(await ask(id, BOB), `${method} ${path}`).to.deep.equal(unknown)
      }
    expect((await served.call('GET', `${PATH}/runs`, undefined, BOB)).body.runs).to.deep.equal([])
    // nothing of that reached it
    expect((await served.call('GET', `${PATH}/${runs[0]}/status`, undefined, ADA)).body).to.include({ status: 'running' })
    const own = await served.call('POST', `${PATH}/run`, { workflow: 'plain' }, { ...BOB, 'idempotency-key': 'kask' })
    expect(own.body).to.include({ status: 'completed' }).and.to.not.include({ workflow_id: runs[0] })
  })
})

describe('what is wrong with a request for a run', () => {
  const post = (url: string, path: string, body: string) =>
    fetch(url + path, { method: 'POST', headers: { 'content-type': 'application/json' }, body }).then(async answer => {
      const { error_code, details } = (await answer.json()) as { error_code: string; details: { field?: string } }
      return [answer.status, error_code, details.field]
    })
  const refused = (field: string) => [400, 'INVALID_VALUE', field]
  const MISSING = [400, 'MISSING_FIELD', undefined]

  it('is reported with its field, on every route that takes a body', async () => {
    await using served = await serveRuns()
    const { workflow_id: id } = await served.begin('ask')
    const reading = served.watch(id)
    await until(reading, 'node_waiting')
    const [run, events, answer] = ['run', `${id}/events`, `${id}/answer`].map(path => `${PATH}/${path}`) as [
      string,
      string,
      string,
    ]
    const cases: readonly (readonly [string, string, readonly unknown[]])[] = [
      ...[run, events, answer].flatMap(path => [
        [path, '{"workflow": ', refused('body')] as const,
        [path, '[]', refused('body')] as const,
        [path, 'null', refused('body')] as const,
        [path, '{}', MISSING] as const,
      ]),
      [run, '{"input": {}}', MISSING],
      [run, '{"workflow": null}', refused('workflow')],
      [run, '{"workflow": 7}', refused('workflow')],
      [run, '{"workflow": " "}', refused('workflow')],
      [run, '{"workflow": {"name": "x", "nodes": {}}}', refused('workflow')],
      [run, `{"workflow": "${'x'.repeat(1_001)}"}`, refused('workflow')],
      [run, '{"workflow": "sum", "input": "a"}', refused('input')],
      [run, '{"workflow": "sum", "input": null}', refused('input')],
      [run, '{"workflow": "sum", "input": {}}', refused('input.a')],
      [run, '{"workflow": "sum", "input": {"a": 1}, "parameters": []}', refused('parameters')],
      [run, '{"workflow": "sum", "input": {"a": 1}, "parameters": {"by": "x"}}', refused('parameters.by')],
      [run, '{"workflow": "sum", "input": {"a": 1}, "parameters": {"bye": 1}}', refused('parameters.bye')],
      [events, '{"name": 7}', refused('name')],
      [events, '{"name": "a b"}', refused('name')],
      [events, `{"name": "${'x'.repeat(101)}"}`, refused('name')],
      [answer, '{"step": "ask"}', MISSING],
      [answer, '{"step": 7, "value": true}', refused('step')],
      [answer, '{"step": "other", "value": true}', refused('step')],
      [answer, '{"step": "ask", "value": "x"}', refused('value')],
      [answer, '{"step": "ask", "value": null}', refused('value')],
    ]
    const answers = await Promise.all(cases.map(([path, body]) => post(served.url, path, body)))
    expect(answers.map((entry, at) => [cases[at]![1].slice(0, 80), ...entry])).to.deep.equal(
      cases.map(([, body, expected]) => [body.slice(0, 80), ...expected])
    )
    // the question still stands
    expect((await served.send(id, 'answer', { step: 'ask', value: true })).body).to.deep.equal({ success: true })
    await until(reading, 'run_completed')
  })

  it('is reported with its field in the query of a list', async () => {
    await using served = await serveRuns()
    for (const [name, value] of [
      ['limit', '0'],
      ['limit', '201'],
      ['limit', 'many'],
      ['status', 'waiting'],
      ['cursor', 'none'],
    ] as const) {
      const { status, body } = await served.call('GET', `${PATH}/runs?${name}=${value}`)
      expect([status, body.error_code, (body.details as { field: string }).field], name).to.deep.equal(refused(name))
    }
  })

  it('may be its size: of a body of 1 MiB all is taken, of a larger one nothing', async () => {
    await using served = await serveRuns()
    const { workflow_id: id } = await served.begin('listen')
    const sized = (body: object, field: string, size: number) => {
      const rest = JSON.stringify({ ...body, [field]: '' }).length
      return JSON.stringify({ ...body, [field]: 'x'.repeat(size - rest) })
    }
    const MIB = 1_048_576
    for (const path of ['run', `${id}/events`, `${id}/answer`].map(entry => `${PATH}/${entry}`))
      expect(
        await post(served.url, path, sized({ workflow: 'listen', name: 'paid', step: 'listen', value: 1 }, 'more', MIB + 1))
      ).to.deep.equal([413, 'PAYLOAD_TOO_LARGE', undefined])
    const data = sized({ name: 'paid' }, 'data', MIB)
    const taken = await fetch(`${served.url}${PATH}/${id}/events`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: data,
    })
    expect(taken.status).to.equal(200)
    await Array.fromAsync(served.watch(id))
    // too large for the record
    expect((await served.of(id, 'status')).body).to.deep.include({ result: null })
    const result = await fetch(`${served.url}${PATH}/${id}/result`)
    expect(await result.json()).to.have.length(JSON.parse(data).data.length)
  })
})
