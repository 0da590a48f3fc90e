import type { McpState } from '@svc/core/contracts'
import { expect } from 'chai'
import { mayFollow, STATES } from '../src/connection/states.ts'

const all = Object.keys(STATES) as McpState[]

describe('the states of a connection', () => {
  it('can all be reached from the first one, and all lead back to it', () => {
    const reachable = (from: McpState) => {
      const seen = new Set<McpState>([from])
      for (const state of seen) for (const next of STATES[state].next) seen.add(next)
      return seen
    }
    expect(reachable('disconnected')).to.have.all.keys(...all)
    for (const state of all) expect(reachable(state), state).to.include('disconnected')
  })

  it('do not connect while a person has to act', () => {
    for (const state of ['disabled', 'quarantined'] as const)
      for (const next of ['connecting', 'reconnecting', 'connected', 'degraded'] as const)
        expect(mayFollow(state, next), `${state} → ${next}`).to.equal(false)
    expect(mayFollow('needs_auth', 'reconnecting')).to.equal(false)
  })

  it('may always be reported again with other details', () => {
    for (const state of all) expect(mayFollow(state, state), state).to.equal(true)
  })
})
