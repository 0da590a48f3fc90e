import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { type Json, Recommend, TeamDefinitions, Teams, Verticals, WorkflowDefinitions } from '@svc/core/contracts'
import { VERTICALS, valueOf } from '../scripts/verticals.ts'
import { type Answers, openRoom } from './support/work-room.ts'

const NAMES = ['coding', 'research', 'devops', 'data-analysis']

const FILES = {
  'src/cart.js': 'export const sum = prices => prices.reduce((a, b) => a - b, 0)\n',
  'notes/sums.md': '# Sums\n\nA sum begins at 0 and adds.\n',
  'logs/app.log': 'INFO up\nERROR request 12345678 timeout after 30 s\nERROR request 99 timeout after 31 s\nWARN disk at 91 %\n',
  'data/good.csv': 'id,price\n1,2.5\n2,3\n',
  'data/bad.csv': 'id,price\n1,2.5\n1,\n3,cheap\n4,1\n5,2\n6,3\n7,4\n8,5\n',
  'data/next.csv': 'id,price\n2,4\n3,1\n',
}
const CHANGE = { 'src/cart.js': 'export const sum = prices => prices.reduce((a, b) => a + b, 0)\n' }

interface Play {
  readonly input?: Json
  readonly answers?: Answers
  /** A part of the result that does not depend on what a model says. */
  readonly result: object
}

/** Each way through each workflow that a person or the data decide. */
const PLAYS: readonly (readonly [workflow: string, way: string, play: Play])[] = [
  ['review_change', 'of a change', { result: { verdict: 'approve' } }],
  [
    'fix_bug',
    'that is approved',
    { input: { report: 'The sum is wrong' }, answers: { approve: true }, result: { fixed: true, files: [] } },
  ],
  [
    'fix_bug',
    'that is not approved',
    { input: { report: 'The sum is wrong' }, answers: { approve: false }, result: { fixed: false } },
  ],
  ['plan_change', 'of a wish', { input: { wish: 'Discounts' }, result: { approved: true } }],
  [
    'research_question',
    'with a source that cannot be read',
    {
      input: { question: 'Where does a sum begin?', sources: ['notes/sums.md', 'notes/none.md'] },
      result: { sound: true, read: ['notes/sums.md'], unread: 1 },
    },
  ],
  ['check_claims', 'of a text', { input: { text: 'A sum begins at 0.' }, result: { undecided: 0 } }],
  [
    'compare_options',
    'of two options',
    { input: { need: 'Add prices', options: ['a loop', 'reduce'], criteria: ['short', 'clear'] }, result: {} },
  ],
  [
    'handle_incident',
    'that is recovered from',
    {
      input: { title: 'Carts are empty', logs: 'logs' },
      answers: { decide: 'act', recovered: { by: 'a restart' } },
      result: { status: 'recovered', decision: 'act' },
    },
  ],
  [
    'handle_incident',
    'that is escalated',
    { input: { title: 'Carts are empty', logs: 'logs' }, answers: { decide: 'escalate' }, result: { status: 'escalated' } },
  ],
  [
    'digest_logs',
    'with what is alike counted',
    {
      input: { path: 'logs' },
      result: {
        groups: [
          { kind: 'ERROR request # timeout after # s', count: 2, first: 'logs/app.log:2' },
          { kind: 'WARN disk at # %', count: 1, first: 'logs/app.log:4' },
        ],
      },
    },
  ],
  ['digest_logs', 'of a quiet night', { input: { path: 'notes' }, result: { groups: [], digest: 'Nothing to report.' } }],
  [
    'write_release_notes',
    'that are approved',
    { input: { version: '1.1.0' }, answers: { approve: true }, result: { written: true, path: 'RELEASE_NOTES.md', commits: 2 } },
  ],
  [
    'write_release_notes',
    'that are refused',
    { input: { version: '1.1.0' }, answers: { approve: false }, result: { written: false } },
  ],
  ['check_table', 'that is good', { input: { file: 'data/good.csv', key: 'id' }, result: { good: true, rows: 2, found: [] } }],
  [
    'check_table',
    'that is bad',
    {
      input: { file: 'data/bad.csv', key: 'id', required: ['price', 'name'] },
      result: {
        good: false,
        rows: 8,
        found: [
          { rule: 'column missing', column: 'name', rows: 8, first: 1 },
          { rule: 'empty', column: 'price', rows: 1, first: 2 },
          { rule: 'not unique', column: 'id', rows: 1, first: 2 },
          { rule: 'not a number', column: 'price', rows: 1, first: 3 },
        ],
      },
    },
  ],
  [
    'ask_table',
    'with a question',
    { input: { question: 'What is the sum?', file: 'data/good.csv' }, result: { approved: true } },
  ],
  [
    'compare_tables',
    'of two versions',
    {
      input: { before: 'data/good.csv', after: 'data/next.csv', key: 'id' },
      result: { came: ['3'], went: ['1'], changed: [{ key: '2', columns: { price: ['3', '4'] } }] },
    },
  ],
]

