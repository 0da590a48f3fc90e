import type { PluginSamples } from '@svc/testing'

/** The kit needs no samples for this plugin. */
//js: /** @type {import('@svc/testing').PluginSamples} */
const samples: PluginSamples = {}

export default samples
