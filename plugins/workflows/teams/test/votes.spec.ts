import { expect } from 'chai'
import { ECHO, failing, names, team } from './support/team.ts'
import { type Script, worked } from './support/host.ts'

/** Proposes its own, and votes as the table says: by member, in the order of the rounds. */
const voting = (votes: Readonly<Record<string, readonly string[]>>): Script => {
  const cast = new Map<string, number>()
  return ({ member, isData }) => {
    if (!isData) return `plan of ${member}`
    const round = cast.get(member) ?? 0
    cast.set(member, round + 1)
    return { vote: votes[member]![round]!, reason: `${member} thinks so` }
  }
}

describe('a consensus team', () => {
  it('agrees on the proposal that more than half vote for', async () => {
    const { result, asked } = await worked(
      team('consensus', ['ann', 'bob', 'cy']),
      voting({ ann: ['bob'], bob: ['bob'], cy: ['cy'] })
    )
    expect(result).to.deep.include({
      answer: 'plan of bob',
      agreed: true,
      rounds: 1,
      votes: { ann: 'bob', bob: 'bob', cy: 'cy' },
    })
    expect(asked.map(({ tools }) => tools)).to.deep.equal([['look'], ['look'], ['look'], [], [], []])
    expect(asked.filter(({ isData }) => !isData).every(({ prompt }) => !prompt.includes('plan of'))).to.equal(true)
  })

  it('proposes again with votes and reasons in sight where the members did not agree', async () => {
    const votes = { ann: ['ann', 'cy'], bob: ['bob', 'cy'], cy: ['cy', 'cy'] }
    const { result, asked } = await worked(team('consensus', ['ann', 'bob', 'cy']), voting(votes))
    expect(result).to.deep.include({ answer: 'plan of cy', agreed: true, rounds: 2 })
    const again = asked.filter(({ isData, prompt }) => !isData && prompt.includes('propose again'))
    expect(names(again).toSorted()).to.deep.equal(['ann', 'bob', 'cy'])
    expect(again[0]!.prompt).to.include('plan of bob').and.include('- ann for ann: ann thinks so')
  })

  it('says that there is no agreement, with the positions', async () => {
    const votes = { ann: ['ann', 'ann'], bob: ['bob', 'bob'] }
    const { run, result } = await worked(team('consensus', ['ann', 'bob'], { rounds: 2 }), voting(votes))
    expect(run.status).to.equal('completed')
    expect(result).to.deep.include({
      answer: null,
      agreed: false,
      rounds: 2,
      positions: { ann: 'plan of ann', bob: 'plan of bob' },
    })
  })

  it('needs the share that is asked for: two of three are not all, and are two thirds', async () => {
    const votes = voting({ ann: ['bob'], bob: ['bob'], cy: ['cy'] })
    const all = await worked(team('consensus', ['ann', 'bob', 'cy'], { agreement: 1, rounds: 1 }), votes)
    expect(all.result).to.deep.include({ agreed: false })
    const most = await worked(
      team('consensus', ['ann', 'bob', 'cy'], { agreement: 0.66, rounds: 1 }),
      voting({ ann: ['bob'], bob: ['bob'], cy: ['cy'] })
    )
    expect(most.result).to.deep.include({ agreed: true })
  })

  it('counts a member that failed among those who do not agree, and asks it no more', async () => {
    const votes = { ann: ['ann', 'ann'], bob: ['ann', 'ann'], cy: ['cy'] }
    const crew = team('consensus', ['ann', 'bob', 'cy'], { agreement: 0.7 })
    const { result, asked } = await worked(crew, failing('cy', voting(votes)))
    expect(names(asked).filter(name => name === 'cy')).to.deep.equal(['cy'])
    expect(result).to.deep.include({ agreed: false, rounds: 1 })
    expect(result.members.cy).to.deep.include({ status: 'failed' })
    const half = await worked(team('consensus', ['ann', 'bob', 'cy']), failing('cy', voting(votes)))
    expect(half.result).to.deep.include({ agreed: true, answer: 'plan of ann' })
  })
})

describe('a reflection team', () => {
  it('has a writer write anew until its critic approves', async () => {
    let [draft, verdict] = [0, 0]
    const verdicts = [
      { approved: false, reasons: ['too short'] },
      { approved: true, reasons: ['good'] },
    ]
    const { result, asked } = await worked(team('reflection', ['ann', 'bob']), ({ member }) =>
      member === 'ann' ? `draft ${++draft}` : verdicts[verdict++]!
    )
    expect(names(asked)).to.deep.equal(['ann', 'bob', 'ann', 'bob'])
    expect(asked[1]!.prompt).to.include('draft 1')
    expect(asked[2]!.prompt).to.include('draft 1').and.include('- too short')
    expect(result).to.deep.include({ answer: 'draft 2', approved: true, rounds: 2, reasons: ['good'] })
  })

  it('ends after its rounds, and says that it was not approved and why', async () => {
    const { run, result, asked } = await worked(team('reflection', ['ann', 'bob'], { rounds: 2 }), ({ member }) =>
      member === 'ann' ? 'a draft' : { approved: false, reasons: ['still too short'] }
    )
    expect(asked.length).to.equal(4)
    expect(run.status).to.equal('completed')
    expect(result).to.deep.include({ answer: 'a draft', approved: false, rounds: 2, reasons: ['still too short'] })
  })

  it('fails with its critic: no other member may approve', async () => {
    const { run } = await worked(team('reflection', ['ann', 'bob']), failing('bob', ECHO))
    expect(run.error!.details).to.deep.include({ member: 'bob' })
  })
})