describe('the verticals', function () {
  this.timeout(60_000)
  let room: Awaited<ReturnType<typeof openRoom>>
  before(async () => {
    room = await openRoom({ files: FILES, change: CHANGE, plugins: NAMES.map(name => `vertical-${name}`) })
  })
  after(() => room.close())

  it('bring teams of all six formations and workflows that have nothing wrong with them', async () => {
    const teams = await room.host.service(Teams).list(room.ctx)
    expect(teams.filter(({ problems }) => problems)).to.deep.equal([])
    expect(new Set(teams.map(({ formation }) => formation)).size).to.equal(6)
    const workflows = await room.workflows.list(room.ctx)
    expect(workflows.flatMap(({ name, problems = [] }) => problems.map(problem => ({ name, ...problem })))).to.deep.equal([])
    expect(new Set(PLAYS.map(([name]) => name))).to.deep.equal(new Set(room.host.slot(WorkflowDefinitions).names()))
  })

  it('are read as they are written (node scripts/verticals.ts writes the JSON)', () => {
    for (const { yaml, json } of VERTICALS) expect(JSON.parse(readFileSync(json, 'utf8'))).to.deep.equal(valueOf(yaml))
  })

  it('recommend for each phrase of their patterns what the pattern names, from their own plugin', async () => {
    for (const [vertical, { patterns }] of room.host.slot(Verticals).entries())
      for (const { words, team, workflow } of patterns)
        for (const phrase of words) {
          const taskType = phrase.replaceAll('*', '')
          const asked = { taskType, complexity: 'high', vertical }
          const [entry] = await room.host.service(Recommend).recommend(asked, room.ctx)
          expect(entry?.workflow?.name ?? undefined, phrase).to.equal(workflow ?? entry?.workflow?.name ?? undefined)
          expect(entry?.team?.name ?? undefined, phrase).to.equal(team ?? entry?.team?.name ?? undefined)
          if (entry?.team) expect(entry.team.source).to.equal(`@svc/plugin-vertical-${vertical}`)
        }
  })

  it('recommend for a task the vertical that it is of first', async () => {
    const first = async (taskType: string) =>
      (await room.host.service(Recommend).recommend({ taskType, complexity: 'medium' }, room.ctx))[0]?.vertical
    expect(await first('code_review')).to.equal('coding')
    expect(await first('fix_bug')).to.equal('coding')
    expect(await first('market research')).to.equal('research')
    expect(await first('production incident')).to.equal('devops')
    expect(await first('release-notes')).to.equal('devops')
    expect(await first('dataAnalysis')).to.equal('data-analysis')
    expect(await first('bake a cake')).to.equal(undefined)
  })

  it('recommend a team and a workflow for testing, documentation and a security audit', async () => {
    const named = async (taskType: string) => {
      const [entry] = await room.host.service(Recommend).recommend({ taskType, complexity: 'high' }, room.ctx)
      return [entry?.vertical, entry?.team?.name, entry?.workflow?.name, entry?.action]
    }
    expect(await named('testing')).to.deep.equal(['coding', 'test_pair', 'plan_change', 'auto_spawn'])
    expect(await named('documentation')).to.deep.equal(['coding', 'docs_pair', 'plan_change', 'auto_spawn'])
    for (const taskType of ['security_audit', 'securityAudit', 'security audit of the login'])
      expect(await named(taskType)).to.deep.equal(['coding', 'security_panel', 'review_change', 'auto_spawn'])
  })

  for (const [workflow, way, { result, ...play }] of PLAYS)
    it(`run ${workflow} ${way}`, async () => {
      const run = await room.play(workflow, play)
      expect(run.error).to.equal(undefined)
      expect(run.status).to.equal('completed')
      expect(run.result).to.deep.include(result)
    })

  it('write what was approved, where it was said', async () => {
    expect(await readFile(join(room.folder, 'RELEASE_NOTES.md'), 'utf8')).to.contain('release notes for version 1.1.0')
  })

  it('have teams that all answer', async () => {
    const teams = room.host.service(Teams)
    for (const name of room.host.slot(TeamDefinitions).names()) {
      const { id } = await teams.start({ team: name, task: 'Look at the sum of the cart' }, room.ctx)
      const run = await room.ended(id)
      expect(run.error, name).to.equal(undefined)
      expect((run.result as { answer: unknown }).answer, name).to.be.a('string')
    }
  })
})
