import type { PluginSamples } from '@svc/testing'

/** Samples for the kit of stores. Set `lasts: true` if the data survives a restart. */
//js: /** @type {import('@svc/testing').PluginSamples} */
const samples: PluginSamples = { lasts: false }

export default samples
