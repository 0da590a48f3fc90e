import { equal, ok } from 'node:assert/strict'
import { test } from 'node:test'
import { Providers } from '@svc/core/contracts'
import { gather, pluginKit, testHost, testContext } from '@svc/testing'
import plugin from '../src/index.ts'
import samples from './samples.ts'

// the kits of every plugin and every provider: manifest, streams, failures, abort, leftovers
for (const testCase of await pluginKit(new URL('..', import.meta.url), samples)) test(testCase.title, testCase.run)

test('begins with its greeting', async () => {
  const config = { providers: { mine: { type: 'sample-word', greeting: 'Well:' } } }
  await using host = await testHost([{ name: 'sample-word', use: plugin }], { config })
  const [provider, request] = [host.slot(Providers).get('mine'), samples.provider?.plain]
  ok(provider && request)
  const events = await gather(provider.chat(request, testContext()))
  equal(events.map(event => (event.type === 'text' ? event.text : '')).join(''), 'Well: a few words')
})
