import { stripVTControlCharacters } from 'node:util'
import { svcError } from '@svc/core'
import { expect } from 'chai'
import { errorPage } from '../src/command/report-error.ts'
import type { PluginUsage } from '../src/usage.ts'
import { usageTable } from '../src/usage-table.ts'

describe('an error that a person reads', () => {
  it('has nothing that a terminal would obey where an error is a plugin’s', () => {
    const message = 'its setup failed: \u001b[2J\r\nall is well'
    const page = errorPage(svcError('SETUP_FAILED', message, { plugin: 'bad\u202e', hint: '\u001b]0;x\u0007' }))
    expect(page.match(/[^\n\P{C}]/u)).to.equal(null)
    expect(page.split('\n')).to.have.length(4)
  })
})

describe('the table of svc plugins top', () => {
  const one: PluginUsage = {
    name: 'svc-plugin-with-a-name-of-many-words',
    calls: 123_456,
    errors: 12,
    ms: 65_000,
    isolated: { memoryBytes: 2 ** 28, cpuMs: 12_345, restarts: 3, refusals: 1234, quarantined: false },
  }
  const recent = { seconds: 2, of: new Map([[one.name, one]]) }
  const linesOf = (row: PluginUsage, width: number) => stripVTControlCharacters(usageTable([row], { recent, width })).split('\n')

  it('is no wider than the terminal: names are shortened, then columns left out in one order, restarts and refusals never', () => {
    for (const width of [60, 80, 100, 120])
      for (const quarantined of [false, true]) {
        const [head = '', line = ''] = linesOf({ ...one, isolated: { ...one.isolated!, quarantined } }, width)
        expect(Math.max(head.length, line.length), `${width}`).to.be.at.most(width)
        expect(line).to.match(quarantined ? / quarantined +1,234$/ : / 3 +1,234$/)
      }
    const heads = (width: number) => linesOf(one, width)[0]!.split(/ +/)
    const all = ['PLUGIN', '/S', 'BUSY', 'CALLS', 'ERRORS', 'TIME', 'MEMORY', 'CPU', 'RESTARTS', 'REFUSED']
    expect(heads(Infinity)).to.deep.equal(all)
    expect(heads(80)).to.deep.equal(all.filter(head => !['TIME', '/S', 'CPU'].includes(head)))
  })
})
