import type { PluginSamples } from '@svc/testing'

/** The kit needs the plugin that reads verticals. */
//js: /** @type {import('@svc/testing').PluginSamples} */
const samples: PluginSamples = { beside: ['@svc/plugin-verticals'] }

export default samples
