import { equal } from 'node:assert/strict'
import { test } from 'node:test'
import { pluginKit, testHost, testContext } from '@svc/testing'
import plugin from '../src/index.ts'
import { SampleWord } from '../src/service.ts'
import samples from './samples.ts'

// the kit of every plugin: manifest, permissions, leftovers
for (const testCase of await pluginKit(new URL('..', import.meta.url), samples)) test(testCase.title, testCase.run)

test('writes a text in capital letters', async () => {
  await using host = await testHost([{ name: 'sample-word', use: plugin }])
  equal(await host.service(SampleWord).shout('abc', testContext()), 'ABC')
})
