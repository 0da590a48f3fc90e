import { readdirSync, readFileSync } from 'node:fs'
import { access, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { openRoom } from './support/work-room.ts'

const EXAMPLE = fileURLToPath(new URL('../examples/workflows/', import.meta.url))
const sample = (name: string) => readFileSync(join(EXAMPLE, 'sample', name), 'utf8')

const FILES = {
  'src/cart.js': 'export const sum = prices => prices.reduce((a, b) => a - b, 0)\n',
  'orders.csv': sample('orders.csv'),
  'logs/shop.log': sample('logs/shop.log'),
  'notes/sums.md': sample('notes/sums.md'),
}
const CHANGE = { 'src/cart.js': 'export const sum = prices => prices.reduce((a, b) => a + b, 0)\n' }

describe('the workflows of the examples', function () {
  this.timeout(60_000)
  let room: Awaited<ReturnType<typeof openRoom>>
  before(async () => {
    room = await openRoom({
      files: FILES,
      change: CHANGE,
      config: () => ({ workflows: { roots: [join(EXAMPLE, 'workflows')] } }),
    })
  })
  after(() => room.close())
  const play = async (...what: Parameters<typeof room.play>) => {
    const run = await room.play(...what)
    expect(run.error).to.equal(undefined)
    expect(run.status).to.equal('completed')
    return run.result as Record<string, unknown>
  }
  const text = (name: string) => readFile(join(room.folder, name), 'utf8')

  it('are all tested in this file, and are valid', async () => {
    const all = await room.workflows.list(room.ctx)
    expect(all.flatMap(({ name, problems = [] }) => problems.map(problem => ({ name, ...problem })))).to.deep.equal([])
    expect(all.map(({ name }) => `${name}.yaml`).sort()).to.deep.equal(readdirSync(join(EXAMPLE, 'workflows')).sort())
    expect(all).to.have.length(7)
  })

  it('review-pull-request reviews each changed file', async () => {
    const result = await play('review-pull-request', { parameters: { from: 'HEAD~1' } })
    expect(result).to.deep.include({ verdict: 'approve', files: 1 })
    expect(result.findings).to.have.nested.property('[0].path', 'src/cart.js')
    expect(await play('review-pull-request', { parameters: { from: 'HEAD' } })).to.deep.include({ files: 0, findings: [] })
  })

  it('triage-issue raises an alarm only with a yes', async () => {
    const input = { title: 'Login fails', text: 'Nobody can log in' }
    expect(await play('triage-issue', { input, answers: { alarm: true } })).to.deep.include({
      labels: ['bug', 'urgent'],
      raised: true,
    })
    expect(await play('triage-issue', { input, answers: { alarm: false } })).to.include({ raised: false })
  })

  it('log-digest counts what is alike, and writes its page', async () => {
    const result = await play('log-digest', { parameters: { path: 'logs' } })
    expect(result).to.include({ lines: 3, page: 'log-digest.md' })
    expect((result.kinds as { count: number }[]).map(({ count }) => count)).to.deep.equal([2, 1])
    expect(await text('log-digest.md')).to.contain('Sum up these log lines')
    expect(await play('log-digest', { parameters: { path: 'src' } })).to.deep.equal({ lines: 0, kinds: [], page: null })
  })

  it('research-with-critic goes on without a source that is not there', async () => {
    const input = { question: 'Where does a sum begin?', sources: ['notes/sums.md', 'notes/none.md'] }
    expect(await play('research-with-critic', { input })).to.deep.include({ sound: true, sources: ['notes/sums.md'] })
    const none = { question: 'Why?', sources: ['notes/none.md'] }
    expect(await play('research-with-critic', { input: none })).to.deep.equal({ answer: null, sound: false, sources: [] })
  })

  it('release-notes publishes a text after a person approves it', async () => {
    const parameters = { version: '1.2.0' }
    const result = await play('release-notes', { parameters, answers: { ask: 'publish' } })
    expect(result).to.deep.equal({ published: true, file: 'RELEASE_NOTES.md', fixed: ['Fix the sum of the cart'] })
    expect(await text('RELEASE_NOTES.md'))
      .to.contain('1.2.0')
      .and.to.contain('This is version one')
    expect(await play('release-notes', { parameters, answers: { ask: 'drop' } })).to.deep.equal({ published: false })
  })

  it('check-csv keeps an approved copy, and takes back one that is rejected', async () => {
    const parameters = { file: 'orders.csv', key: 'id' }
    const kept = await play('check-csv', { parameters, answers: { approve: true } })
    expect(kept).to.deep.equal({ file: 'clean.csv', kept: 3, dropped: 2 })
    expect(await text('clean.csv')).to.equal('id,customer,total\n1,Ada,12.50\n2,"Lovelace, Ada",3\n4,Grace,7\n')
    const run = await room.play('check-csv', { parameters: { ...parameters, copy: 'other.csv' }, answers: { approve: false } })
    expect(run.status).to.equal('failed')
    expect(
      await access(join(room.folder, 'other.csv')).then(
        () => 'there',
        () => 'gone'
      )
    ).to.equal('gone')
  })

  it('incident-runbook waits for the recovery, or hands over', async () => {
    const asked = { input: { title: 'Checkout fails' }, parameters: { logs: 'logs' } }
    const recovered = await play('incident-runbook', { ...asked, answers: { decide: 'restart', recovered: { by: 'a restart' } } })
    expect(recovered).to.deep.include({ status: 'recovered', decided: 'restart', by: { by: 'a restart' } })
    expect(await play('incident-runbook', { ...asked, answers: { decide: 'hand_over' } })).to.include({ status: 'handed_over' })
  })

  it('can each be replayed from their first node, and from the last one with the recorded results', async () => {
    const asked: Record<string, Parameters<typeof room.play>[1]> = {
      'review-pull-request': { parameters: { from: 'HEAD~1' } },
      'triage-issue': { input: { title: 'Login fails', text: 'Nobody can log in' }, answers: { alarm: true } },
      'log-digest': { parameters: { path: 'logs' } },
      'research-with-critic': { input: { question: 'Where does a sum begin?', sources: ['notes/sums.md'] } },
      'release-notes': { parameters: { version: '1.2.0' }, answers: { ask: 'publish' } },
      'check-csv': { parameters: { file: 'orders.csv', key: 'id' }, answers: { approve: true } },
      'incident-runbook': {
        input: { title: 'Checkout fails' },
        parameters: { logs: 'logs' },
        answers: { decide: 'restart', recovered: { by: 'a restart' } },
      },
    }
    expect(Object.keys(asked)).to.have.members((await room.workflows.list(room.ctx)).map(({ name }) => name))
    // check-csv never replaces a copy
    const clear = () => rm(join(room.folder, 'clean.csv'), { force: true })
    for (const [name, what] of Object.entries(asked)) {
      await clear()
      const run = await room.play(name, what)
      expect([name, run.status, run.error]).to.deep.equal([name, 'completed', undefined])
      const last = run.completedNodes.at(-1)!
      for (const from of [undefined, last]) {
        if (from === undefined) await clear()
        const request = from === undefined ? {} : { from }
        const { id } = await room.workflows.replay(run.id, request, room.ctx)
        const replay = await room.ended(id, what?.answers)
        expect([name, from, replay.status, replay.error]).to.deep.equal([name, from, 'completed', undefined])
        expect(replay.result, `${name} from ${from}`).to.deep.equal(run.result)
        expect(replay.replayOf).to.equal(run.id)
      }
    }
  })
})
