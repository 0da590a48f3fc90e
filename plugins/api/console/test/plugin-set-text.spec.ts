import { expect } from 'chai'
import { pluginSetTexts } from '../page/src/plugin-set-text.ts'

const node = (id: string, revision: number | undefined, failed?: { revision: number; code: string; message: string }) => ({
  id,
  host: 'vm',
  plugin_set: revision === undefined ? null : { revision, failed: failed ?? null },
})

describe('the installed plugins of a cluster, as the console shows them', () => {
  it('are one line while all nodes have the same, and none before the first change', () => {
    expect(pluginSetTexts([node('a', 0), node('b', 0)])).to.deep.equal([])
    expect(pluginSetTexts([])).to.deep.equal([])
    expect(pluginSetTexts([node('a', 3), node('b', 3)])).to.deep.equal([{ text: 'Revision 3 on all 2 nodes', isBad: false }])
    expect(pluginSetTexts([node('a', 3)])[0]!.text).to.equal('Revision 3 on the only node')
  })

  it('are a line for each node when one is late, silent or cannot take them over', () => {
    const failed = { revision: 4, code: 'PLUGIN_SET_DAMAGED', message: 'its hash\u202E differs' }
    expect(pluginSetTexts([node('a', 4), node('b', 3, failed), node('c', undefined), node('d', 0)])).to.deep.equal([
      { text: 'a (vm) has revision 4', isBad: false },
      { text: 'b (vm) has revision 3, and cannot take over 4: its hash\uFFFD differs', isBad: true },
      { text: 'c (vm) does not answer', isBad: true },
      { text: 'd (vm) has no revision', isBad: true },
    ])
  })
})
