import type { PluginSamples } from '@svc/testing'

/** Samples for the kits that `svc plugins test` and the test beside this file run. */
//js: /** @type {import('@svc/testing').PluginSamples} */
const samples: PluginSamples = {
  nodes: {
    sample_word: {
      good: [{ settings: { text: 'Hello' }, woken: () => ({ by: 'answer', data: 'world' }) }],
      bad: [{ settings: {} }, { settings: { text: 7 } }],
    },
  },
}

export default samples
