import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect } from 'chai'
import { terminal } from '../cli/test/support/terminal.ts'
import { runSvc } from './support/command.ts'
import { SVC } from './support/entry.ts'
import { newHome, startService } from './support/service.ts'
import { sideBySideIn } from './support/side-by-side.ts'
import { lacking, skipBecause } from './support/needs.ts'

const SUM = `name: sum
description: Adds
inputs: { type: object, properties: { a: { type: integer } }, required: [a] }
parameters: { by: { type: integer, default: 1 }, note: { type: string, default: none } }
nodes:
  add: { type: transform, value: { sum: "\${{ input.a + parameters.by }}", note: "\${{ parameters.note }}" } }
`
const ASK = `name: ask
nodes:
  may: { type: human, message: "Shall it go on?", next: which }
  which: { type: human, kind: choice, message: "Which one?", choices: [red, green], next: done }
  done: { type: transform, value: { may: "\${{ nodes.may.answer }}", which: "\${{ nodes.which.answer }}" } }
`
const FAIL = `name: fail
nodes: { one: { type: transform, value: 1, next: two }, two: { type: wait, for: 1ms, next: three }, three: { type: transform, value: "\${{ input.none.such }}" } }
`

const FAULTY = `name: faulty
nodes: { one: { type: transfrom, next: nowhere } }
`
const TYPED = `const nodes: object = { a: { type: 'transform', value: 1 } }
export default { name: 'typed', nodes }
`
const UNKNOWN = `RUN_UNKNOWN
  run "none" does not exist
  Run \`svc workflows runs\` to list the runs. Ended runs are deleted after workflows.retention
`

const idIn = (text: string) => /run (\S+)/.exec(text)![1]!
const statusOf = async (home: string, id: string) =>
  JSON.parse((await runSvc(['workflows', 'status', id, '--json'], { home, share: true })).out) as Record<string, unknown>

/** A home with these workflows. */
async function withWorkflows(run: (home: string) => Promise<void>): Promise<void> {
  const home = await newHome()
  await mkdir(join(home, 'workflows'))
  for (const [name, text] of Object.entries({ sum: SUM, ask: ASK, fail: FAIL }))
    await writeFile(join(home, 'workflows', `${name}.yaml`), text)
  await run(home).finally(() => rm(home, { recursive: true, force: true }))
}

