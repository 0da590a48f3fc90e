import { expect } from 'chai'
import { openRecommendHost } from './support/host.ts'

const CODING = `
name: coding
description: Programs
patterns:
  - { words: [code review, pull request], team: board, workflow: look }
  - { words: ['fix*', 'repair*'], workflow: repair, weight: 0.9 }
teams:
  board:
    description: Reviews changes
    formation: parallel
    budget: { tool_calls: 30 }
    members:
      one: { role: Reviewer, goal: Find faults, tools: [read_it] }
      two: { role: Reviewer, goal: Find holes, mode: plan, tools: [write_it] }
      three: { role: Editor, goal: Sum up, lead: true, tools: [] }
  crew:
    description: Writes tests for modules
    formation: sequential
    members:
      first: { role: Tester, goal: Test, budget: { tool_calls: 3 } }
      next: { role: Tester, goal: Test more, budget: { tool_calls: 4 } }
workflows:
  look:
    description: Looks at a change
    nodes: { a: { type: transform, value: 1, next: b }, b: { type: transform, value: 2 } }
  repair:
    description: Repairs what is broken, and says how
    nodes: { a: { type: transform, value: 1 } }
`
const COOKING = `
name: cooking
description: Meals
patterns:
  - { words: [cook*, pull request], workflow: recipe, weight: 0.5 }
workflows:
  recipe:
    description: Writes a recipe
    nodes: { a: { type: transform, value: 1 } }
`

