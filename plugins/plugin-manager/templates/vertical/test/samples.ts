import type { PluginSamples } from '@svc/core/testing'

/** What the kit needs to run the plugin: the one that reads verticals. */
//js: /** @type {import('@svc/core/testing').PluginSamples} */
const samples: PluginSamples = { beside: ['@svc/plugin-verticals'] }

export default samples