describe('svc workflows', () => {
  const it = sideBySideIn<string>(withWorkflows)
  const svcIn =
    (home: string) =>
    (...args: string[]) =>
      runSvc(['workflows', ...args], { home, share: true })

  it('lists, shows, draws and checks workflows', async home => {
    const svc = svcIn(home)
    await writeFile(join(home, 'workflows/typed.ts'), TYPED)
    await writeFile(join(home, 'svc.config.yaml'), 'workflows: { code: [workflows/typed.ts] }\n')
    await writeFile(join(home, 'workflows/faulty.yaml'), FAULTY)
    const [list, shown, good, lost, bad, drawn, faulty, named, shownFaulty] = await Promise.all([
      svc('list'),
      svc('show', 'workflows/sum.yaml'),
      svc('validate', 'workflows/sum.yaml', 'ask', 'workflows/typed.ts'),
      svc('graph', 'ask', '--svg', 'none/ask.svg'),
      writeFile(join(home, 'bad.yaml'), 'name: bad\nnodes:\n  a: { type: transfrom, value: 1 }\n').then(() =>
        svc('validate', 'bad.yaml')
      ),
      svc('graph', 'ask', '--svg', 'ask.svg'),
      svc('graph', 'faulty'),
      svc('validate', 'faulty', 'ask'),
      svc('show', 'faulty'),
    ])
    expect(list.out).to.match(/sum +1 +\S+ +Adds/)
    expect(shown.out).to.include('name: sum').and.include('add:')
    const fine = ['workflows/sum.yaml', 'ask', 'workflows/typed.ts'].map(source => `${source}: no problems\n`)
    expect([good.code, good.out]).to.deep.equal([0, fine.join('')])
    expect(lost.code).to.equal(2)
    expect(lost.err).to.match(/^COMMAND_LINE_INVALID\n {2}cannot write --svg: ENOENT/)
    expect(bad.code).to.equal(1)
    expect(bad.out).to.match(/^bad\.yaml:3 nodes\.a\.type .*transfrom/)
    expect([drawn.code, drawn.err]).to.deep.equal([0, 'drawn to ask.svg\n'])
    expect(faulty).to.deep.equal({
      code: 0,
      out: 'faulty\n● one (transfrom)\n↓\n● nowhere (no such node)\n',
      err: 'the definition has 2 problems: run svc workflows validate faulty\n',
    })
    const places = ['workflows/faulty.yaml:2 nodes.one.type', 'workflows/faulty.yaml:2 nodes.one.next', 'ask: no problems']
    for (const place of places) expect(named.out).to.include(place)
    expect(shownFaulty.err).to.include(places[0]).and.include('from faulty.yaml')
    expect(await readFile(join(home, 'ask.svg'), 'utf8')).to.match(/^<svg|^<\?xml/)
  })

  it('runs a workflow: its result to the output, its steps to the other, and 1 where it fails', async home => {
    const svc = svcIn(home)
    await writeFile(join(home, 'input.json'), '{"a": 2}')
    const sum = await svc('run', 'sum', '--input', '@input.json', '--param', 'by=5', '--param', 'note=7')
    expect([sum.code, JSON.parse(sum.out)]).to.deep.equal([0, { sum: 7, note: '7' }])
    expect(sum.err).to.match(/✓ add {2}transform {2}\d+ ms/)
    const failed = await svc('run', 'fail', '--json')
    expect(failed.code).to.equal(1)
    expect(JSON.parse(failed.out)).to.include({ status: 'failed', failure_code: 'EXPRESSION_FAILED' })
    const again = await svc('retry', idOf(failed.out))
    expect([again.code, again.out]).to.deep.equal([1, ''])
    expect(again.err).to.include('✗ three')
    const steps = await Promise.all([idOf(failed.out), idIn(again.err)].map(id => statusOf(home, id)))
    const [first, second] = steps.map(step => step.steps as { started_at: string }[])
    // what was done is taken over, what failed is begun anew
    expect(second!.slice(0, 2)).to.deep.equal(first!.slice(0, 2))
    expect(second![2]!.started_at).to.not.equal(first![2]!.started_at)
    const { out } = await svc('runs', '--status', 'failed', '--json')
    expect((JSON.parse(out) as { runs: { retry_of: string | null }[] }).runs.map(run => run.retry_of)).to.deep.equal([
      idOf(failed.out),
      null,
    ])
  })

  it('leaves a waiting run to the next answer, also without a server', async home => {
    const svc = svcIn(home)
    const { out } = await svc('run', 'ask', '--detach')
    const id = out.trim()
    const following = spawn(process.execPath, [...SVC, 'workflows', 'status', id, '--follow'], {
      cwd: home,
      env: { PATH: process.env.PATH, SVC_HOME: home },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    using _end = { [Symbol.dispose]: () => void following.kill('SIGKILL') }
    const ended = once(following, 'exit')
    const lines = createInterface(following.stderr)[Symbol.asyncIterator]()
    await said(lines, 'may asks: Shall it go on? ([y]es / [n]o)')
    const NEITHER = 'INVALID_VALUE\n  value must be true or false, or "approved" or "rejected"\n'
    expect(await svc('answer', id, 'perhaps')).to.deep.equal({ code: 1, out: '', err: NEITHER })
    const lost = await svc('answer', id, 'mya', 'yes')
    expect([lost.code, lost.err]).to.deep.equal([1, 'INVALID_VALUE\n  step "mya" waits for no answer\n  Use one of: may\n'])
    expect((await svc('answer', id, 'may', 'approved')).code).to.equal(0)
    await said(lines, 'which asks: Which one? ([1] red / [2] green)')
    const other = await svc('answer', id, '3')
    expect([other.code, other.err]).to.deep.equal([
      1,
      'INVALID_VALUE\n  value must be one of the choices\n  Use one of: red, green\n',
    ])
    expect((await svc('answer', id, '2')).code).to.equal(0)
    expect(await ended).to.deep.equal([0, null])
    expect(await statusOf(home, id)).to.deep.include({ status: 'completed', result: { may: true, which: 'green' } })
  })

  it('cancels a run without a worker, and says why an ended run cannot be cancelled', async home => {
    const svc = svcIn(home)
    const { out } = await svc('run', 'ask', '--detach')
    const cancelled = await svc('cancel', out.trim())
    expect([cancelled.code, cancelled.out]).to.deep.equal([0, `${out.trim()} is cancelled\n`])
    expect(await statusOf(home, out.trim())).to.include({ status: 'failed', error: 'cancelled' })
    const hint = `Run \`svc workflows status ${out.trim()}\` to see its state`
    const nothing = `INVALID_VALUE\n  the run has no open question: its status is failed\n  ${hint}\n`
    for (const words of [['yes'], ['may', 'yes']])
      expect(await svc('answer', out.trim(), ...words)).to.deep.equal({ code: 1, out: '', err: nothing })
    const late = await svc('cancel', out.trim())
    expect([late.code, late.err.includes('has ended')]).to.deep.equal([1, true])
    const unknown = await Promise.all(['status', 'cancel'].map(command => svc(command, 'none')))
    expect(unknown.map(({ code, err }) => [code, err])).to.deep.equal([
      [1, UNKNOWN],
      [1, UNKNOWN],
    ])
  })

  it('begins a run that was cancelled anew and leaves it with --detach; one that has not ended is not retried', async home => {
    const svc = svcIn(home)
    const id = (await svc('run', 'ask', '--detach')).out.trim()
    const asked = await svc('answer', id, 'yes')
    expect([asked.code, asked.err.split('\n')[1]]).to.deep.equal([1, '  the run has no open question: it is running'])
    const early = await svc('retry', id, '--detach')
    expect([early.code, early.err]).to.deep.equal([1, 'INVALID_VALUE\n  workflow_id has not ended\n'])
    await svc('cancel', id)
    const again = await svc('retry', id, '--detach')
    expect([again.code, again.err]).to.deep.equal([0, ''])
    // nobody has begun it
    expect(await statusOf(home, again.out.trim())).to.deep.include({ status: 'running', retry_of: id, steps: [] })
    const reported = await svc('retry', id, '--detach', '--json')
    expect(JSON.parse(reported.out)).to.include({ success: true, status: 'running' })
  })

  it('gives a run to the server of this home, which goes on with it', async home => {
    await using service = await startService({ home })
    const { out } = await svcIn(home)('run', 'sum', '--input', '{"a": 1}', '--detach')
    // the stream ends with the run
    const events = await (await fetch(`${service.url}/api/v1/workflows/${out.trim()}/events`)).text()
    expect(events).to.include('event: run_completed')
    expect(await statusOf(home, out.trim())).to.deep.include({ status: 'completed', result: { sum: 2, note: 'none' } })
  })
})

describe('svc workflows run on a terminal', () => {
  const it = sideBySideIn<string>(withWorkflows)
  before(function () {
    skipBecause(this, lacking('terminal'))
  })

  it('asks the person at the terminal; Ctrl-D leaves the run waiting, Ctrl-C cancels it', async home => {
    const tty = await terminal({ home, folder: home }, ['workflows', 'run', 'ask'])
    let at = await tty.sees('may: [y]es / [n]o: ', await tty.sees('? may  Shall it go on?'))
    tty.type('maybe\r')
    at = await tty.sees('may: [y]es / [n]o: ', at)
    tty.type('y\r')
    at = await tty.sees('which: [1] red / [2] green: ', at)
    tty.type('2\r')
    await tty.sees('"which": "green"', at)
    expect(await tty.code()).to.equal(0)

    const left = await terminal({ home, folder: home }, ['workflows', 'run', 'ask'])
    await left.sees('may: [y]es / [n]o: ')
    left.type('\u0004')
    expect(await left.code()).to.equal(3)
    expect(await statusOf(home, idIn(left.seen()))).to.include({ status: 'running' })

    const stopped = await terminal({ home, folder: home }, ['workflows', 'run', 'ask'])
    await stopped.sees('may: [y]es / [n]o: ')
    stopped.type('\u0003')
    expect(await stopped.code()).to.equal(130)
    expect(await statusOf(home, idIn(stopped.seen()))).to.include({ status: 'failed', error: 'cancelled' })
  })
})

const idOf = (out: string) => (JSON.parse(out) as { workflow_id: string }).workflow_id

async function said(lines: AsyncIterator<string>, words: string): Promise<void> {
  for (;;) {
    const { value, done } = await lines.next()
    if (done) throw new Error(`it ended without saying ${words}`)
    if (value.includes(words)) return
  }
}
