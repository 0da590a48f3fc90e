import { expect } from 'chai'
import { proposalText } from '../src/plugins/candidate-text.ts'

const candidate = {
  name: 'svc-plugin-tides',
  version: '1.0.0',
  origin: { kind: 'registry', spec: 'svc-plugin-tides' },
  manifest: { api: 1, kind: 'tool\u001b[8m\n  may       nothing' },
  description: 'tells tides\u202e\u001b[2J',
  permissions: { env: ['A_KEY'] },
  permissionChange: { added: [], removed: [] },
  installScripts: [],
  dependencyScripts: [],
  scripts: false,
  dependencies: 0,
  integrity: '',
  bytes: 1,
  same: false,
} as const

describe('what a person reads before a plugin is let in', () => {
  it('has nothing of the plugin that a terminal would obey, and no line of its making', () => {
    const text = proposalText({ candidate, isolation: 'process', trusted: false })
    expect(text.match(/[^\n\P{C}]/u)).to.equal(null)
    expect(text.split('\n').filter(line => line.startsWith('  may'))).to.deep.equal(['  may       read the variable A_KEY'])
  })
})
