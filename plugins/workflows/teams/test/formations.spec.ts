import { expect } from 'chai'
import { ECHO, failing, names, team } from './support/team.ts'
import { worked } from './support/host.ts'

describe('a sequential team', () => {
  it('gives each the task and what those before have said; the last word is the answer', async () => {
    const { result, asked } = await worked(team('sequential', ['ann', 'bob', 'cy']), ECHO, 'Build a boat.')
    expect(names(asked)).to.deep.equal(['ann', 'bob', 'cy'])
    expect(asked.every(({ prompt }) => prompt.includes('Build a boat.'))).to.equal(true)
    expect(asked[0]!.prompt).to.not.include('word of')
    expect(asked[2]!.prompt).to.include('word of ann').and.include('word of bob')
    expect(result).to.deep.include({ team: 'crew', formation: 'sequential', answer: 'word of cy' })
    expect(result.members).to.deep.equal({
      ann: { status: 'completed' },
      bob: { status: 'completed' },
      cy: { status: 'completed' },
    })
    expect(result.spent).to.deep.equal({ tokens: 30, tool_calls: 0, rounds: 3 })
  })

  it('tells each its role and its goal', async () => {
    const { asked } = await worked(team('sequential', ['ann', 'bob']), ECHO)
    expect(asked[1]!.system).to.include('You are the bob').and.include('do what a bob does').and.include('one after the other')
  })

  it('fails with the member that failed, since the next would have nothing to build on', async () => {
    const { run, asked } = await worked(team('sequential', ['ann', 'bob', 'cy']), failing('bob', ECHO))
    expect(names(asked)).to.deep.equal(['ann', 'bob'])
    expect(run).to.include({ status: 'failed' })
    expect(run.error).to.deep.include({ code: 'TEAM_MEMBER_FAILED' })
    expect(run.error!.details).to.deep.include({ team: 'crew', member: 'bob' })
    expect(run.error!.message).to.include('bob is ill')
  })
})

describe('a pipeline', () => {
  it('gives each stage only what the one before has made', async () => {
    const { result, asked } = await worked(
      team('pipeline', ['ann', 'bob', 'cy']),
      ({ member, prompt }) => `${prompt}>${member}`,
      'raw'
    )
    expect(asked.map(({ prompt }) => prompt)).to.deep.equal(['raw', 'raw>ann', 'raw>ann>bob'])
    expect(result.answer).to.equal('raw>ann>bob>cy')
  })

  it('fails with the stage that failed', async () => {
    const { run } = await worked(team('pipeline', ['ann', 'bob']), failing('ann', ECHO))
    expect(run.error).to.deep.include({ code: 'TEAM_MEMBER_FAILED' })
  })
})

describe('a parallel team', () => {
  it('has all work at once, and puts together what they bring', async () => {
    const all = Promise.withResolvers<void>()
    let working = 0
    const { result, asked } = await worked(team('parallel', ['ann', 'bob', 'cy']), async ({ member }) => {
      if (++working === 3) all.resolve()
      await all.promise
      return `word of ${member}`
    })
    expect(asked.every(({ prompt }) => !prompt.includes('word of'))).to.equal(true)
    expect(result.answer).to.equal(
      '## ann (the ann)\n\nword of ann\n\n## bob (the bob)\n\nword of bob\n\n## cy (the cy)\n\nword of cy'
    )
  })

  it('has its lead make one answer of what the others bring', async () => {
    const crew = team('parallel', ['ann', 'bob', 'cy'])
    const led = { ...crew, members: { ...crew.members, ann: { ...crew.members.ann!, lead: true } } }
    const { result, asked } = await worked(led, ECHO)
    expect(names(asked).at(-1)).to.equal('ann')
    expect(names(asked).toSorted()).to.deep.equal(['ann', 'bob', 'cy'])
    expect(asked.at(-1)!.prompt).to.include('word of bob').and.include('word of cy')
    expect(result.answer).to.equal('word of ann')
  })

  it('goes on without a member that fails, and shows it', async () => {
    const { run, result } = await worked(team('parallel', ['ann', 'bob', 'cy']), failing('bob', ECHO))
    expect(run.status).to.equal('completed')
    expect(result.answer).to.include('word of ann').and.include('word of cy').and.not.include('bob')
    expect(result.members.bob).to.deep.include({ status: 'failed' })
    expect(result.members).to.have.nested.property('bob.error.message', 'bob is ill')
  })

  it('fails when no member is left, and when its lead fails', async () => {
    const { run } = await worked(team('parallel', ['ann', 'bob']), () => new Error('all are ill'))
    expect(run.error).to.deep.include({ code: 'TEAM_MEMBER_FAILED' })
    const crew = team('parallel', ['ann', 'bob'])
    const led = { ...crew, members: { ...crew.members, ann: { ...crew.members.ann!, lead: true } } }
    const other = await worked(led, failing('ann', ECHO))
    expect(other.run.error!.details).to.deep.include({ member: 'ann' })
  })
})

