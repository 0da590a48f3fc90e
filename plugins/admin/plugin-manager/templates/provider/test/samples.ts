import type { ModelRequest } from '@svc/core/contracts'
import type { PluginSamples } from '@svc/testing'

//js: /** @type {(text: string) => import('@svc/core/contracts').ModelRequest} */
const says = (text: string): ModelRequest => ({
  model: 'sample-1',
  messages: [{ role: 'user', parts: [{ type: 'text', text }] }],
})

/** What shows the plugin at work: `svc plugins test` and the test beside this file run the kits with it. */
//js: /** @type {import('@svc/testing').PluginSamples} */
const samples: PluginSamples = {
  provider: {
    plain: says('a few words'),
    unicode: { request: says('Grüße, 世界'), text: 'You said: Grüße, 世界' },
    failures: { overloaded: says('/fail') },
    // the kit shows more with: endless, silent, tools, length, usage, midway, …; and that an abort closes the call upstream with
    // connections: () => upstream.open(), where `const upstream = await openUpstream(…)` of @svc/testing is what `config` leads to
  },
}

export default samples