describe('recommendations', () => {
  it('tell team and workflow of the pattern that matches, with all that is said of them', async () => {
    await using desk = await openRecommendHost([CODING, COOKING])
    expect(await desk.recommend({})).to.deep.equal([
      {
        vertical: 'coding',
        action: 'auto_spawn',
        team: {
          name: 'board',
          confidence: 1,
          reason: 'the task matches the pattern "code review"',
          formation: 'parallel',
          suggestedBudget: 30,
          roles: { Reviewer: 2, Editor: 1 },
          source: 'a-vertical',
        },
        workflow: {
          name: 'look',
          confidence: 1,
          reason: 'the task matches the pattern "code review"',
          trigger: 'code review',
          steps: 2,
        },
      },
    ])
  })

  it('are the surer the more of the task a pattern says', async () => {
    await using desk = await openRecommendHost([CODING])
    const sure = async (taskType: string) => (await desk.recommend({ taskType }))[0]?.workflow?.confidence
    expect(await sure('codeReview')).to.equal(1)
    expect(await sure('a review of our code')).to.equal(1)
    expect(await sure('code review of the login page')).to.equal(0.8)
    expect(await sure('fixed it')).to.equal(0.9)
    expect(await sure('please fix the slow login')).to.equal(0.66)
    expect(await sure('review')).to.equal(undefined)
  })

  it('find by words of names and descriptions what no pattern names, less sure than any pattern', async () => {
    await using desk = await openRecommendHost([CODING, COOKING])
    const [entry, ...others] = await desk.recommend({ taskType: 'write tests' })
    expect(others, 'one of two words is not enough').to.deep.equal([])
    expect(entry).to.deep.include({ vertical: 'coding', workflow: null })
    expect(entry!.team).to.deep.include({
      name: 'crew',
      confidence: 0.42,
      reason: 'its name and description contain "write", "tests"',
      suggestedBudget: 7,
      roles: { Tester: 2 },
    })
    expect((await desk.recommend({ taskType: 'repair' }))[0]!.workflow).to.deep.include({
      name: 'repair',
      trigger: 'repair*',
    })
    expect(await desk.recommend({ taskType: 'a recipe for disaster' }), 'one of two, though it is a name').to.deep.equal([])
    expect((await desk.recommend({ taskType: 'recipe' }))[0]!.workflow).to.deep.include({
      name: 'recipe',
      confidence: 0.6,
      trigger: null,
    })
  })

  it('are none where nothing matches, nor of a vertical that there is not', async () => {
    await using desk = await openRecommendHost([CODING, COOKING])
    expect(await desk.recommend({ taskType: 'sing a song' })).to.deep.equal([])
    expect(await desk.recommend({ taskType: 'the' })).to.deep.equal([])
    expect(await desk.recommend({ vertical: 'astrology' })).to.deep.equal([])
    expect(await desk.recommend({ vertical: '__proto__' })).to.deep.equal([])
  })

  it('have one entry for each vertical that matches, the surest first, or the one that is asked for', async () => {
    await using desk = await openRecommendHost([COOKING, CODING])
    const verticals = async (vertical?: string) =>
      (await desk.recommend({ taskType: 'pull request', ...(vertical ? { vertical } : {}) })).map(item => item.vertical)
    expect(await verticals()).to.deep.equal(['coding', 'cooking'])
    expect(await verticals('cooking')).to.deep.equal(['cooking'])
  })

  it('never name what cannot run', async () => {
    await using desk = await openRecommendHost([CODING], { broken: ['look', 'crew'] })
    const [entry] = await desk.recommend({})
    expect([entry!.team?.name, entry!.workflow]).to.deep.equal(['board', null])
    expect(await desk.recommend({ taskType: 'write tests' })).to.deep.equal([])
    await using alone = await openRecommendHost([CODING], { alone: true })
    expect(await alone.recommend({})).to.deep.equal([])
  })

  const TABLE = {
    build: ['none', 'none', 'suggest', 'auto_spawn', 'auto_spawn'],
    plan: ['none', 'none', 'suggest', 'suggest', 'suggest'],
    review: ['none', 'none', 'suggest', 'suggest', 'auto_spawn'],
    delegate: ['none', 'suggest', 'auto_spawn', 'auto_spawn', 'auto_spawn'],
    explore: ['none', 'none', 'none', 'suggest', 'suggest'],
  }
  it('say what to do by mode and complexity', async () => {
    await using desk = await openRecommendHost([CODING])
    const action = async (complexity: string, mode?: string) =>
      (await desk.recommend({ complexity, ...(mode ? { mode } : {}) }))[0]!.action
    const levels = ['trivial', 'low', 'medium', 'high', 'extreme']
    for (const [mode, actions] of Object.entries(TABLE))
      expect(await Promise.all(levels.map(level => action(level, mode)))).to.deep.equal(actions)
    const aliases = ['simple', 'moderate', 'complex', 'very_high']
    expect(await Promise.all(aliases.map(level => action(level, 'review')))).to.deep.equal(TABLE.review.slice(1))
    expect(await action('medium'), 'build is the default').to.equal('suggest')
  })

  it('ask for a yes where it is configured and a member may write or execute', async () => {
    const config = { recommend: { approval: true } }
    await using desk = await openRecommendHost([CODING], { config })
    const action = async (taskType: string, complexity: string) => (await desk.recommend({ taskType, complexity }))[0]!.action
    expect(await action('write tests', 'high'), 'members without a list have all that build allows').to.equal('require_approval')
    expect(await action('write tests', 'medium')).to.equal('suggest')
    expect(await action('code review', 'high'), 'a plan never writes, whatever tools it lists').to.equal('auto_spawn')
    await using writing = await openRecommendHost([CODING.replace('mode: plan, ', '')], { config })
    expect((await writing.recommend({}))[0]!.action).to.equal('require_approval')
  })

  it('refuse a complexity, mode or task that cannot be meant, and say what there is', async () => {
    await using desk = await openRecommendHost([CODING])
    const refusal = (request: object) =>
      desk.recommend(request).then(
        () => expect.fail('it was taken'),
        (error: { code: string; details: object }) => ({ code: error.code, ...error.details })
      )
    const levels = ['trivial', 'low', 'medium', 'high', 'extreme', 'simple', 'moderate', 'complex', 'very_high']
    expect(await refusal({ complexity: 'huge' })).to.deep.equal({
      code: 'INVALID_VALUE',
      field: 'complexity',
      value: 'huge',
      allowed: levels,
      reason: 'unknown',
    })
    expect(await refusal({ complexity: 'constructor' })).to.include({ field: 'complexity' })
    expect(await refusal({ mode: 'toString' })).to.deep.include({ field: 'mode', allowed: Object.keys(TABLE) })
    expect(await refusal({ taskType: '--' })).to.include({ field: 'task_type' })
    expect(await refusal({ taskType: 'a'.repeat(201) })).to.include({ field: 'task_type' })
  })
})