const give = (...assignments: readonly { readonly member: string; readonly task: string }[]) => ({
  assignments,
  done: false,
  answer: '',
})
const done = (answer: string) => ({ assignments: [], done: true, answer })

describe('a hierarchical team', () => {
  it('has its lead give parts of the task to members, see what they bring, and answer', async () => {
    let turn = 0
    const plans = [give({ member: 'bob', task: 'weigh it' }, { member: 'cy', task: 'measure it' }), done('It is heavy and long.')]
    const { result, asked } = await worked(team('hierarchical', ['ann', 'bob', 'cy']), ({ member }) =>
      member === 'ann' ? plans[turn++]! : `word of ${member}`
    )
    const [first, ...rest] = asked
    expect(first!.member).to.equal('ann')
    expect(first!.prompt).to.include('- bob: the bob').and.include('round 1 of 3')
    expect(names(rest).toSorted()).to.deep.equal(['ann', 'bob', 'cy'])
    expect(asked.find(({ member }) => member === 'bob')!.prompt).to.equal('weigh it')
    expect(asked.at(-1)!.prompt).to.include('word of bob').and.include('word of cy')
    expect(result).to.deep.include({ answer: 'It is heavy and long.', rounds: 2 })
  })

  it('is led by the member that is named its lead', async () => {
    const crew = team('hierarchical', ['ann', 'bob'])
    const led = { ...crew, members: { ...crew.members, bob: { ...crew.members.bob!, lead: true } } }
    const { asked, result } = await worked(led, () => done('So it is.'))
    expect(names(asked)).to.deep.equal(['bob'])
    expect(result.members).to.deep.equal({ ann: { status: 'idle' }, bob: { status: 'completed' } })
  })

  it('reports to its lead the work that it gave to no member, and a member that failed', async () => {
    let turn = 0
    const plans = [
      give({ member: 'zoe', task: 'dance' }),
      give({ member: 'bob', task: 'weigh it' }, { member: 'ann', task: 'lead' }),
      done('So be it.'),
    ]
    const { run, result, asked } = await worked(team('hierarchical', ['ann', 'bob']), ({ member }) =>
      member === 'ann' ? plans[turn++]! : new Error('bob is ill')
    )
    expect(asked[1]!.prompt).to.include('There is no member "zoe", so that work was not done. The members are bob.')
    expect(asked.at(-1)!.prompt).to.include('failed: bob is ill').and.include('There is no member "ann"')
    expect(run.status).to.equal('completed')
    expect(result).to.deep.include({ answer: 'So be it.', rounds: 3 })
    expect(result.members.bob).to.deep.include({ status: 'failed' })
  })

  it('ends after its rounds: then the lead must return', async () => {
    const { result, asked } = await worked(team('hierarchical', ['ann', 'bob'], { rounds: 2 }), ({ member, prompt }) => {
      if (member === 'bob') return 'more is to be done'
      return prompt.includes('The rounds are over') ? { answer: 'As far as I know.' } : give({ member: 'bob', task: 'go on' })
    })
    expect(names(asked)).to.deep.equal(['ann', 'bob', 'ann', 'bob', 'ann'])
    expect(result).to.deep.include({ answer: 'As far as I know.', rounds: 2 })
  })

  it('fails with its lead', async () => {
    const { run } = await worked(team('hierarchical', ['ann', 'bob']), failing('ann', ECHO))
    expect(run.error!.details).to.deep.include({ member: 'ann' })
  })
})
