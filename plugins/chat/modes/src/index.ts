import { definePlugin } from '@svc/core'
import { type Mode, Modes } from '@svc/core/contracts'

export default definePlugin({
  setup(scope) {
    for (const [name, mode] of Object.entries(MODES)) scope.add(Modes, name, mode)
  },
})

/** The five modes. A mode allows tools by their declared effects, never by their names. */
const MODES: Readonly<Record<string, Mode>> = {
  build: {
    description: 'Do the work: all tools.',
    effects: ['read', 'write', 'execute', 'network'],
    prompt: '',
    toolBudget: 50,
  },
  plan: {
    description: 'Look and think, then say what you would do; nothing is changed.',
    effects: ['read', 'network'],
    prompt: 'You are planning. Look at what is there, then set out the steps you would take. Change nothing and run nothing.',
    toolBudget: 25,
  },
  review: {
    description: 'Judge what is there; nothing is changed.',
    effects: ['read', 'network'],
    prompt:
      'You are reviewing. Read closely, name what is wrong and why, and say what would fix it. Change nothing and run nothing.',
    toolBudget: 25,
  },
  delegate: {
    description: 'Hand parts of the work to teams, and gather what they bring.',
    effects: ['read', 'write', 'execute', 'network'],
    prompt: 'You are delegating. Cut the work into parts, hand each to the team or tool that suits it, and join what comes back.',
    toolBudget: 100,
  },
  explore: {
    description: 'Investigate without changing anything.',
    effects: ['read', 'network'],
    prompt: 'You are exploring. Investigate, and report what you find with its location. Change nothing and run nothing.',
    toolBudget: 40,
  },
}
