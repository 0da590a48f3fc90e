import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import type { RunningHost } from '@svc/core'
import { TeamDefinitions, VerticalRuntime, Verticals, WorkflowDefinitions } from '@svc/core/contracts'
import { testHost, testContext } from '@svc/testing'

const PLUGIN = new URL('..', import.meta.url)
const CONTRIBUTES = { verticals: ['garden'], teams: ['diggers'], workflows: ['water'] }

/** A host with a vertical of this text, as a stranger writes its package. */
async function withVertical(text: string, check: (host: RunningHost) => unknown, svc: object = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'svc-vertical-'))
  const manifest = { api: 1, kind: 'workflow', runtime: 'vertical', contributes: CONTRIBUTES, ...svc }
  const main = 'garden.yaml'
  await writeFile(join(folder, 'package.json'), JSON.stringify({ name: 'svc-garden', version: '1.0.0', main, svc: manifest }))
  await writeFile(join(folder, main), text)
  try {
    await using host = await testHost([PLUGIN, folder])
    await check(host)
  } finally {
    await rm(folder, { recursive: true })
  }
}

interface Refusal {
  readonly code: string
  readonly details: { readonly problems: readonly object[] }
}

async function refusal(text: string, svc: object = {}): Promise<Refusal> {
  const failed = await withVertical(text, () => {}, svc).catch((error: { problems: readonly unknown[] }) => error)
  if (!failed) return expect.fail('it was taken')
  expect(failed.problems).to.have.length(1)
  return failed.problems[0] as Refusal
}
const problemsOf = async (text: string) => {
  const { code, details } = await refusal(text)
  expect(code).to.equal('VERTICAL_INVALID')
  return details.problems
}

const GARDEN = `name: garden
description: Beds and trees
patterns:
  - { words: [dig*, plant tree], team: diggers, workflow: water, weight: 0.5 }
teams:
  diggers:
    description: Dig
    formation: sequential
    members:
      one: { role: Digger, goal: Dig }
      two: { role: Planter, goal: Plant, tools: [] }
workflows:
  water:
    description: Waters
    nodes:
      pour: { type: transform, value: "\${{ 1 + 1 }}", branches: { true: pour, false: pour } }
`

describe('a plugin with "runtime": "vertical"', () => {
  it('brings what its file says: the vertical, its teams and its workflows, each under its name', () =>
    withVertical(GARDEN, host => {
      expect(host.slot(Verticals).get('garden')).to.deep.equal({
        description: 'Beds and trees',
        patterns: [{ words: ['dig*', 'plant tree'], team: 'diggers', workflow: 'water', weight: 0.5 }],
        teams: ['diggers'],
        workflows: ['water'],
      })
      expect(host.slot(TeamDefinitions).get('diggers')).to.deep.include({ name: 'diggers', formation: 'sequential' })
      const { name, nodes } = host.slot(WorkflowDefinitions).get('water')!
      expect([name, nodes.pour!.branches]).to.deep.equal(['water', { true: 'pour', false: 'pour' }])
      expect(host.slot(Verticals).owner('garden')).to.equal('svc-garden')
    }))

  it('may be JSON, whose faults have lines too', async () => {
    const json = JSON.stringify({ name: 'garden', description: 'Beds' }, null, 2)
    await withVertical(json, host => expect(host.slot(Verticals).get('garden')).to.include({ description: 'Beds' }))
    expect(await problemsOf(json.replace('description', 'descriptions'))).to.deep.include.members([
      { line: 3, path: 'descriptions', message: 'is not a known key', hint: 'did you mean "description"?' },
    ])
    expect(await problemsOf(`${json},`)).to.have.nested.property('[0].line')
  })

  it('needs no patterns, teams or workflows', () =>
    withVertical('name: garden\ndescription: Beds\n', host =>
      expect(host.slot(Verticals).get('garden')).to.deep.equal({ description: 'Beds', patterns: [], teams: [], workflows: [] })
    ))

  it('adds nothing that its manifest does not declare', async () => {
    const { code } = await refusal(GARDEN, { contributes: { ...CONTRIBUTES, teams: [] } })
    expect(code).to.equal('CONTRIBUTION_UNDECLARED')
  })

  it('reports all its problems at once, each with its line', async () => {
    const broken = GARDEN.replace('description: Beds and trees', 'descripton: Beds')
      .replace('weight: 0.5', 'weight: 2')
      .replace('formation: sequential', 'formation: circle')
      .replace('goal: Plant, tools: []', 'goal: " ", tool: []')
      .replace('type: transform', 'kind: transform')
    const problems = (await problemsOf(broken)) as { line: number; path: string; message: string; hint?: string }[]
    expect(problems.map(({ line, path }) => `${line} ${path}`)).to.have.members([
      '1 description',
      '2 descripton',
      '4 patterns[0].weight',
      '8 teams.diggers.formation',
      '11 teams.diggers.members.two.goal',
      '11 teams.diggers.members.two.tool',
      '16 workflows.water.nodes.pour.type',
    ])
    expect(problems.find(({ path }) => path === 'descripton')!.hint).to.equal('did you mean "description"?')
  })

  it('reports patterns that lead nowhere, and second leads', async () => {
    const lost = GARDEN.replace('team: diggers, workflow: water, ', '')
    expect(await problemsOf(lost)).to.deep.equal([
      { line: 4, path: 'patterns[0]', message: 'must name a team, a workflow or both' },
    ])
    const strange = GARDEN.replace('team: diggers', 'team: __proto__x').replace('workflow: water', 'workflow: wate')
    expect(await problemsOf(strange.replace('__proto__x', 'digger'))).to.deep.equal([
      { line: 4, path: 'patterns[0].team', message: '"digger" is not defined in this file' },
      { line: 4, path: 'patterns[0].workflow', message: '"wate" is not defined in this file' },
    ])
    const led = GARDEN.replaceAll(/role: (\w+)/g, 'role: $1, lead: true')
    expect(await problemsOf(led)).to.deep.equal([
      { line: 9, path: 'teams.diggers.members', message: 'must have at most one lead' },
    ])
  })

  for (const [what, text, line] of [
    ['what is no YAML', 'name: garden\ndescription: a: b\n', 2],
    ['a key that is a duplicate key', 'name: garden\ndescription: Beds\nname: garden\n', 3],
    ['a list', '- name: garden\n', 1],
    ['nothing at all', '', 1],
    ['aliases that grow without end', bomb(), 1],
  ] as const)
    it(`is refused where its file is ${what}`, async () => {
      const [problem] = await problemsOf(text)
      expect(problem).to.include({ line })
    })

  it('runs nothing', async () => {
    await using host = await testHost([PLUGIN])
    const runtime = host.service(VerticalRuntime)
    const module = { plugin: 'svc-garden', code: '', config: null, permissions: {} }
    for (const asked of [
      runtime.call(module, { slot: 'teams', name: 'diggers', method: 'x', args: [] }, testContext()),
      runtime.run({} as never, testContext()),
    ])
      expect(await asked.catch((error: { code: string }) => error.code)).to.equal('RUNTIME_NO_CODE')
  })
})

function bomb(): string {
  const rows = Array.from(
    { length: 12 },
    (_, at) =>
      `a${at}: &a${at} [${Array(10)
        .fill(at === 0 ? 'x' : `*a${at - 1}`)
        .join(', ')}]`
  )
  return `name: garden\ndescription: Beds\n${rows.join('\n')}\n`
}
